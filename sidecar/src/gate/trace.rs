//! W3C trace context of one call, and the ids that are made here.

use std::cell::RefCell;

use chain::hash::hex;
use net::clock::Clock;

/// The trace that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// 32 hex digits.
    pub trace_id: String,
    /// The span of this call, 16 hex digits.
    pub span_id: String,
    /// The caller's span.
    pub parent_span_id: Option<String>,
    /// Two hex digits.
    flags: String,
}

impl TraceContext {
    /// Continues the caller's `traceparent`, or begins a trace where there is none that is valid.
    pub fn begin(traceparent: Option<&str>) -> Self {
        let random: [u8; 24] = random_bytes();
        let (trace, span) = random.split_at(16);
        let span_id = hex(span);
        match traceparent.and_then(parse) {
            Some((trace_id, parent, flags)) => Self {
                trace_id: trace_id.to_owned(),
                span_id,
                parent_span_id: Some(parent.to_owned()),
                flags: flags.to_owned(),
            },
            None => Self {
                trace_id: hex(trace),
                span_id,
                parent_span_id: None,
                flags: "01".to_owned(),
            },
        }
    }

    /// The `traceparent` for whom this call calls.
    pub fn traceparent(&self) -> String {
        ["00-", &self.trace_id, "-", &self.span_id, "-", &self.flags].concat()
    }
}

/// W3C Trace Context 1, section 3.2: version, trace id, parent id, flags; zero ids and version `ff` are invalid.
fn parse(text: &str) -> Option<(&str, &str, &str)> {
    let mut parts = text.trim().split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let lower_hex = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let zero = |text: &str| text.bytes().all(|byte| byte == b'0');
    let ends = version != "00" || parts.next().is_none();
    (lower_hex(version, 2)
        && version != "ff"
        && lower_hex(trace, 32)
        && lower_hex(parent, 16)
        && lower_hex(flags, 2)
        && !zero(trace)
        && !zero(parent)
        && ends)
        .then_some((trace, parent, flags))
}

/// A UUIDv7 by `clock`'s wall time: the id of a call and of its record.
pub fn call_id(clock: &Clock) -> uuid::Uuid {
    let millis = u64::try_from(clock.wall_micros() / 1000).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(millis, &random_bytes()).into_uuid()
}

/// Random bytes that are drawn from the operating system at once; each is handed out once. A call needs some three times,
/// and asking the operating system each time costs more than using them.
const DRAWN: usize = 1024;

/// Drawn bytes, and how many of them were handed out.
struct Drawn {
    bytes: [u8; DRAWN],
    used: usize,
}

thread_local! {
    static RANDOM: RefCell<Drawn> = const { RefCell::new(Drawn { bytes: [0; DRAWN], used: DRAWN }) };
}

impl Drawn {
    /// Fills `out` with bytes that were not handed out before; `false`: there are none.
    fn hand_out(&mut self, out: &mut [u8]) -> bool {
        if self.used + out.len() > DRAWN {
            if getrandom::fill(&mut self.bytes).is_err() {
                return false;
            }
            self.used = 0;
        }
        let end = self.used + out.len();
        let Some(fresh) = self.bytes.get_mut(self.used..end) else {
            return false;
        };
        out.copy_from_slice(fresh);
        // A salt must not be found in memory after its record.
        fresh.fill(0);
        self.used = end;
        true
    }
}

/// Random bytes of the operating system; when it has none, ids fall back to what the uuid library draws.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0u8; N];
    let is_filled = RANDOM.with(|drawn| {
        drawn
            .try_borrow_mut()
            .is_ok_and(|mut drawn| drawn.hand_out(&mut bytes))
    });
    if !is_filled {
        for chunk in bytes.chunks_mut(16) {
            let fallback = uuid::Uuid::new_v4();
            for (byte, drawn) in chunk.iter_mut().zip(fallback.as_bytes()) {
                *byte = *drawn;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_traceparent_is_continued() {
        let trace = TraceContext::begin(Some(PARENT));
        assert_eq!(trace.trace_id, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.parent_span_id.as_deref(), Some("00f067aa0ba902b7"));
        assert_eq!(trace.span_id.len(), 16);
        assert!(parse(&trace.traceparent()).is_some());
    }

    #[test]
    fn an_invalid_traceparent_begins_a_new_trace() {
        for text in [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x",
            "00-short-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::begin(Some(text)).parent_span_id, None, "{text}");
        }
    }

    #[test]
    fn random_bytes_are_handed_out_once() {
        let drawn: std::collections::HashSet<[u8; 24]> = (0..1000).map(|_| random_bytes()).collect();
        assert_eq!(drawn.len(), 1000);
    }

    #[test]
    fn a_call_id_is_a_uuid_of_version_7_by_the_clock() {
        let id = call_id(&Clock::manual());
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_timestamp().unwrap().to_unix().0, 1_767_225_600);
    }
}
