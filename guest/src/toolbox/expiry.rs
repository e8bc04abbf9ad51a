//! When a memory expires, as callers say it: a moment with its offset, a day, or a time
//! from now. What could be read in two ways is refused: a time without its offset is none
//! until somebody says whose clock it is on.
//!
//! Nothing is rounded up: a memory is never kept longer than was asked for.

use jiff::civil;

use super::arguments::{Arguments, quoted};
use crate::contract::{Instant, MemoryError};
use crate::moment::{DAY, LAST};
use crate::validate::{self, invalid};

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// What may be given as a moment.
const MOMENTS: &str = "It is a moment with its offset from UTC, such as \
    2027-01-31T18:00:00+01:00 or 2027-01-31T17:00:00Z, or a day, such as 2027-01-31, which is \
    read as the end of that day in UTC";
/// What may be given as a time from now.
const SPANS: &str = "It is a whole number from 1 and one unit: m (minutes), h (hours), d (days) \
    or w (weeks), such as 12h, 7d or 2w";

/// Takes `expires_at` or `expires_in`. Whether it lies ahead is checked where it is saved.
pub(super) fn take(
    arguments: &mut Arguments,
    now: impl FnOnce() -> Instant,
) -> Result<Option<Instant>, MemoryError> {
    let at = arguments.optional_text("expires_at")?;
    let within = arguments.optional_text("expires_in")?;
    match (at, within) {
        (Some(_), Some(_)) => Err(invalid(
            "expires_at and expires_in are both given",
            "A memory expires at a moment, or some time from now, or not at all",
            "Leave one of them out",
        )),
        (Some(at), None) => moment(&at).map(Some),
        (None, Some(within)) => from_now(&within, now()).map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads RFC 3339 (section 5.6: also with a small `t` or `z`, or a space for the `T`), or
/// its `full-date` alone. Of a fraction, what is finer than a millisecond is left off.
fn moment(raw: &str) -> Result<Instant, MemoryError> {
    let text = raw.trim();
    let refuse = |why: &str, remedy: &str| {
        Err(invalid(
            format!("expires_at is {}, {why}", quoted(text)),
            MOMENTS,
            remedy,
        ))
    };
    let unknown = || refuse("which is no moment", "Write it in one of these ways");

    let (Some(date), Some(rest)) = (text.get(..10), text.get(10..)) else {
        return unknown();
    };
    let Some([year, month, day]) = fields(date, '-', [4, 2, 2]) else {
        return unknown();
    };
    let Some(midnight) = midnight(year, month, day) else {
        return refuse("and there is no such day", "Check the month and the day");
    };
    if rest.is_empty() {
        return within_bounds(midnight.saturating_add(DAY).saturating_sub(1), "expires_at");
    }

    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else {
        return unknown();
    };
    let (Some(time), Some(rest)) = (rest.get(..8), rest.get(8..)) else {
        return unknown();
    };
    let Some([hour, minute, second]) = fields(time, ':', [2, 2, 2]) else {
        return unknown();
    };
    if hour > 23 || minute > 59 || second > 59 {
        return refuse(
            "and there is no such time of day",
            "Hours go from 00 to 23, minutes and seconds from 00 to 59",
        );
    }
    let (millis, rest) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            let (Some(digits), Some(rest)) = (fraction.get(..digits), fraction.get(digits..))
            else {
                return unknown();
            };
            if digits.is_empty() {
                return unknown();
            }
            let mut places = digits.bytes().map(|digit| i64::from(digit & 15));
            let mut place = || places.next().unwrap_or(0);
            let millis = place()
                .saturating_mul(100)
                .saturating_add(place().saturating_mul(10))
                .saturating_add(place());
            (millis, rest)
        }
    };
    let ahead = match rest {
        "Z" | "z" => 0,
        "" => {
            return refuse(
                "a time without its offset",
                "Add Z for UTC, or the offset of the clock that is meant, such as +01:00",
            );
        }
        _ => match offset(rest) {
            Some(offset) => offset,
            None => {
                return refuse(
                    "whose offset is no offset",
                    "End it with Z, or with an offset such as +01:00",
                );
            }
        },
    };
    let moment = midnight
        .saturating_add(hour.saturating_mul(HOUR))
        .saturating_add(minute.saturating_mul(MINUTE))
        .saturating_add(second.saturating_mul(SECOND))
        .saturating_add(millis)
        .saturating_sub(ahead);
    within_bounds(moment, "expires_at")
}

/// How far a clock is ahead of UTC.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let [hours, minutes] = fields(rest, ':', [2, 2])?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    hours
        .checked_mul(HOUR)?
        .checked_add(minutes.checked_mul(MINUTE)?)?
        .checked_mul(sign)
}

/// The moment a day begins in UTC.
fn midnight(year: i64, month: i64, day: i64) -> Option<Instant> {
    const FIRST: civil::Date = civil::date(1970, 1, 1);
    let date = civil::Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    )
    .ok()?;
    i64::try_from(date.duration_since(FIRST).as_millis()).ok()
}

/// Numbers of exactly so many digits each, with `separator` between them.
fn fields<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn from_now(raw: &str, now: Instant) -> Result<Instant, MemoryError> {
    let text = raw.trim();
    let refuse = |why: &str, remedy: &str| {
        Err(invalid(
            format!("expires_in is {}, {why}", quoted(text)),
            SPANS,
            remedy,
        ))
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (Some(number), Some(unit)) = (text.get(..digits), text.get(digits..)) else {
        return refuse("which is no time", "Write it in this way");
    };
    if number.is_empty() {
        return match text.strip_prefix('-') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                refuse("which lies in the past", "Give a time that lies ahead")
            }
            _ => refuse("which is no time", "Write it in this way"),
        };
    }
    let unit = match unit {
        "m" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        "w" => DAY.saturating_mul(7),
        "" => return refuse("a number without its unit", "Add the unit"),
        rest if is_fraction(rest) => {
            return refuse(
                "which is no whole number",
                "Use a smaller unit, such as 36h for one and a half days",
            );
        }
        _ => {
            return refuse(
                "whose unit is not known",
                "Use one of these units, or give the moment as expires_at",
            );
        }
    };
    if number.bytes().all(|digit| digit == b'0') {
        return refuse(
            "which is no time at all",
            "Give a time that lies ahead, or leave expires_in out to keep the memory",
        );
    }
    // More digits than a number holds is past the last moment as well.
    let number: i64 = number.parse().unwrap_or(i64::MAX);
    within_bounds(
        now.saturating_add(number.saturating_mul(unit)),
        "expires_in",
    )
}

/// Whether a number goes on behind its whole part: `.5d`.
fn is_fraction(rest: &str) -> bool {
    rest.strip_prefix(['.', ','])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn within_bounds(at: Instant, argument: &str) -> Result<Instant, MemoryError> {
    if at > LAST {
        return Err(validate::too_far(argument));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::NOW;
    use crate::moment::rfc3339;
    use proptest::prelude::*;

    fn what(error: &MemoryError) -> String {
        match error {
            MemoryError::InvalidArgument(problem) => {
                format!("{}. {}. {}.", problem.what, problem.allowed, problem.remedy)
            }
            other => panic!("{other:?}"),
        }
    }

    fn utc(text: &str) -> String {
        rfc3339(moment(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))).to_string()
    }

    #[test]
    fn a_moment_is_read_with_its_offset() {
        for (text, expected) in [
            // F041
            ("2026-12-31T23:59:59-05:00", "2027-01-01T04:59:59.000Z"),
            ("2026-12-31T23:59:59+14:00", "2026-12-31T09:59:59.000Z"),
            ("2026-12-31T23:59:59-12:00", "2027-01-01T11:59:59.000Z"),
            ("2026-12-31T23:59:59+05:45", "2026-12-31T18:14:59.000Z"),
            ("2026-12-31T23:59:59Z", "2026-12-31T23:59:59.000Z"),
            ("2026-12-31T23:59:59-00:00", "2026-12-31T23:59:59.000Z"),
            (" 2026-12-31t23:59:59z\n", "2026-12-31T23:59:59.000Z"),
            ("2026-12-31 23:59:59+00:00", "2026-12-31T23:59:59.000Z"),
            ("2028-02-29T00:00:00+14:00", "2028-02-28T10:00:00.000Z"),
            ("2028-02-29T23:00:00-02:00", "2028-03-01T01:00:00.000Z"),
            ("2027-01-01T00:00:00+23:59", "2026-12-31T00:01:00.000Z"),
            ("9999-12-30T22:00:00.000Z", "9999-12-30T22:00:00.000Z"),
            ("9999-12-31T11:59:59+14:00", "9999-12-30T21:59:59.000Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(utc(text), expected, "{text}");
        }
    }

    #[test]
    fn a_fraction_is_cut_to_milliseconds_and_never_lengthens() {
        for (fraction, millis) in [
            ("", "000"),
            (".1", "100"),
            (".01", "010"),
            (".001", "001"),
            (".0009", "000"),
            (".9999999999999999999999999", "999"),
            (".123456789", "123"),
        ] {
            let text = format!("2026-12-31T23:59:59{fraction}Z");
            assert_eq!(utc(&text), format!("2026-12-31T23:59:59.{millis}Z"));
        }
    }

    #[test]
    fn a_day_is_read_as_its_end_in_utc() {
        assert_eq!(utc("2026-12-31"), "2026-12-31T23:59:59.999Z");
        assert_eq!(utc("2028-02-29"), "2028-02-29T23:59:59.999Z");
        assert_eq!(utc("9999-12-29"), "9999-12-29T23:59:59.999Z");
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        for (text, reason) in [
            ("2026-12-31T23:59:59", "a time without its offset"),
            ("2026-12-31 23:59:59", "a time without its offset"),
            ("2026-12-31T23:59:59.5", "a time without its offset"),
            ("2026-12-31T23:59:59+0100", "whose offset is no offset"),
            ("2026-12-31T23:59:59+1:00", "whose offset is no offset"),
            ("2026-12-31T23:59:59+24:00", "whose offset is no offset"),
            ("2026-12-31T23:59:59 +01:00", "whose offset is no offset"),
            ("2026-12-31T23:59:59 CET", "whose offset is no offset"),
            (
                "2026-12-31T23:59:59Z[Europe/Berlin]",
                "whose offset is no offset",
            ),
            ("2027-02-29", "there is no such day"),
            ("2027-02-29T00:00:00Z", "there is no such day"),
            ("2100-02-29", "there is no such day"),
            ("2026-13-01", "there is no such day"),
            ("2026-00-01", "there is no such day"),
            ("2026-11-31", "there is no such day"),
            ("2026-12-31T24:00:00Z", "there is no such time of day"),
            ("2026-12-31T23:60:00Z", "there is no such time of day"),
            ("2026-12-31T23:59:60Z", "there is no such time of day"),
            ("", "which is no moment"),
            ("tomorrow", "which is no moment"),
            ("7d", "which is no moment"),
            ("2026-12-31T", "which is no moment"),
            ("2026-12-31T17:00Z", "which is no moment"),
            ("2026-12-31T17:00:00.Z", "which is no moment"),
            ("2026-12-31T17:00:00.+1Z", "which is no moment"),
            ("2026-12-3", "which is no moment"),
            ("20261231", "which is no moment"),
            ("31.12.2026", "which is no moment"),
            ("+02026-12-31", "which is no moment"),
            ("12026-12-31", "which is no moment"),
            ("2026-W53-4", "which is no moment"),
            ("1796000640", "which is no moment"),
            ("２０２６-12-31", "which is no moment"),
            ("2026-12-31語", "which is no moment"),
        ] {
            let what = what(&moment(text).unwrap_err());
            assert!(what.starts_with("expires_at is "), "{what}");
            assert!(what.contains(reason), "{text}: {what}");
            assert!(
                what.contains("2027-01-31T18:00:00+01:00") && what.contains("end of that day"),
                "{what}"
            );
        }
    }

    #[test]
    fn a_moment_past_the_last_is_refused_and_the_last_is_named() {
        for text in [
            "9999-12-30",
            "9999-12-31",
            "9999-12-30T22:00:00.001Z",
            "9999-12-31T23:59:59-23:59",
        ] {
            let what = what(&moment(text).unwrap_err());
            assert!(what.contains("9999-12-30T22:00:00.000Z"), "{what}");
        }
    }

    #[test]
    fn a_time_from_now_is_a_number_and_a_unit() {
        for (text, millis) in [
            ("1m", 60_000),
            ("30m", 1_800_000),
            ("12h", 43_200_000),
            ("7d", 7 * DAY),
            ("2w", 14 * DAY),
            (" 007d ", 7 * DAY),
        ] {
            assert_eq!(from_now(text, NOW).unwrap(), NOW + millis, "{text}");
        }
        for (text, reason) in [
            ("", "which is no time"),
            ("d", "which is no time"),
            ("soon", "which is no time"),
            ("+7d", "which is no time"),
            ("٧d", "which is no time"),
            ("-7d", "lies in the past"),
            ("-", "which is no time"),
            ("0d", "no time at all"),
            ("000w", "no time at all"),
            ("7", "a number without its unit"),
            ("7s", "unit is not known"),
            ("7D", "unit is not known"),
            ("7 d", "unit is not known"),
            ("6mo", "unit is not known"),
            ("1y", "unit is not known"),
            ("1.5h", "no whole number"),
            ("1,5d", "no whole number"),
            ("1.h", "unit is not known"),
            ("1d12h", "unit is not known"),
            ("P7D", "which is no time"),
        ] {
            let what = what(&from_now(text, NOW).unwrap_err());
            assert!(what.contains(reason), "{text}: {what}");
            assert!(what.contains("12h, 7d or 2w"), "{what}");
        }
    }

    #[test]
    fn a_time_from_now_ends_at_the_last_moment() {
        let left = (LAST - NOW) / DAY;
        assert!(from_now(&format!("{left}d"), NOW).is_ok());
        for text in [
            format!("{}d", left + 1),
            format!("{}w", i64::MAX),
            format!("{}m", "9".repeat(1000)),
        ] {
            let what = what(&from_now(&text, NOW).unwrap_err());
            assert!(what.contains("9999-12-30T22:00:00.000Z"), "{what}");
            assert!(what.len() < 400, "{what}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(at in -62_167_219_200_000..=LAST, minutes in -1439..1440_i64) {
            prop_assert_eq!(moment(&rfc3339(at).to_string()).unwrap(), at);
            // The same moment on another clock.
            let (sign, ahead) = if minutes < 0 { ('-', -minutes) } else { ('+', minutes) };
            let local = at + minutes * MINUTE;
            if (-62_167_219_200_000..=LAST).contains(&local) {
                let local = rfc3339(local).to_string();
                let text = format!("{}{sign}{:02}:{:02}", &local[..23], ahead / 60, ahead % 60);
                prop_assert_eq!(moment(&text).unwrap(), at);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}", digits in "[0-9TZtz:+. -]{0,30}") {
            for text in [text, digits] {
                let _ = moment(&text);
                if let Ok(at) = from_now(&text, NOW) {
                    prop_assert!(at > NOW);
                }
            }
        }
    }
}
