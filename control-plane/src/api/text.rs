//! Values as JSON shows them.

use std::time::Duration;

use chain::timestamp::Timestamp;
use serde_json::value::RawValue;

use crate::store::Micros;

/// RFC 3339, UTC.
pub(super) fn time(micros: Micros) -> String {
    Timestamp::from_micros(micros).to_string()
}

/// Whole seconds left until `end`, as `4m30s`.
pub(super) fn remaining(end: Micros, now: Micros) -> String {
    let seconds = u64::try_from(end.saturating_sub(now))
        .unwrap_or(0)
        .div_ceil(1_000_000);
    net::duration::format(Duration::from_secs(seconds))
}

/// A length of whole days as such, any other as `4m30s`.
pub(super) fn days(length: Duration) -> String {
    const DAY: u64 = 24 * 3_600;
    match length.as_secs() {
        seconds if seconds > DAY && seconds.is_multiple_of(DAY) => format!("{}d", seconds / DAY),
        _ => net::duration::format(length),
    }
}

/// Stored JSON as it is; `null` when there is none or it cannot be read.
pub(super) fn json(bytes: &[u8]) -> Box<RawValue> {
    serde_json::from_slice(bytes).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// `None` for empty text.
pub(super) fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
