//! `tour`: what Remora does, shown on a temporary store.
//!
//! The commands are parsed and run as they stand, by the same code as any other,
//! and what they print is what is shown. After each the tour checks that what it
//! says is so; where it is not, it says that instead and fails.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use remora_host::storage::Event;
use remora_host::{Error, ErrorKind, Level, Plugin, Store};

use super::console::Console;
use super::context::Context;
use super::failure::Exit;
use super::text::{Table, cut, quoted, width, wrap};
use super::{Cli, execute, visible};

/// Columns of the tour, whatever the terminal has: lines much longer than this
/// are hard to read.
const WIDTH: usize = 78;
/// Before a command's output.
const INDENT: &str = "    ";
/// Digits of a record's id that are shown: enough to tell a tour's few apart.
const ID_SHOWN: usize = 8;
/// Columns of a session's name in the audit trail.
const NAME_SHOWN: usize = 10;

pub(crate) fn run(context: &mut Context<'_>) -> anyhow::Result<Exit> {
    let folder = tempfile::Builder::new()
        .prefix("remora-tour-")
        .tempdir()
        .map_err(|error| {
            Error::unavailable(
                format!("No temporary folder can be made: {error}"),
                "The tour keeps its store in one",
                "Set TMPDIR to a folder that can be written",
            )
        })?;
    let plugin = context.plugin()?;
    // Made here, so that no command says that it made it.
    Store::open(folder.path().join("store"))?;
    let mut tour = Tour {
        store: folder.path().join("store").into_os_string(),
        width: context.console.width.min(WIDTH),
        console: &mut context.console,
        plugin,
        broken: 0,
        promised: false,
    };
    tour.opening()?;
    tour.gating()?;
    tour.shadowing()?;
    tour.search()?;
    tour.raise()?;
    tour.write_down()?;
    tour.audit()?;
    let broken = tour.closing()?;
    if broken > 0 {
        return Err(Error::new(
            ErrorKind::Plugin,
            format!("{broken} of the tour's promises did not hold"),
            "All of them hold in a sound build",
            "Look for the lines that begin with BROKEN",
        )
        .into());
    }
    Ok(Exit::Done)
}

struct Tour<'c, 'o> {
    console: &'c mut Console<'o>,
    plugin: Arc<Plugin>,
    store: OsString,
    width: usize,
    broken: u32,
    /// The last line printed is a promise: the next promise stands right below.
    promised: bool,
}

/// What a command printed and how it ended.
struct Ran {
    text: String,
    exit: Exit,
}

impl Ran {
    fn says(&self, words: &str) -> bool {
        // Lines may be wrapped anywhere.
        let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        joined(&self.text).contains(words)
    }

    fn found(&self, words: &str) -> bool {
        self.exit == Exit::Done && self.says(words)
    }
}

impl Tour<'_, '_> {
    fn opening(&mut self) -> anyhow::Result<()> {
        self.say(
            "Remora is a memory for AI agents that outlives the conversation and does not leak. \
             Every session has a level, PUBLIC < INTERNAL < CONFIDENTIAL < RESTRICTED. It \
             reads memories at its level and below, and saves at exactly its level. The model \
             has no say in that.",
        )?;
        let store = self.store.to_string_lossy().into_owned();
        self.say(&format!(
            "These are real commands on a temporary store, as if REMORA_STORE were {}. A \
             command without --session is a session of its own, at --taint or else PUBLIC.",
            visible::line(&store)
        ))
    }

    fn gating(&mut self) -> anyhow::Result<()> {
        self.title(1, "Gating: what is above your level does not exist for you")?;
        let saved = self.run(&[
            "--taint",
            "confidential",
            "save",
            "salary",
            "Ada earns 95k.",
            "--source",
            "the payroll",
        ])?;
        let public = self.run(&["get", "salary"])?;
        let never = self.run(&["get", "pension"])?;
        let cleared = self.run(&["--taint", "confidential", "get", "salary"])?;
        self.check(
            saved.found("at CONFIDENTIAL"),
            "saved at the level of the session, CONFIDENTIAL",
        )?;
        self.check(
            public.exit == Exit::NotFound && public.text.replace("salary", "pension") == never.text,
            "a PUBLIC session gets the same answer as for a key that never was",
        )?;
        self.check(
            cleared.found("Ada earns 95k."),
            "a CONFIDENTIAL session reads it",
        )
    }

    fn shadowing(&mut self) -> anyhow::Result<()> {
        self.title(2, "Shadowing: one key, one answer for each level")?;
        let low = "Deploys go out on Tuesdays.";
        let high = "Deploys go out on Tuesdays; Bo does hotfixes on Fridays.";
        self.run(&["save", "deploy", low, "--source", "the wiki"])?;
        self.run(&[
            "--taint", "internal", "save", "deploy", high, "--source", "Bo",
        ])?;
        let public = self.run(&["get", "deploy"])?;
        let internal = self.run(&["--taint", "internal", "get", "deploy"])?;
        self.check(
            public.found(low) && !public.says("Bo"),
            "a PUBLIC session sees its own version, and no sign of another",
        )?;
        self.check(
            internal.found(high),
            "an INTERNAL session sees the higher one alone",
        )
    }

    fn search(&mut self) -> anyhow::Result<()> {
        self.title(3, "Search: a plain question finds the memory")?;
        let public = self.run(&["search", "when do we deploy?"])?;
        let internal = self.run(&["--taint", "internal", "search", "who deploys on Fridays?"])?;
        self.check(
            public.found("Tuesdays") && !public.says("INTERNAL"),
            "PUBLIC finds what PUBLIC can see",
        )?;
        self.check(
            internal.found("INTERNAL") && !internal.says("PUBLIC"),
            "a version that is shadowed is no result",
        )
    }

    fn raise(&mut self) -> anyhow::Result<()> {
        self.title(
            4,
            "A raise: what a session has observed governs its next call",
        )?;
        self.say(
            "A named session is a conversation. Its level is the high-water mark of all it \
             has observed, and only rises. The operator, or the agent's host, says what it \
             observes; a running server obeys from its very next call on.",
        )?;
        self.run(&["session", "new", "work"])?;
        let before = self.run(&["--session", "work", "get", "salary"])?;
        let raised = self.run(&["session", "raise", "work", "confidential"])?;
        let after = self.run(&["--session", "work", "get", "salary"])?;
        self.check(
            before.exit == Exit::NotFound && raised.exit == Exit::Done,
            "before the raise there was nothing",
        )?;
        self.check(
            after.found("Ada earns 95k."),
            "the same session reads it after the raise",
        )
    }

    fn write_down(&mut self) -> anyhow::Result<()> {
        self.title(5, "No writing down: what was read high is not saved low")?;
        self.say(
            "Now the model tries to launder what it read, by asking for another level. This \
             is the call as an agent makes it:",
        )?;
        let asked = self.run(&[
            "--session",
            "work",
            "call",
            "memory_save",
            r#"{"key":"note","content":"Ada earns 95k.","classification":"PUBLIC"}"#,
        ])?;
        let public = self.run(&["get", "note"])?;
        self.check(
            asked.found(r#""classification":"CONFIDENTIAL""#) && asked.says("was ignored"),
            "the argument was ignored, and the model told so",
        )?;
        self.check(
            public.exit == Exit::NotFound,
            "PUBLIC sees nothing of it: it was saved at CONFIDENTIAL",
        )?;
        let delete = self.run(&["--session", "work", "delete", "deploy"])?;
        self.check(
            delete.exit == Exit::NotFound,
            "nor does it delete below: the versions of \"deploy\" are not its own",
        )?;
        self.say(
            "A clearance is the most that a session's audience may see. Observing more \
             unlocks nothing, and ends the session's writing:",
        )?;
        self.run(&["session", "new", "demo", "--clearance", "internal"])?;
        let above = self.run(&["session", "raise", "demo", "restricted"])?;
        let refused = self.run(&["--session", "demo", "save", "idea", "Sell it."])?;
        self.check(
            above.exit == Exit::Refused && refused.exit == Exit::Refused,
            "nothing was unlocked, and its save was refused",
        )
    }

    fn audit(&mut self) -> anyhow::Result<()> {
        self.title(
            6,
            "The audit trail: what happened, in the file of its own level",
        )?;
        self.say(
            "Each line is keyed to the one before, so none can be changed or lost unnoticed. \
             It holds record ids, never words: keys are looked up for this listing.",
        )?;
        let store = Store::open(&self.store)?;
        let mut trails = Vec::new();
        for level in Level::ALL {
            let events = store.events("default", level)?;
            self.trail(level, &events)?;
            trails.push(events);
        }
        let [public, internal, confidential, restricted] = &trails[..] else {
            unreachable!("there are four levels");
        };
        let has = |events: &[Event], kind: &str, key: Option<&str>| {
            events
                .iter()
                .any(|event| event.kind == kind && (key.is_none() || event.key.as_deref() == key))
        };
        self.check(
            has(public, "save", Some("deploy"))
                && has(internal, "save", Some("deploy"))
                && has(confidential, "save", Some("salary")),
            "each save stands at its own level",
        )?;
        self.check(
            has(confidential, "argument-ignored", None) && has(confidential, "raise", None),
            "so do the raise, and the argument that was ignored",
        )?;
        self.check(
            has(restricted, "raise", None) && !has(public, "raise", None),
            "PUBLIC has no line of what happened above it",
        )
    }

    fn closing(&mut self) -> anyhow::Result<u32> {
        if self.broken > 0 {
            self.say("Not everything was as it should be: see above.")?;
            return Ok(self.broken);
        }
        self.say(
            "That was all of it; the store is gone again. The settings of an MCP client, and \
             the rest:",
        )?;
        self.apart()?;
        for line in [
            "$ remora mcp-config claude-desktop --session work",
            "$ remora --help",
        ] {
            self.console.line(line)?;
        }
        Ok(self.broken)
    }

    /// The events of one level, as a table.
    fn trail(&mut self, level: Level, events: &[Event]) -> io::Result<()> {
        let mut table = Table::new(&["TIME", "WHAT", "DETAIL", "SESSION", "RECORD", "KEY"]);
        for event in events {
            let or_none = |text: &Option<String>| visible::line(text.as_deref().unwrap_or("-"));
            // The time of day: a tour does not last longer.
            let time = event.at.to_string();
            let record = or_none(&event.record);
            table.row(vec![
                time.get(11..19).unwrap_or(&time).to_owned(),
                visible::line(&event.kind),
                or_none(&event.detail),
                cut(&visible::line(&event.session), NAME_SHOWN),
                record.get(..ID_SHOWN).unwrap_or(&record).to_owned(),
                or_none(&event.key),
            ]);
        }
        let shared = Shared::default();
        let (mut out, mut err) = (shared.clone(), shared.clone());
        let width = self.width.saturating_sub(INDENT.len());
        table.print(&mut Console::like_a_terminal(&mut out, &mut err, width))?;
        self.apart()?;
        self.console.line(level.name())?;
        self.indented(&shared.text())
    }

    /// Runs a command as if it had been typed, and shows both.
    fn run(&mut self, words: &[&str]) -> anyhow::Result<Ran> {
        self.apart()?;
        for line in command_lines(words, self.width) {
            self.console.line(&line)?;
        }
        self.console.flush()?;

        let mut cli = Cli::read(&[&["remora"], words].concat())?;
        cli.globals.store = Some(self.store.clone());
        let shared = Shared::default();
        let (mut out, mut err) = (shared.clone(), shared.clone());
        let width = self.width.saturating_sub(INDENT.len());
        let console = Console::like_a_terminal(&mut out, &mut err, width);
        let exit = execute(cli, console, Some(Arc::clone(&self.plugin)));

        let text = shared.text();
        self.indented(&text)?;
        if exit != Exit::Done {
            self.console
                .line(&format!("{INDENT}[exit code {}]", exit.code()))?;
        }
        Ok(Ran { text, exit })
    }

    fn indented(&mut self, text: &str) -> io::Result<()> {
        let columns = self.width.saturating_sub(INDENT.len());
        let lines = text.lines().flat_map(|line| {
            if line.starts_with('{') {
                json_lines(line, columns)
            } else if line.is_empty() {
                vec![String::new()]
            } else {
                wrap(line, columns)
            }
        });
        for line in lines {
            self.console.line(format!("{INDENT}{line}").trim_end())?;
        }
        Ok(())
    }

    /// Says whether a promise holds.
    fn check(&mut self, holds: bool, promise: &str) -> anyhow::Result<()> {
        if !self.promised {
            self.apart()?;
            self.promised = true;
        }
        let mark = if holds { "✓" } else { "BROKEN:" };
        if !holds {
            self.broken = self.broken.saturating_add(1);
        }
        self.console.line(&format!("  {mark} {promise}"))?;
        Ok(())
    }

    fn title(&mut self, number: u32, title: &str) -> anyhow::Result<()> {
        let title = format!("{number}. {title}");
        self.apart()?;
        self.apart()?;
        self.console.line(&title)?;
        self.console.line(&"─".repeat(title.chars().count()))?;
        Ok(())
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        self.apart()?;
        for line in wrap(text, self.width) {
            self.console.line(&line)?;
        }
        Ok(())
    }

    /// A blank line between what is printed and what comes.
    fn apart(&mut self) -> io::Result<()> {
        self.promised = false;
        self.console.line("")
    }
}

/// A command in lines of so many columns, to be copied as it stands: a line that
/// goes on ends as a shell wants it. No word is broken, however long.
fn command_lines(words: &[&str], columns: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for (i, word) in words.iter().enumerate() {
        match pieces.last_mut() {
            // An option and its value stay together.
            Some(option) if words[i - 1].starts_with("--") => {
                option.push(' ');
                option.push_str(&quoted(word));
            }
            _ => pieces.push(quoted(word)),
        }
    }
    let mut lines = vec!["$ remora".to_owned()];
    for word in pieces {
        if let Some(line) = lines.last_mut() {
            // Room for the word, the blank before it, and what would continue it.
            if width(line) + width(&word) + 3 > columns {
                line.push_str(" \\");
                lines.push(format!("  {INDENT}{word}"));
            } else {
                line.push(' ');
                line.push_str(&word);
            }
        }
    }
    lines
}

/// An answer in JSON in lines of so many columns: broken behind its commas and
/// blanks alone.
fn json_lines(json: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in json.split_inclusive([',', ' ']) {
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() && width(line) + width(piece.trim_end()) > columns {
                lines.push(format!(" {piece}"));
            } else {
                line.push_str(piece);
            }
        }
    }
    lines
}

/// Takes what a command prints on both of its outputs, in the order printed.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_can_be_copied_as_it_is_shown() {
        let words = [
            "save",
            "a key",
            "Words that take some room.",
            "--tag",
            "ops",
        ];
        let lines = command_lines(&words, 40);
        assert_eq!(
            lines,
            [
                "$ remora save 'a key' \\",
                "      'Words that take some room.' \\",
                "      --tag ops",
            ]
        );
        assert!(lines.iter().all(|line| width(line) <= 40));
    }

    #[test]
    fn json_is_not_broken_inside_words() {
        let lines = json_lines(r#"{"saved":true,"key":"note","notices":["It was"]}"#, 20);
        assert_eq!(
            lines,
            [
                r#"{"saved":true,"#,
                r#" "key":"note","#,
                r#" "notices":["It "#,
                r#" was"]}"#
            ]
        );
    }
}
