//! Moments, and who tells them.

use std::fmt;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z, from year 0 to 9999.
///
/// Files hold it as fixed-width UTC text, so that the order of the texts is the
/// order of the moments and an operator can compare them with SQLite's own
/// `datetime`. People and JSON see RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// `0000-01-01T00:00:00.000Z`, before which the text would need a sign.
const FIRST: i64 = -62_167_219_200_000;
/// `9999-12-30T22:00:00.000Z`, the last moment that jiff tells: four-digit years
/// in every time zone.
const LAST: i64 = 253_402_207_200_000;

impl Instant {
    /// The moment so many milliseconds after 1970 began; none outside the years
    /// 0 to 9999.
    #[must_use]
    pub fn from_millis(millis: i64) -> Option<Self> {
        (FIRST..=LAST).contains(&millis).then_some(Self(millis))
    }

    /// The nearest moment that can be written.
    #[must_use]
    pub fn from_millis_clamped(millis: i64) -> Self {
        Self(millis.clamp(FIRST, LAST))
    }

    /// Milliseconds since 1970 began.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    fn civil(self) -> jiff::civil::DateTime {
        // INVARIANT: from_millis keeps the value inside jiff's own range.
        jiff::tz::Offset::UTC.to_datetime(
            jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH),
        )
    }

    /// As files hold it: `2026-11-30 01:04:33.000`.
    #[must_use]
    pub fn to_sql(self) -> String {
        let t = self.civil();
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
            t.year(),
            t.month(),
            t.day(),
            t.hour(),
            t.minute(),
            t.second(),
            t.millisecond()
        )
    }

    /// Reads what [`Instant::to_sql`] wrote, and nothing else.
    #[must_use]
    pub fn from_sql(text: &str) -> Option<Self> {
        let datetime: jiff::civil::DateTime = text.parse().ok()?;
        let timestamp = jiff::tz::Offset::UTC.to_timestamp(datetime).ok()?;
        let instant = Self::from_millis(timestamp.as_millisecond())?;
        (instant.to_sql() == text).then_some(instant)
    }
}

impl fmt::Display for Instant {
    /// RFC 3339 in UTC: `2026-11-30T01:04:33.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.to_sql().replacen(' ', "T", 1);
        text.push('Z');
        f.pad(&text)
    }
}

impl serde::Serialize for Instant {
    /// As RFC 3339.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Tells the time. The host asks it once a call.
pub trait Clock: Send + Sync {
    /// The moment it is.
    fn now(&self) -> Instant;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::from_millis_clamped(jiff::Timestamp::now().as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_as_moments_do() {
        let mut millis = vec![FIRST, -1, 0, 1, 999, 1_000, 1_795_914_273_000, LAST];
        millis.sort_unstable();
        let texts: Vec<String> = millis
            .iter()
            .filter_map(|m| Instant::from_millis(*m))
            .map(Instant::to_sql)
            .collect();
        assert_eq!(texts.len(), millis.len());
        assert!(texts.is_sorted());
        for (text, m) in texts.iter().zip(&millis) {
            assert_eq!(text.len(), 23, "{text}");
            assert_eq!(Instant::from_sql(text).map(Instant::millis), Some(*m));
        }
    }

    #[test]
    fn shows_rfc_3339_in_utc() {
        let instant = Instant::from_millis(1_796_000_673_042);
        assert_eq!(
            instant.map(|i| i.to_string()).as_deref(),
            Some("2026-11-30T01:04:33.042Z")
        );
    }

    #[test]
    fn refuses_other_spellings() {
        for text in [
            "2026-11-30T01:04:33.042",
            "2026-11-30",
            "",
            "2026-11-30 01:04:33",
        ] {
            assert_eq!(Instant::from_sql(text), None, "{text}");
        }
    }
}
