//! Spans of time and moments, as options take them: `7d`, `12h`, `2w`.

use std::str::FromStr;
use std::time::Duration;

use remora_host::Instant;

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A span of time: a whole number and a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(Duration);

impl Span {
    /// How long it is.
    pub(crate) const fn length(self) -> Duration {
        self.0
    }

    /// The moment that lies so far before another.
    pub(crate) fn before(self, now: Instant) -> Instant {
        let millis = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
        Instant::from_millis_clamped(now.millis().saturating_sub(millis))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text} is no span of time: it is a whole number and s (seconds), m (minutes), \
                 h (hours), d (days) or w (weeks), such as 30s, 12h, 7d or 2w"
            )
        };
        let unit = match text.as_bytes().last() {
            Some(b's') => SECOND,
            Some(b'm') => MINUTE,
            Some(b'h') => HOUR,
            Some(b'd') => DAY,
            Some(b'w') => WEEK,
            _ => return Err(wrong()),
        };
        // The unit is one byte.
        let number = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = number.checked_mul(unit).ok_or_else(wrong)?;
        Ok(Self(Duration::from_secs(seconds)))
    }
}

/// A span of time in days where only the number stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Days(pub(crate) Span);

impl FromStr for Days {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let span = if whole {
            format!("{text}d")
        } else {
            text.to_owned()
        };
        span.parse().map(Self)
    }
}

/// From when on: so long ago, or a moment, or a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// So long before now.
    Ago(Span),
    /// From this moment on.
    At(Instant),
}

impl Since {
    /// The moment that is meant.
    pub(crate) fn moment(self, now: Instant) -> Instant {
        match self {
            Self::Ago(span) => span.before(now),
            Self::At(moment) => moment,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(span) = text.parse() {
            return Ok(Self::Ago(span));
        }
        let moment = match text.parse::<jiff::Timestamp>() {
            Ok(moment) => Some(moment),
            // A day alone is its beginning in UTC. Whatever has a time must say
            // whose clock it is on, and was read above.
            Err(_) if text.len() == "2027-01-31".len() => {
                text.parse::<jiff::civil::Date>().ok().and_then(|day| {
                    let midnight = day.to_datetime(jiff::civil::Time::midnight());
                    jiff::tz::Offset::UTC.to_timestamp(midnight).ok()
                })
            }
            Err(_) => None,
        };
        moment
            .and_then(|moment| Instant::from_millis(moment.as_millisecond()))
            .map(Self::At)
            .ok_or_else(|| {
                format!(
                    "{text} is neither a span of time such as 12h, 7d or 2w, nor a day such as \
                     2027-01-31, nor a moment with its offset such as 2027-01-31T18:00:00+01:00"
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        text.parse::<Span>()
            .ok()
            .map(|span| span.length().as_secs())
    }

    #[test]
    fn a_span_is_a_whole_number_and_a_unit() {
        assert_eq!(seconds("30s"), Some(30));
        assert_eq!(seconds("90m"), Some(5_400));
        assert_eq!(seconds("12h"), Some(43_200));
        assert_eq!(seconds("7d"), Some(604_800));
        assert_eq!(seconds("2w"), Some(1_209_600));
        assert_eq!(seconds("0d"), Some(0));
        for text in [
            "", "d", "7", "7 d", "-7d", "+7d", "1.5d", "7D", "7y", "٧d", "7dd", "é",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(seconds(&format!("{}w", u64::MAX)), None);
    }

    #[test]
    fn a_number_alone_is_days_where_days_are_asked_for() {
        assert_eq!("30".parse::<Days>(), "30d".parse::<Span>().map(Days));
        assert_eq!("2w".parse::<Days>(), "14".parse::<Days>());
        assert!("x".parse::<Days>().is_err());
    }

    #[test]
    fn since_is_a_span_a_day_or_a_moment() {
        let now = Instant::from_millis_clamped(1_796_000_673_042);
        let since = |text: &str| {
            text.parse::<Since>()
                .map(|since| since.moment(now).to_string())
        };
        assert_eq!(since("1d").as_deref(), Ok("2026-11-29T01:04:33.042Z"));
        assert_eq!(
            since("2026-11-29").as_deref(),
            Ok("2026-11-29T00:00:00.000Z")
        );
        assert_eq!(
            since("2026-11-29T01:00:00+01:00").as_deref(),
            Ok("2026-11-29T00:00:00.000Z")
        );
        for text in [
            "yesterday",
            "2026-11-29T01:00:00",
            "2026-13-01",
            "20261129",
            "",
        ] {
            assert!(since(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_span_longer_than_all_time_ends_at_its_beginning() {
        let now = Instant::from_millis_clamped(0);
        let span: Span = "99999999999w".parse().expect("a span");
        assert_eq!(span.before(now).to_string(), "0000-01-01T00:00:00.000Z");
    }
}
