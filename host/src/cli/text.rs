//! Laying out text in columns: widths, wrapping, tables.

use std::io;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::console::Console;

/// Between two columns.
const GAP: &str = "  ";
/// The least width of a table's last column, whatever the others take.
const LEAST_LAST: usize = 20;
/// Wider cells than this, such as a long key, push their own row aside and leave
/// the others alone. They are not cut: a person copies them.
const MOST_COLUMN: usize = 32;

/// A word as a shell needs it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text cut to so many columns, with an ellipsis where something is missing.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    // No text takes fewer columns than a tenth of its characters in practice;
    // this keeps the measuring below short for a long one.
    let near = text
        .char_indices()
        .nth(columns.saturating_mul(10))
        .map_or(text, |(at, _)| &text[..at]);
    if near.len() == text.len() && width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let mut end = 0;
    for (at, c) in near.char_indices() {
        // A character of no width belongs to the one before it.
        if c.width().unwrap_or(0) == 0 {
            if end == at {
                end = at + c.len_utf8();
            }
            continue;
        }
        if width(&near[..at + c.len_utf8()]) > room {
            break;
        }
        end = at + c.len_utf8();
    }
    format!("{}…", near[..end].trim_end())
}

/// A text in lines of so many columns, broken at spaces where there are some.
/// Its own line ends stay.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let before = lines.len();
        let mut line = String::new();
        for word in paragraph.split_inclusive(' ') {
            let blank = line.is_empty();
            if !blank && width(&line) + width(word.trim_end()) > columns {
                lines.push(line.trim_end().to_owned());
                line.clear();
            }
            line.push_str(word);
            while width(line.trim_end()) > columns {
                let rest = split_off(&mut line, columns);
                lines.push(std::mem::replace(&mut line, rest));
            }
        }
        // A blank line stays; what breaking leaves behind does not.
        if lines.len() == before || !line.trim_end().is_empty() {
            lines.push(line.trim_end().to_owned());
        }
    }
    lines
}

/// Leaves of a line what fits, at least one character, and returns the rest.
fn split_off(line: &mut String, columns: usize) -> String {
    let mut taken = 0;
    let mut end = 0;
    for (at, c) in line.char_indices() {
        let wide = c.width().unwrap_or(0);
        if at > 0 && taken + wide > columns {
            break;
        }
        taken += wide;
        end = at + c.len_utf8();
    }
    line.split_off(end)
}

/// A date of an answer, RFC 3339 in UTC, to the minute: nobody reads more.
pub(crate) fn when(date: &str) -> String {
    match (date.get(..16), date.ends_with('Z')) {
        (Some(minute), true) => format!("{} UTC", minute.replacen('T', " ", 1)),
        _ => date.to_owned(),
    }
}

/// Names and values, one a line, the values under each other.
pub(crate) fn fields(console: &mut Console<'_>, fields: &[(&str, String)]) -> io::Result<()> {
    let column = fields
        .iter()
        .map(|(name, _)| width(name))
        .max()
        .unwrap_or(0);
    for (name, value) in fields {
        console.line(&format!("{}{GAP}{value}", padded(name, column)))?;
    }
    Ok(())
}

/// Rows under a header. The last column takes what is left of the line and is
/// cut there.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self {
            rows: vec![header.iter().map(|name| (*name).to_owned()).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it; nothing where it has no rows.
    pub(crate) fn print(&self, console: &mut Console<'_>) -> io::Result<()> {
        if self.rows.len() < 2 {
            return Ok(());
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(column))
                    .map(|cell| width(cell))
                    .filter(|width| *width <= MOST_COLUMN)
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            let (last, others) = row
                .split_last()
                .map_or(("", row.as_slice()), |(last, others)| {
                    (last.as_str(), others)
                });
            for (cell, column) in others.iter().zip(&widths) {
                line.push_str(&padded(cell, *column));
                line.push_str(GAP);
            }
            let room = console.width.saturating_sub(width(&line)).max(LEAST_LAST);
            line.push_str(&cut(last, room));
            console.line(line.trim_end())?;
        }
        Ok(())
    }
}

/// A text with spaces behind it, up to so many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_columns_and_between_characters() {
        assert_eq!(cut("deploys", 7), "deploys");
        assert_eq!(cut("deploys", 6), "deplo…");
        assert_eq!(cut("成语接龙", 8), "成语接龙");
        assert_eq!(cut("成语接龙", 7), "成语接…");
        assert_eq!(cut("成语接龙", 6), "成语…");
        assert_eq!(cut("ae\u{301}xy", 3), "ae\u{301}…");
        assert_eq!(cut("abc", 0), "…");
        assert!(width(&cut(&"x".repeat(300_000), 30)) <= 30);
    }

    #[test]
    fn words_are_quoted_as_a_shell_needs_them() {
        assert_eq!(quoted("--taint"), "--taint");
        assert_eq!(quoted("Ada's"), r"'Ada'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a b"), "'a b'");
    }

    #[test]
    fn wraps_at_spaces_and_else_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("  indented text", 10), ["  indented", "text"]);
        assert_eq!(wrap("成语接龙", 4), ["成语", "接龙"]);
        assert_eq!(wrap("成", 1), ["成"]);
    }

    #[test]
    fn a_date_is_shown_to_the_minute() {
        assert_eq!(when("2026-11-30T01:04:33.042Z"), "2026-11-30 01:04 UTC");
        assert_eq!(when("soon"), "soon");
    }

    #[test]
    fn a_table_fits_its_console_and_keeps_keys_whole() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::like_a_terminal(&mut out, &mut err, 40);
        let mut table = Table::new(&["KEY", "CONTENT"]);
        table.row(vec!["short".to_owned(), "word ".repeat(20)]);
        table.row(vec!["k".repeat(60), "rest".to_owned()]);
        table.print(&mut console).expect("printed");
        let out = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "KEY    CONTENT");
        assert!(width(lines[1]) <= 40 && lines[1].ends_with('…'), "{out}");
        assert_eq!(lines[2], format!("{}  rest", "k".repeat(60)));
    }
}
