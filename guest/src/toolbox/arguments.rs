//! A tool's arguments, read from JSON without guessing: what is not exactly an argument of
//! the right type is an error that says so. The documented exceptions are that `null` for an
//! optional argument is the same as leaving it out, that `5.0` is a whole number, and that
//! tags may come as a text that is itself a JSON array of texts, which some clients send.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::answers::excerpt;
use crate::contract::MemoryError;
use crate::validate::{Limit, invalid};

/// The most bytes of a caller's text that an error repeats.
const ECHO_BYTES: usize = 64;

/// The arguments of one call, not yet taken out.
#[derive(Debug)]
pub(super) struct Arguments {
    tool: String,
    members: Map<String, Value>,
}

impl Arguments {
    /// Reads a JSON object; blank text is an empty one.
    pub(super) fn parse(tool: &str, text: &str) -> Result<Self, MemoryError> {
        let members = if text.trim().is_empty() {
            Map::new()
        } else {
            match parse(text) {
                Ok(Value::Object(members)) => members,
                Ok(other) => {
                    return Err(invalid(
                        format!("The arguments are {}", kind(&other)),
                        "Arguments are one JSON object",
                        format!("Call {tool} with an object, such as {{\"key\": \"…\"}}"),
                    ));
                }
                Err(error) => {
                    return Err(invalid(
                        format!("The arguments are not valid JSON: {error}"),
                        // What the parser itself has no objection to.
                        if error.is_data() {
                            "Arguments are one JSON object, in which each name stands once"
                        } else {
                            "Arguments are one JSON object"
                        },
                        "Correct the JSON and call again",
                    ));
                }
            }
        };
        Ok(Self {
            tool: tool.to_owned(),
            members,
        })
    }

    /// Takes an argument away unread. False: it was not there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.members.remove(name).is_some()
    }

    /// Refuses every argument that is not one of these.
    pub(super) fn only(&self, allowed: &[&str]) -> Result<(), MemoryError> {
        match self
            .members
            .keys()
            .find(|name| !allowed.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(unknown) => Err(invalid(
                format!("{} has no argument {}", self.tool, quoted(unknown)),
                if allowed.is_empty() {
                    "It takes no arguments".to_owned()
                } else {
                    format!("Its arguments are {}", allowed.join(", "))
                },
                "Leave the other one out",
            )),
        }
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &str) -> Result<String, MemoryError> {
        match self.members.remove(name) {
            None => Err(invalid(
                format!("{name} is missing"),
                format!("{} needs {name}, a text", self.tool),
                format!("Call again with {name}"),
            )),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(wrong(name, "a text", &other)),
        }
    }

    /// A text that may be left out.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, MemoryError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a text", &other)),
        }
    }

    /// Texts that may be left out.
    pub(super) fn optional_texts(
        &mut self,
        name: &str,
    ) -> Result<Option<Vec<String>>, MemoryError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(items)) => texts(name, items).map(Some),
            Some(Value::String(text)) => match parse(&text) {
                Ok(Value::Array(items)) => texts(name, items).map(Some),
                _ => Err(invalid(
                    format!(
                        "{name} is a text that is not a JSON array: {}",
                        quoted(&text)
                    ),
                    format!("{name} is an array of texts"),
                    if text.trim().is_empty() {
                        format!("Leave {name} out, or pass an array, such as [\"ops\"]")
                    } else {
                        format!("Pass an array, such as [{}]", quoted(text.trim()))
                    },
                )),
            },
            Some(other) => Err(wrong(name, "an array of texts", &other)),
        }
    }

    /// True or false, which may be left out.
    pub(super) fn optional_flag(&mut self, name: &str) -> Result<Option<bool>, MemoryError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong(name, "true or false", &other)),
        }
    }

    /// A whole number that may be left out. Its range is checked where it is used; only one
    /// that has no u32 is refused here.
    pub(super) fn optional_number(&mut self, limit: &Limit) -> Result<Option<u32>, MemoryError> {
        match self.take(limit.name) {
            None => Ok(None),
            Some(Value::Number(number)) => match whole(&number) {
                Some(value) => Ok(Some(value)),
                None => Err(limit.refuse(&number)),
            },
            Some(other) => Err(wrong(limit.name, "a whole number", &other)),
        }
    }

    /// An optional argument, where null is the same as nothing.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }
}

/// A caller's text for an error: quoted, escaped and not too long.
pub(super) fn quoted(text: &str) -> String {
    let shown = excerpt(text, ECHO_BYTES);
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", shown.escape_debug())
}

fn texts(name: &str, items: Vec<Value>) -> Result<Vec<String>, MemoryError> {
    items
        .into_iter()
        .enumerate()
        .map(|(i, item)| match item {
            Value::String(text) => Ok(text),
            other => Err(wrong(&format!("{name}[{i}]"), "a text", &other)),
        })
        .collect()
}

fn wrong(name: &str, wanted: &str, got: &Value) -> MemoryError {
    invalid(
        format!("{name} is {}", kind(got)),
        format!("{name} is {wanted}"),
        match (wanted, got) {
            ("a whole number", Value::String(_)) => "Pass the number without quotes".to_owned(),
            ("true or false", Value::String(_)) => "Pass it without quotes".to_owned(),
            _ => format!("Pass {wanted}"),
        },
    )
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn whole(number: &Number) -> Option<u32> {
    if let Some(value) = number.as_u64() {
        return u32::try_from(value).ok();
    }
    let value = number.as_f64()?;
    // The range makes the conversion exact.
    (value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value)).then_some(value as u32)
}

fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Any JSON in which no object has the same name twice. Parsers differ in which of the two
/// they take, so a check of one must not be followed by a use of the other.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(de::Error::custom(format_args!(
                    "the name {} is there twice",
                    quoted(&name)
                )));
            }
            let value = entries.next_value_seed(Strict)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
