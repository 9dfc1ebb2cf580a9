//! Durations (`4m30s`) and sizes (`16MiB`) as people write them in the configuration.

use std::time::Duration;

const DURATIONS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
const SIZES: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Reads one or more whole numbers, each with its unit.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut millis = 0_u64;
    while !rest.is_empty() || text.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(
            tail.find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(tail.len()),
        );
        let (_, scale) = DURATIONS.iter().find(|(name, _)| *name == unit)?;
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(*scale)?)?;
        rest = tail;
    }
    Some(Duration::from_millis(millis))
}

/// Reads a number of bytes: a whole number, with or without a unit.
pub(crate) fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (_, scale) = SIZES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_start()))?;
    number.parse::<u64>().ok()?.checked_mul(*scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_units() {
        assert_eq!(duration("4m30s"), Some(Duration::from_secs(270)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for text in [
            "",
            "5",
            "m",
            "-5s",
            "1.5h",
            "5 s",
            "5x",
            "5s3",
            "99999999999999999999s",
            "999999999999999999d",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_may_have_units() {
        assert_eq!(size("16MiB"), Some(16 << 20));
        assert_eq!(size("16 mib"), Some(16 << 20));
        assert_eq!(size("4096"), Some(4096));
        for text in ["", "MiB", "-1", "1.5MiB", "4 parsecs", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
