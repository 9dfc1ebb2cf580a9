//! Durations as people write them: `4m30s`, `1.5h`, `250ms`, `30d`.

use std::time::Duration;

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Why text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write numbers with units (ms, s, m, h, d), such as 4m30s")]
pub struct DurationError {
    text: String,
}

/// Reads a duration: one or more numbers, each with its unit, largest or smallest first. `0` needs none.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    read(text).map(Duration::from_nanos).ok_or_else(|| DurationError {
        text: text.to_owned(),
    })
}

fn read(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() || text.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, *nanos)?)?;
        rest = tail;
    }
    Some(total)
}

/// `number` (digits, optionally a fraction) times `unit`, exactly, cut below a nanosecond.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > 9 {
        return None;
    }
    let nanos = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(nanos);
    }
    let parts = u128::from(fraction.parse::<u64>().ok()?);
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    nanos.checked_add(u64::try_from(parts * u128::from(unit) / scale).ok()?)
}

/// Writes a duration as [`parse`] reads it: hours, minutes and seconds, parts that are zero left out,
/// `250ms` below a second, `0s` for none. Rounded down to milliseconds.
pub fn format(duration: Duration) -> String {
    let (seconds, below_minute) = (duration.as_secs(), duration.as_secs() % 60);
    let millis = duration.subsec_millis();
    if seconds == 0 && millis > 0 {
        return format!("{millis}ms");
    }
    let mut text = String::new();
    for (value, unit) in [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm')] {
        if value > 0 {
            text.push_str(&format!("{value}{unit}"));
        }
    }
    if millis > 0 {
        let fraction = format!("{millis:03}");
        text.push_str(&format!("{}.{}s", below_minute, fraction.trim_end_matches('0')));
    } else if below_minute > 0 || text.is_empty() {
        text.push_str(&format!("{below_minute}s"));
    }
    text
}

/// For `#[serde(with = "net::duration::text")]`: a `Duration` field that is text in JSON.
pub mod text {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes `4m30s`.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::format(*duration))
    }

    /// Reads `4m30s`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, millis) in [
            ("4m30s", 270_000),
            ("30m", 1_800_000),
            ("1.5h", 5_400_000),
            ("250ms", 250),
            ("1h0m0s", 3_600_000),
            ("0", 0),
            ("0s", 0),
            ("30d", 2_592_000_000),
            ("1.25s", 1250),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "5",
            "m",
            "-5s",
            "5 s",
            "5x",
            "1.s",
            ".5s",
            "s5",
            "1..2s",
            "99999999999999d",
            "5s3",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("5").unwrap_err().to_string().contains("4m30s"));
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for text in ["4m30s", "1h", "1h0.5s", "24h", "250ms", "0s", "59s", "1.25s"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
