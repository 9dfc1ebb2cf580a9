//! Points in time: integer Unix microseconds inside, RFC 3339 text in records.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// The last microsecond of the year 9999.
const LAST: i64 = 253_402_300_799_999_999;

/// Unix microseconds, between the years 1970 and 9999. Its text is RFC 3339 in UTC with six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// The text is not an RFC 3339 time that records can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an RFC 3339 time between the years 1970 and 9999")]
pub struct TimestampError {
    text: String,
}

impl Timestamp {
    /// The point in time so many microseconds after the Unix epoch; the nearest one that records can hold.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(0, LAST))
    }

    /// Microseconds since the Unix epoch.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Its text. Written by hand: every record has one, and formatting machinery costs more than all of this.
    pub(crate) fn text(self) -> [u8; 27] {
        let (seconds, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        // INVARIANT: the range of the type lies within the range of OffsetDateTime.
        let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = time.to_calendar_date();
        let (hour, minute, second) = time.to_hms();
        let fields = [
            (0..4, i64::from(year)),
            (5..7, i64::from(u8::from(month))),
            (8..10, i64::from(day)),
            (11..13, i64::from(hour)),
            (14..16, i64::from(minute)),
            (17..19, i64::from(second)),
            (20..26, micros),
        ];
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        for (place, value) in fields {
            put_digits(text.get_mut(place).unwrap_or_default(), value);
        }
        text
    }
}

/// Fills `place` with the last decimal digits of `value`, which is not negative.
fn put_digits(place: &mut [u8], mut value: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let error = || TimestampError {
            text: text.to_owned(),
        };
        let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| error())?;
        let micros = time
            .to_offset(UtcOffset::UTC)
            .unix_timestamp_nanos()
            .div_euclid(1000);
        let micros = i64::try_from(micros).map_err(|_| error())?;
        if (0..=LAST).contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(error())
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.text();
        serializer.serialize_str(std::str::from_utf8(&text).map_err(S::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
