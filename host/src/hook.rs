//! What happens to a tool call's arguments before a plugin sees them.
//!
//! A model must not choose a level, an origin or a taint. The plugin ignores
//! arguments of such names by itself; this hook takes them out before, so that a
//! plugin which would not ignore them never gets the chance. Either way the
//! answer is the same.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::storage::HostDecided;

/// The most bytes of a caller's text that an error repeats.
const ECHO_BYTES: usize = 64;

/// Arguments as a plugin may see them.
#[derive(Debug, PartialEq, Eq)]
pub struct Screened<'a> {
    /// JSON: as they came, where nothing had to be taken out.
    pub arguments: Cow<'a, str>,
    /// What was taken out, in the order of [`HostDecided::ALL`].
    pub ignored: Vec<HostDecided>,
}

/// Takes out of a call's arguments what only the host decides.
///
/// Text that is no JSON object is passed on for the plugin to refuse: it names
/// no argument.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an
/// object that names a key twice, since readers differ in which one they take,
/// and for text that is not JSON.
pub fn screen(arguments: &str) -> Result<Screened<'_>, Error> {
    let unchanged = Screened {
        arguments: Cow::Borrowed(arguments),
        ignored: Vec::new(),
    };
    if arguments.trim_ascii().is_empty() {
        return Ok(unchanged);
    }
    let Strict(parsed) = serde_json::from_str(arguments).map_err(|error| {
        let twice = error.is_data();
        let error = error.to_string();
        // The parser says where, and little more.
        let allowed = if twice {
            "Arguments are one JSON object, in which no key stands twice"
        } else if error.contains("hex escape") {
            "A character past \\uffff is written as itself or as two escapes, a surrogate pair; \
             half of one is no character"
        } else if error.contains("number out of range") {
            "No number is that large: a JSON number lies between -1.7e308 and 1.7e308"
        } else {
            "Arguments are one JSON object"
        };
        Error::invalid(
            format!("The arguments can't be read: {error}"),
            allowed,
            "Correct them and call again",
        )
    })?;
    let Value::Object(mut object) = parsed else {
        return Ok(unchanged);
    };
    let ignored: Vec<HostDecided> = HostDecided::ALL
        .into_iter()
        .filter(|argument| object.shift_remove(argument.name()).is_some())
        .collect();
    if ignored.is_empty() {
        return Ok(unchanged);
    }
    Ok(Screened {
        arguments: Cow::Owned(Value::Object(object).to_string()),
        ignored,
    })
}

/// Adds to a plugin's answer a notice for each argument that was taken out: the
/// same that the plugin gives where it meets the argument itself.
pub fn notice(answer: String, ignored: &[HostDecided]) -> String {
    if ignored.is_empty() {
        return answer;
    }
    let Ok(Value::Object(mut object)) = serde_json::from_str(&answer) else {
        return answer;
    };
    let mut notices: Vec<Value> = ignored
        .iter()
        .map(|argument| {
            Value::String(format!(
                "The argument \"{}\" was ignored: the session decides it, not the caller.",
                argument.name()
            ))
        })
        .collect();
    if let Some(Value::Array(own)) = object.get_mut("notices") {
        notices.append(own);
    }
    object.insert("notices".to_owned(), Value::Array(notices));
    Value::Object(object).to_string()
}

/// JSON in which no object names a key twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                let shown = &key[..key.floor_char_boundary(ECHO_BYTES)];
                let more = if shown.len() < key.len() { "…" } else { "" };
                return Err(de::Error::custom(format_args!(
                    "the key \"{}{more}\" stands twice",
                    shown.escape_debug()
                )));
            }
            let Strict(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_out_what_only_the_host_decides() {
        let screened = screen(
            r#"{"key":"k","taint":"PUBLIC","classification":1,"level":null,"origin":{},"content":"c"}"#,
        )
        .expect("a valid object");
        assert_eq!(screened.arguments, r#"{"key":"k","content":"c"}"#);
        assert_eq!(screened.ignored, HostDecided::ALL);
    }

    #[test]
    fn finds_a_name_however_it_is_escaped() {
        let screened = screen(r#"{"l\u0065vel":"PUBLIC"}"#).expect("a valid object");
        assert_eq!(screened.arguments, "{}");
        assert_eq!(screened.ignored, [HostDecided::Level]);
    }

    #[test]
    fn leaves_other_arguments_as_they_came() {
        for arguments in [
            "",
            "  ",
            r#"{ "key" : 1e2 , "x":{"level":1}}"#,
            "[1]",
            "null",
            "7",
        ] {
            let screened = screen(arguments).expect("passed on");
            assert_eq!(screened.arguments, arguments);
            assert!(screened.ignored.is_empty());
        }
    }

    #[test]
    fn refuses_a_key_that_stands_twice_at_any_depth() {
        for arguments in [
            r#"{"key":"a","key":"b"}"#,
            r#"{"level":1,"level":2}"#,
            r#"{"a":[{"b":1,"\u0062":2}]}"#,
        ] {
            let error = screen(arguments).expect_err("refused");
            assert!(error.to_string().contains("stands twice"), "{error}");
        }
    }

    #[test]
    fn an_error_repeats_no_more_than_the_beginning_of_a_key() {
        let key = "ä".repeat(500_000);
        let error = screen(&format!(r#"{{"{key}":1,"{key}":2}}"#)).expect_err("refused");
        let error = error.to_string();
        assert!(error.contains("ää…\" stands twice"), "{error:.300}");
        assert!(error.len() < 300, "{}", error.len());
    }

    #[test]
    fn duplicates_are_spoken_of_where_there_are_some() {
        for (arguments, says) in [
            (r#"{"limit":1e400}"#, "1.7e308"),
            (r#"{"key":"\ud800"}"#, "surrogate pair"),
            ("{", "one JSON object."),
        ] {
            let error = screen(arguments).expect_err("refused").to_string();
            assert!(error.contains(says), "{error}");
            assert!(!error.contains("twice"), "{error}");
        }
    }

    #[test]
    fn refuses_what_is_no_json_without_panicking() {
        let deep = "[".repeat(100_000);
        for arguments in ["{", r#"{"key":"\ud800"}"#, "{} {}", "\u{0}", &deep] {
            assert!(screen(arguments).is_err());
        }
    }

    #[test]
    fn notices_come_first_and_last_in_the_object() {
        let both = [HostDecided::Classification, HostDecided::Taint];
        let with = notice(r#"{"a":1,"notices":["own"]}"#.to_owned(), &both);
        assert!(
            with.starts_with(r#"{"a":1,"notices":["The argument \"classification\""#),
            "{with}"
        );
        assert!(with.ends_with(r#"not the caller.","own"]}"#), "{with}");
        let without = notice(r#"{"a":1}"#.to_owned(), &both[..1]);
        assert_eq!(
            without,
            r#"{"a":1,"notices":["The argument \"classification\" was ignored: the session decides it, not the caller."]}"#
        );
    }
}
