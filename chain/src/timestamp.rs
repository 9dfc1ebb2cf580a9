//! Points in time: integer Unix microseconds inside, RFC 3339 text in records.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
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
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        // INVARIANT: the range of the type lies within the range of OffsetDateTime.
        let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = time.to_calendar_date();
        let (hour, minute, second) = time.to_hms();
        let month = u8::from(month);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        )
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
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
