//! The canonical text of a record, written field by field.
//!
//! Serde writes the same (a test says so) and costs several times as much: a record is written twice for each call, and once
//! more wherever one is taken in.

use std::borrow::Cow;

use crate::hash::Hash;
use crate::record::{Approval, FloorHit, Revision, Shadow, SourceRecord};
use crate::timestamp::Timestamp;
use crate::vocabulary::{Action, IdentityStrength, Outcome, Reason, RecordKind};

/// The text of most records takes no more.
const USUAL: usize = 1280;

/// A value as it stands in a record's text.
trait Put {
    /// Whether the field is left out.
    fn is_absent(&self) -> bool {
        false
    }

    fn put(&self, out: &mut String) -> Result<(), serde_json::Error>;
}

/// Writes the fields in the order that is given. It names all of them: a record with one more does not compile.
macro_rules! put_fields {
    ($record:ident, $out:ident; $first:ident, $($field:ident,)+) => {
        let SourceRecord { $first, $($field,)+ } = $record;
        $out.push_str(concat!("{\"", stringify!($first), "\":"));
        $first.put(&mut $out)?;
        $(if !$field.is_absent() {
            $out.push_str(concat!(",\"", stringify!($field), "\":"));
            $field.put(&mut $out)?;
        })+
        $out.push('}');
    };
}

/// The text of a record.
pub(crate) fn text(record: &SourceRecord) -> Result<String, serde_json::Error> {
    let mut out = String::with_capacity(USUAL);
    put_fields! {
        record, out;
        id, time, kind, namespace, sidecar, epoch, n, source_prev, stands_for, agent, identity, user, session, tool,
        upstream, fingerprint, action, rule, rule_index, revision, floors, shadow, grant, approval, capability, risk,
        risks, side_effect, outcome, reason, status_code, exit_code, latency_ms, upstream_ms, decision_us,
        request_bytes, response_bytes, tokens_in, tokens_out, trace_id, span_id, parent_span_id, payload_digest,
    }
    Ok(out)
}

impl<T: Put> Put for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        self.as_ref().map_or(Ok(()), |value| value.put(out))
    }
}

impl<T: Put> Put for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        for (index, value) in self.iter().enumerate() {
            out.push(if index == 0 { '[' } else { ',' });
            value.put(out)?;
        }
        out.push(']');
        Ok(())
    }
}

impl Put for str {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        // Without a branch per byte: nearly every text of a record is plain.
        let is_plain = self.bytes().fold(true, |is_plain, byte| {
            is_plain & (byte >= 0x20) & (byte != b'"') & (byte != b'\\')
        });
        if is_plain {
            put_plain(self, out);
        } else {
            out.push_str(&serde_json::to_string(self)?);
        }
        Ok(())
    }
}

impl Put for String {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        self.as_str().put(out)
    }
}

impl Put for Cow<'static, str> {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        self.as_ref().put(out)
    }
}

impl Put for Hash {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        // INVARIANT: hexadecimal digits are UTF-8.
        put_plain(std::str::from_utf8(&self.text()).unwrap_or_default(), out);
        Ok(())
    }
}

impl Put for Timestamp {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        // INVARIANT: digits and separators are UTF-8.
        put_plain(std::str::from_utf8(&self.text()).unwrap_or_default(), out);
        Ok(())
    }
}

impl Put for Revision {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        let Self { generation, number } = self;
        out.push_str("{\"generation\":");
        put_number(*generation, out);
        out.push_str(",\"number\":");
        put_number(*number, out);
        out.push('}');
        Ok(())
    }
}

macro_rules! put_numbers {
    ($($number:ty),+) => {$(
        impl Put for $number {
            fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
                put_number(u64::from(*self), out);
                Ok(())
            }
        }
    )+};
}

put_numbers!(u16, u32, u64);

impl Put for i32 {
    fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
        if self.is_negative() {
            out.push('-');
        }
        put_number(u64::from(self.unsigned_abs()), out);
        Ok(())
    }
}

/// Names of closed lists need no escapes.
macro_rules! put_names {
    ($($list:ty),+) => {$(
        impl Put for $list {
            fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
                put_plain(self.name(), out);
                Ok(())
            }
        }
    )+};
}

put_names!(RecordKind, IdentityStrength, Action, Outcome, Reason);

/// What few records have is written by serde.
macro_rules! put_rare {
    ($($rare:ty),+) => {$(
        impl Put for $rare {
            fn put(&self, out: &mut String) -> Result<(), serde_json::Error> {
                out.push_str(&serde_json::to_string(self)?);
                Ok(())
            }
        }
    )+};
}

put_rare!(FloorHit, Shadow, Approval);

fn put_plain(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

fn put_number(number: u64, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut rest = number;
    let mut length = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        length += 1;
        if rest == 0 {
            break;
        }
    }
    let written = digits.get(digits.len() - length..).unwrap_or_default();
    // INVARIANT: digits are UTF-8.
    out.push_str(std::str::from_utf8(written).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::record::Text;

    fn words() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z0-9_.-]{0,24}", any::<String>(), "[\\x00-\\x7f]{0,12}"]
    }

    fn name() -> impl Strategy<Value = Text> {
        words().prop_map(Cow::Owned)
    }

    fn hash() -> impl Strategy<Value = Hash> {
        any::<[u8; 32]>().prop_map(Hash::from_bytes)
    }

    fn approval() -> impl Strategy<Value = Approval> {
        let confidence = of(0.0..1.0);
        (
            words(),
            name(),
            of(words()),
            of(name()),
            of(words()),
            confidence,
            of(any::<u64>()),
        )
            .prop_map(|(id, status, by, via, reasoning, confidence, wait_ms)| Approval {
                id,
                status,
                by,
                via,
                reasoning,
                confidence,
                wait_ms,
            })
    }

    prop_compose! {
        /// Who called what, from where.
        fn called()(
            id in words(), micros in any::<i64>(), kind in select(RecordKind::ALL), namespace in words(),
            sidecar in of(name()), epoch in of(any::<u64>()), n in of(any::<u64>()), source_prev in of(hash()),
            stands_for in of(hash()), identity in of(select(IdentityStrength::ALL)),
            (agent, user, session, tool) in (of(words()), of(words()), of(words()), of(name())),
        ) -> SourceRecord {
            let time = Timestamp::from_micros(micros);
            SourceRecord {
                sidecar, epoch, n, source_prev, stands_for, agent, identity, user, session, tool,
                ..SourceRecord::new(id, time, kind, namespace, Outcome::Ok)
            }
        }
    }

    prop_compose! {
        /// What was decided.
        fn decided()(
            record in called(), upstream in of(words()), fingerprint in of(hash()),
            action in of(select(Action::ALL)), rule in of(words()), rule_index in of(any::<u32>()),
            revision in of(any::<(u64, u64)>()), floors in vec((name(), select(Action::ALL)), 0..3),
            shadow in of((select(Action::ALL), of(words()), of(any::<u32>()))),
            (grant, approval, capability) in (of(words()), of(approval()), of(name())),
            (risk, risks, side_effect) in (of(name()), vec(name(), 0..3), of(name())),
        ) -> SourceRecord {
            SourceRecord {
                upstream, fingerprint, action, rule, rule_index, grant, approval, capability, risk, risks, side_effect,
                revision: revision.map(|(generation, number)| Revision { generation, number }),
                floors: floors.into_iter().map(|(name, action)| FloorHit { name, action }).collect(),
                shadow: shadow.map(|(action, rule, rule_index)| Shadow { action, rule, rule_index }),
                ..record
            }
        }
    }

    prop_compose! {
        /// And how it ended.
        fn record()(
            record in decided(), outcome in select(Outcome::ALL), reason in of(select(Reason::ALL)),
            status_code in of(any::<u16>()), exit_code in of(any::<i32>()),
            (latency_ms, upstream_ms, decision_us) in (of(any::<u64>()), of(any::<u64>()), of(any::<u64>())),
            (request_bytes, response_bytes) in (of(any::<u64>()), of(any::<u64>())),
            (tokens_in, tokens_out) in (of(any::<u64>()), of(0..2000_u64)),
            (trace_id, span_id, parent_span_id) in (of(words()), of(words()), of(words())),
            payload_digest in of(hash()),
        ) -> SourceRecord {
            SourceRecord {
                outcome, reason, status_code, exit_code, latency_ms, upstream_ms, decision_us, request_bytes,
                response_bytes, tokens_in, tokens_out, trace_id, span_id, parent_span_id, payload_digest,
                ..record
            }
        }
    }

    proptest! {
        #[test]
        fn the_text_is_what_serde_writes(record in record()) {
            prop_assert_eq!(super::text(&record).unwrap(), serde_json::to_string(&record).unwrap());
        }
    }

    #[test]
    fn a_record_with_nothing_optional_has_no_more_than_it_must() {
        let time = Timestamp::from_micros(0);
        let record = SourceRecord::new("a\"b".into(), time, RecordKind::Act, String::new(), Outcome::Ok);
        assert_eq!(
            super::text(&record).unwrap(),
            r#"{"id":"a\"b","time":"1970-01-01T00:00:00.000000Z","kind":"act","namespace":"","outcome":"ok"}"#
        );
    }
}
