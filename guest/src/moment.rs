//! Moments: the last one that can be kept, how old a record is, and how a moment is
//! written.

use std::fmt::Display;

use jiff::{Timestamp, tz::Offset};

use crate::contract::{Instant, Memory};

/// Milliseconds in a day.
pub const DAY: i64 = 24 * 60 * 60 * 1000;

/// `9999-12-30T22:00:00.000Z`, the last moment that the host keeps: the last second that every
/// time zone shows with a year of four digits.
pub const LAST: Instant = 253_402_207_200_000;

/// When a record was last known to be true: confirmed, or else saved.
pub fn checked_at(memory: &Memory) -> Instant {
    memory.confirmed_at.unwrap_or(memory.updated_at)
}

/// Whole days since a record was confirmed, or else saved. 0 for one from the future.
pub fn age_days(memory: &Memory, now: Instant) -> u64 {
    let days = now
        .saturating_sub(checked_at(memory))
        .checked_div(DAY)
        .unwrap_or(0);
    u64::try_from(days).unwrap_or(0)
}

/// RFC 3339 in UTC with milliseconds.
pub fn rfc3339(instant: Instant) -> impl Display {
    let timestamp = nearest(instant);
    std::fmt::from_fn(move |f| write!(f, "{timestamp:.3}"))
}

/// The day in UTC: `2026-11-30`.
pub fn day(instant: Instant) -> impl Display {
    Offset::UTC.to_datetime(nearest(instant)).date()
}

/// A year that no calendar here has comes only from a broken host.
fn nearest(instant: Instant) -> Timestamp {
    let nearest = if instant < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_millisecond(instant).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        assert_eq!(rfc3339(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(LAST).to_string(), "9999-12-30T22:00:00.000Z");
        assert_eq!(day(0).to_string(), "1970-01-01");
        assert_eq!(day(DAY - 1).to_string(), "1970-01-01");
        assert_eq!(day(-1).to_string(), "1969-12-31");
        assert_eq!(day(i64::MAX).to_string(), "9999-12-30");
        assert_eq!(day(i64::MIN).to_string(), "-009999-01-02");
    }
}
