//! What callers may pass. Each function takes a raw argument and gives back what the rest
//! of the crate works with, or an error that names the limit. Nothing is ever cut.
//!
//! The host checks the same bounds again: a plugin need not be this one.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;

use unicode_normalization::{UnicodeNormalization, is_nfc_quick};

use crate::block;
use crate::contract::{Instant, MemoryError, Problem};
use crate::moment::{LAST, rfc3339};

/// The longest key, in bytes, once normalised.
pub const KEY_BYTES: usize = 256;
/// The longest content, in bytes: 256 KiB.
pub const CONTENT_BYTES: usize = 256 * 1024;
/// The most tags of one record, and the most that a list can ask for.
pub const TAGS: usize = 32;
/// The longest tag, in characters, once normalised.
pub const TAG_CHARS: usize = 64;
/// The longest source, in bytes: 1 KiB.
pub const SOURCE_BYTES: usize = 1024;
/// The most memories whose place one save takes.
pub const SUPERSEDES: usize = 100;
/// The longest page of a list, and the page when the caller names none.
pub const LIST_LIMIT: Limit = Limit {
    name: "limit",
    least: 1,
    most: 200,
    otherwise: 50,
};
/// The most results of a search, and how many when the caller names no number.
pub const SEARCH_LIMIT: Limit = Limit {
    name: "max_results",
    least: 1,
    most: 100,
    otherwise: 10,
};
/// The most memories of a review, and how many when the caller names no number.
pub const REVIEW_LIMIT: Limit = Limit {
    name: "limit",
    least: 1,
    most: 200,
    otherwise: 20,
};
/// For how many days what a review offers has not been confirmed. The most is a century:
/// longer ago than any memory here is.
pub const REVIEW_DAYS: Limit = Limit {
    name: "older_than_days",
    least: 0,
    most: 36_500,
    otherwise: 90,
};
/// How many tokens a block for a prompt may take.
pub const BUDGET: Limit = Limit {
    name: "budget",
    least: 50,
    most: 20_000,
    otherwise: 1000,
};

/// A number in a range that a caller may leave out.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The name of the argument.
    pub name: &'static str,
    /// The lowest value.
    pub least: u32,
    /// The highest value.
    pub most: u32,
    /// The value when it is left out.
    pub otherwise: u32,
}

impl Limit {
    /// The value to work with.
    pub fn check(&self, given: Option<u32>) -> Result<u32, MemoryError> {
        match given {
            None => Ok(self.otherwise),
            Some(value) if value >= self.least && value <= self.most => Ok(value),
            Some(value) => Err(self.refuse(&value)),
        }
    }

    /// The error for any other number.
    pub fn refuse(&self, given: &dyn Display) -> MemoryError {
        invalid(
            format!("{} is {given}", self.name),
            format!(
                "It is a whole number from {} to {}, and {} when left out",
                self.least, self.most, self.otherwise
            ),
            "Call again with a number in that range",
        )
    }
}

/// An `invalid-argument` error.
pub fn invalid(
    what: impl Into<String>,
    allowed: impl Into<String>,
    remedy: impl Into<String>,
) -> MemoryError {
    MemoryError::InvalidArgument(problem(what, allowed, remedy))
}

/// A `too-large` error.
pub fn too_large(
    what: impl Into<String>,
    allowed: impl Into<String>,
    remedy: impl Into<String>,
) -> MemoryError {
    MemoryError::TooLarge(problem(what, allowed, remedy))
}

/// What was wrong, what is allowed, what to do next.
pub fn problem(
    what: impl Into<String>,
    allowed: impl Into<String>,
    remedy: impl Into<String>,
) -> Problem {
    Problem {
        what: what.into(),
        allowed: allowed.into(),
        remedy: remedy.into(),
    }
}

/// A key: trimmed, in Unicode NFC, 1 to [`KEY_BYTES`] bytes, no control characters. Case
/// is kept.
pub fn key(raw: &str) -> Result<String, MemoryError> {
    let key = normalise(raw);
    if key.is_empty() {
        return Err(invalid(
            "key is empty",
            "A key is 1 to 256 bytes of text",
            "Name the memory with a few words, such as \"project/deploy-steps\"",
        ));
    }
    if key.chars().any(char::is_control) {
        return Err(invalid(
            "key has a control character in it",
            "A key is one line of text: no line breaks, tabs or other control characters",
            "Leave the control characters out",
        ));
    }
    if key.len() > KEY_BYTES {
        return Err(too_large(
            format!("key has {} bytes", key.len()),
            "A key has at most 256 bytes of UTF-8",
            "Use a shorter key and put the details into the content",
        ));
    }
    Ok(key.into_owned())
}

/// Content: 1 to [`CONTENT_BYTES`] bytes. Any text, which is kept byte for byte.
pub fn content(raw: &str) -> Result<(), MemoryError> {
    if raw.is_empty() {
        return Err(invalid(
            "content is empty",
            "Content is 1 byte to 256 KiB of text",
            "Say what is to be remembered, or delete the memory with memory_delete",
        ));
    }
    if raw.len() > CONTENT_BYTES {
        return Err(too_large(
            format!("content has {} bytes", raw.len()),
            "Content has at most 262144 bytes (256 KiB) of UTF-8",
            "Nothing was saved: shorten it, or split it over several keys",
        ));
    }
    if block::is_within(raw) {
        return Err(invalid(
            "content holds the block of memories that a prompt is given",
            "What stands there is saved already",
            "Save what is new, without that block",
        ));
    }
    Ok(())
}

/// Tags: each trimmed, in Unicode NFC, 1 to [`TAG_CHARS`] characters, no control
/// characters; then sorted by their bytes without repeats, at most [`TAGS`].
pub fn tags(raw: &[String]) -> Result<Vec<String>, MemoryError> {
    let mut tags = raw
        .iter()
        .map(|tag| self::tag(tag))
        .collect::<Result<Vec<String>, MemoryError>>()?;
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > TAGS {
        return Err(too_large(
            format!("There are {} different tags", tags.len()),
            "There are at most 32 tags",
            "Keep the few that you will filter by",
        ));
    }
    Ok(tags)
}

fn tag(raw: &str) -> Result<String, MemoryError> {
    let tag = normalise(raw);
    if tag.is_empty() {
        return Err(invalid(
            "A tag is empty",
            "A tag is 1 to 64 characters of text",
            "Leave the empty tag out",
        ));
    }
    if tag.chars().any(char::is_control) {
        return Err(invalid(
            "A tag has a control character in it",
            "A tag is one line of text: no line breaks, tabs or other control characters",
            "Leave the control characters out",
        ));
    }
    let chars = tag.chars().count();
    if chars > TAG_CHARS {
        return Err(too_large(
            format!("A tag has {chars} characters"),
            "A tag has at most 64 characters",
            "Use a shorter tag",
        ));
    }
    Ok(tag.into_owned())
}

/// A source: 1 to [`SOURCE_BYTES`] bytes. Kept as it is.
pub fn source(raw: &str) -> Result<(), MemoryError> {
    if raw.trim().is_empty() {
        return Err(invalid(
            "source is empty",
            "A source is 1 byte to 1 KiB of text, such as a URL, a file or a person",
            "Say where the words come from, or leave source out",
        ));
    }
    if raw.len() > SOURCE_BYTES {
        return Err(too_large(
            format!("source has {} bytes", raw.len()),
            "A source has at most 1024 bytes (1 KiB) of UTF-8",
            "Shorten it, to the URL or the file for example",
        ));
    }
    Ok(())
}

/// A query: any text that is not blank.
pub fn query(raw: &str) -> Result<(), MemoryError> {
    if raw.trim().is_empty() {
        return Err(invalid(
            "query is blank",
            "A query is any text, in plain words",
            "Say what you want to find, or use memory_list to see everything",
        ));
    }
    Ok(())
}

/// An expiry: it must lie ahead of `now`, and not after [`LAST`].
pub fn expires_at(at: Instant, now: Instant) -> Result<(), MemoryError> {
    if at <= now {
        return Err(invalid(
            format!(
                "expires_at is {}, which does not lie ahead: now it is {}",
                rfc3339(at),
                rfc3339(now)
            ),
            "A memory expires at a moment that lies ahead",
            "Give a later moment, or leave expires_at out to keep the memory",
        ));
    }
    if at > LAST {
        return Err(too_far("expires_at"));
    }
    Ok(())
}

/// The error for an expiry after [`LAST`].
pub fn too_far(argument: &str) -> MemoryError {
    invalid(
        format!("{argument} lies too far ahead"),
        format!("A memory expires by {} at the latest", rfc3339(LAST)),
        format!("Give an earlier time, or leave {argument} out to keep the memory"),
    )
}

/// Keys of memories whose place is taken: each as [`key`] has it, once, in the order
/// given; at most [`SUPERSEDES`].
pub fn supersedes(raw: &[String]) -> Result<Vec<String>, MemoryError> {
    let mut known = BTreeSet::new();
    let mut keys = Vec::new();
    for raw in raw {
        let key = key(raw).map_err(|error| match error {
            MemoryError::InvalidArgument(problem) => {
                MemoryError::InvalidArgument(inside("supersedes", problem))
            }
            MemoryError::TooLarge(problem) => MemoryError::TooLarge(inside("supersedes", problem)),
            other => other,
        })?;
        if known.insert(key.clone()) {
            keys.push(key);
        }
    }
    if keys.len() > SUPERSEDES {
        return Err(too_large(
            format!("supersedes has {} different keys", keys.len()),
            "One memory takes the place of at most 100",
            "Name those that this one really replaces",
        ));
    }
    Ok(keys)
}

/// A problem of a part, as one of the whole.
fn inside(argument: &str, part: Problem) -> Problem {
    Problem {
        what: format!("In {argument}, a {}", part.what),
        ..part
    }
}

/// Trims and brings to Unicode NFC, so that a key or tag typed on one system finds what
/// was saved on another.
fn normalise(raw: &str) -> Cow<'_, str> {
    let trimmed = raw.trim();
    if trimmed.is_ascii()
        || is_nfc_quick(trimmed.chars()) == unicode_normalization::IsNormalized::Yes
    {
        Cow::Borrowed(trimmed)
    } else {
        Cow::Owned(trimmed.nfc().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allowed(error: &MemoryError) -> &str {
        match error {
            MemoryError::InvalidArgument(p) | MemoryError::TooLarge(p) => &p.allowed,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_is_trimmed_and_composed_and_keeps_its_case() {
        assert_eq!(key("  Cafe\u{301} \n").unwrap(), "Caf\u{e9}");
        assert_eq!(key("%").unwrap(), "%");
        assert_eq!(key("ZEBRA-9340").unwrap(), "ZEBRA-9340");
    }

    #[test]
    fn a_key_is_measured_after_it_is_normalised() {
        // Decomposed it has 3 bytes a letter, composed 2.
        assert_eq!(key(&"e\u{301}".repeat(128)).unwrap().len(), 256);
        assert!(key(&format!("  {}  ", "k".repeat(256))).is_ok());
        let error = key(&"k".repeat(257)).unwrap_err();
        assert!(matches!(error, MemoryError::TooLarge(_)));
        assert!(allowed(&error).contains("256"));
    }

    #[test]
    fn a_key_is_one_line_of_something() {
        for raw in ["", " ", "\u{a0}", "a\nb", "a\u{0}b", "\u{7}", "a\u{85}b"] {
            assert!(
                matches!(key(raw), Err(MemoryError::InvalidArgument(_))),
                "{raw:?}"
            );
        }
    }

    #[test]
    fn content_is_1_byte_to_256_kib() {
        assert!(content("").is_err());
        assert!(content(" ").is_ok());
        assert!(content(&"x".repeat(CONTENT_BYTES)).is_ok());
        let error = content(&"x".repeat(CONTENT_BYTES + 1)).unwrap_err();
        assert!(matches!(error, MemoryError::TooLarge(_)));
        assert!(allowed(&error).contains("262144"));
    }

    #[test]
    fn tags_come_out_trimmed_sorted_and_once_each() {
        let raw = [
            "ai",
            " machine,learning ",
            "ai",
            "Ai",
            "cafe\u{301}",
            "caf\u{e9}",
        ];
        assert_eq!(
            tags(&raw.map(String::from)).unwrap(),
            ["Ai", "ai", "caf\u{e9}", "machine,learning"]
        );
    }

    #[test]
    fn tags_have_64_characters_and_there_are_32() {
        let many: Vec<String> = (0..32).map(|i| format!("t{i}")).collect();
        assert!(tags(&many).is_ok());
        let repeated: Vec<String> = many.iter().chain(&many).cloned().collect();
        assert!(tags(&repeated).is_ok());
        let too_many: Vec<String> = (0..33).map(|i| format!("t{i}")).collect();
        assert!(allowed(&tags(&too_many).unwrap_err()).contains("32"));

        assert!(tags(&["語".repeat(64)]).is_ok());
        assert!(allowed(&tags(&["語".repeat(65)]).unwrap_err()).contains("64"));
        assert!(allowed(&tags(&["x".repeat(5543)]).unwrap_err()).contains("64"));
        assert!(tags(&[" ".to_owned()]).is_err());
        assert!(tags(&["a\tb".to_owned()]).is_err());
    }

    #[test]
    fn a_source_is_something_of_at_most_1_kib() {
        assert!(source("").is_err());
        assert!(source("https://example.org/a b").is_ok());
        assert!(source(&"s".repeat(1024)).is_ok());
        assert!(allowed(&source(&"s".repeat(1025)).unwrap_err()).contains("1024"));
    }

    #[test]
    fn a_blank_query_is_refused_and_any_other_text_is_taken() {
        for raw in ["", " ", "\n\t", "\u{3000}"] {
            assert!(query(raw).is_err(), "{raw:?}");
        }
        for raw in ["\"()*\"", "-band", "a AND", "\u{0}", "用户"] {
            assert!(query(raw).is_ok(), "{raw:?}");
        }
    }

    #[test]
    fn limits_are_named_where_they_are_passed() {
        assert_eq!(LIST_LIMIT.check(None).unwrap(), 50);
        assert_eq!(LIST_LIMIT.check(Some(200)).unwrap(), 200);
        assert_eq!(SEARCH_LIMIT.check(Some(1)).unwrap(), 1);
        assert!(allowed(&LIST_LIMIT.check(Some(201)).unwrap_err()).contains("200"));
        assert!(allowed(&SEARCH_LIMIT.check(Some(0)).unwrap_err()).contains("100"));
        assert_eq!(REVIEW_DAYS.check(Some(0)).unwrap(), 0);
        assert!(allowed(&BUDGET.check(Some(49)).unwrap_err()).contains("from 50 to 20000"));
    }

    #[test]
    fn an_expiry_lies_ahead() {
        assert!(expires_at(11, 10).is_ok());
        assert!(expires_at(10, 10).is_err());
        assert!(expires_at(i64::MIN, 10).is_err());
        assert!(expires_at(LAST, 10).is_ok());
        let error = expires_at(LAST + 1, 10).unwrap_err();
        assert!(allowed(&error).contains("9999-12-30T22:00:00.000Z"));
        let MemoryError::InvalidArgument(problem) = expires_at(999, 1000).unwrap_err() else {
            panic!()
        };
        assert_eq!(
            problem.what,
            "expires_at is 1970-01-01T00:00:00.999Z, which does not lie ahead: now it is \
             1970-01-01T00:00:01.000Z"
        );
    }

    #[test]
    fn superseded_keys_come_out_normalised_once_each_in_their_order() {
        let raw = ["b", " a ", "b", "cafe\u{301}", "caf\u{e9}"].map(String::from);
        assert_eq!(supersedes(&raw).unwrap(), ["b", "a", "caf\u{e9}"]);
        let many: Vec<String> = (0..100).map(|i| format!("k{i}")).collect();
        assert!(supersedes(&many).is_ok());
        let repeated: Vec<String> = many.iter().chain(&many).cloned().collect();
        assert!(supersedes(&repeated).is_ok());
        let too_many: Vec<String> = (0..101).map(|i| format!("k{i}")).collect();
        assert!(allowed(&supersedes(&too_many).unwrap_err()).contains("100"));
        for (raw, what) in [
            (" ".to_owned(), "In supersedes, a key is empty"),
            ("k".repeat(257), "In supersedes, a key has 257 bytes"),
        ] {
            match supersedes(&[raw]).unwrap_err() {
                MemoryError::InvalidArgument(p) | MemoryError::TooLarge(p) => {
                    assert_eq!(p.what, what);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(raw in "\\PC{0,40}") {
            if let Ok(once) = key(&raw) {
                prop_assert_eq!(key(&once).unwrap(), once);
            }
        }
    }
}
