//! `call`: the toolbox as a plugin host uses it.

use std::io::{self, Read};

use clap::Args;
use remora_host::{Error, ErrorKind};

use super::context::Context;
use super::failure::Exit;

/// Bytes of arguments that are read: the largest save, every byte of it written
/// as an escape, and room to spare.
const MOST_ARGUMENTS: usize = 4 * 1024 * 1024;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora call memory_get '{\"key\": \"deploy\"}'
  remora --session work call memory_save - < arguments.json")]
pub(crate) struct CallArgs {
    /// The tool's name: `remora tools` lists them
    tool: String,
    /// Its arguments, a JSON object; - reads standard input
    #[arg(value_name = "JSON", allow_hyphen_values = true, default_value = "{}")]
    arguments: String,
}

pub(crate) fn run(context: &mut Context<'_>, args: CallArgs) -> anyhow::Result<Exit> {
    let arguments = if args.arguments == "-" {
        standard_input("arguments", MOST_ARGUMENTS)?
    } else {
        args.arguments
    };
    let session = context.session()?;
    let plugin = context.plugin()?;
    let answer = plugin.invoke(&session, &args.tool, &arguments)?;
    context.console.line(&answer)?;
    Ok(Exit::Done)
}

/// All of standard input as text, byte for byte. `what` names it in an error.
///
/// # Errors
/// [`ErrorKind::TooLarge`] past `most` bytes, of which no more than one is read;
/// [`ErrorKind::InvalidArgument`] where it is not UTF-8.
pub(crate) fn standard_input(what: &str, most: usize) -> Result<String, Error> {
    text_of(io::stdin().lock(), what, most)
}

fn text_of(input: impl Read, what: &str, most: usize) -> Result<String, Error> {
    let mut bytes = Vec::new();
    input
        .take(u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| {
            Error::unavailable(
                format!("Standard input can't be read: {error}"),
                format!("- stands for {what} on standard input"),
                "Check where it comes from",
            )
        })?;
    if bytes.len() > most {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("The {what} on standard input: more than {most} bytes"),
            format!("At most {most} bytes are read"),
            "Pass less, or split it",
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        Error::invalid(
            format!("Standard input is not UTF-8: byte {at} is 0x{byte:02x}, counted from 0"),
            "Memories are text in UTF-8",
            "Convert it, with iconv for example",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_kept_byte_for_byte() {
        let text = "\u{feff} a\r\n\n";
        assert_eq!(
            text_of(text.as_bytes(), "content", 100).ok().as_deref(),
            Some(text)
        );
        assert_eq!(text_of(&b""[..], "content", 100).ok().as_deref(), Some(""));
    }

    #[test]
    fn an_endless_input_is_read_to_its_limit() {
        let error = text_of(io::repeat(b'x'), "content", 100).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("At most 100 bytes"), "{error}");
        assert!(text_of(&[b'x'; 100][..], "content", 100).is_ok());
    }

    #[test]
    fn what_is_no_text_is_named_with_its_place() {
        let error = text_of(&b"abc\xffd"[..], "content", 100).expect_err("refused");
        assert!(error.to_string().contains("byte 3 is 0xff"), "{error}");
    }
}
