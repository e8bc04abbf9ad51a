//! A tool's sentences in the words of the command line.
//!
//! The plugin speaks to models, and names tools and arguments as they call them.
//! A person at the command line reads the same sentence with the commands and
//! options that they have. That is for sentences alone: with `--json`, and from
//! `call`, code and message are the tool's own, word for word.

/// What the plugin calls it, and what the command line does. The first that fits
/// is taken, so phrases stand before the words in them.
const WORDS: &[(&str, &str)] = &[
    (
        "call memory_delete again with hide_lower",
        "delete it again with --hide-lower",
    ),
    (
        "Call memory_delete with hide_lower",
        "Use `remora delete --hide-lower`",
    ),
    (
        "The next_cursor of an earlier page",
        "The cursor that an earlier page ended with",
    ),
    (
        "the next_cursor of an earlier page",
        "the one that an earlier page ended with",
    ),
    ("Leave cursor out", "Leave --cursor out"),
    ("cursor is not", "--cursor is not"),
    ("Call again", "Try again"),
    ("call again", "try again"),
    ("hide_lower", "--hide-lower"),
    ("expires_at", "--expires-at"),
    ("expires_in", "--expires-in"),
    ("supersedes", "--supersedes"),
    ("older_than_days", "--older-than"),
    ("max_results", "--max-results"),
    ("next_cursor", "--cursor"),
    ("memory_save", "`remora save`"),
    ("memory_get", "`remora get`"),
    ("memory_search", "`remora search`"),
    ("memory_list", "`remora list`"),
    ("memory_delete", "`remora delete`"),
    ("memory_confirm", "`remora confirm`"),
    ("memory_review", "`remora review`"),
    ("memory_history", "`remora history`"),
    ("memory_status", "`remora status`"),
];

/// The sentences as a person at the command line reads them. What stands between
/// quotation marks is somebody's own words, and stays.
pub(crate) fn of_the_command_line(sentences: &str) -> String {
    let mut said = String::with_capacity(sentences.len());
    let mut rest = sentences;
    let (mut quoted, mut before) = (false, ' ');
    while let Some(c) = rest.chars().next() {
        let word_begins = !before.is_alphanumeric() && before != '_' && before != '-';
        let phrase = WORDS.iter().find(|(theirs, _)| {
            !quoted
                && word_begins
                && rest.strip_prefix(theirs).is_some_and(|behind| {
                    !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                })
        });
        let taken = match phrase {
            Some((theirs, ours)) => {
                said.push_str(ours);
                theirs.len()
            }
            None => {
                if c == '"' && !(quoted && before == '\\') {
                    quoted = !quoted;
                }
                said.push(c);
                c.len_utf8()
            }
        };
        before = if phrase.is_some() { 'x' } else { c };
        rest = rest.get(taken..).unwrap_or_default();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::of_the_command_line;

    #[test]
    fn tools_are_named_as_commands_and_arguments_as_options() {
        for (theirs, ours) in [
            (
                "cursor is not one that memory_list gave. A cursor is the next_cursor of an \
                 earlier page, unchanged. Leave cursor out to begin at the first page.",
                "--cursor is not one that `remora list` gave. A cursor is the one that an \
                 earlier page ended with, unchanged. Leave --cursor out to begin at the first \
                 page.",
            ),
            (
                "Call memory_delete with hide_lower to hide the PUBLIC version",
                "Use `remora delete --hide-lower` to hide the PUBLIC version",
            ),
            (
                "Check the key with memory_list or memory_search.",
                "Check the key with `remora list` or `remora search`.",
            ),
        ] {
            assert_eq!(of_the_command_line(theirs), ours);
        }
    }

    #[test]
    fn somebodys_own_words_stay() {
        for text in [
            r#"There is no memory with the key "memory_get"."#,
            r#"There is no memory with the key "a \" memory_get"."#,
            "my_memory_get and memory_gets",
            "",
        ] {
            assert_eq!(of_the_command_line(text), text);
        }
    }
}
