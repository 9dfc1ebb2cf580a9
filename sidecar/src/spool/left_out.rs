//! Refusals beyond their share of the room: counted, and said in one record.

use chain::payload::Payload;
use chain::record::SourceRecord;
use chain::timestamp::Timestamp;
use chain::vocabulary::Reason;

use super::SpoolError;
use super::draft::{Draft, Prepared};

/// Refusals that were not recorded one by one.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    count: u64,
    since: Timestamp,
    /// What the last one would have said.
    last: SourceRecord,
}

impl LeftOut {
    /// Counts one more.
    pub(super) fn with(before: Option<Self>, refused: &SourceRecord) -> Self {
        Self {
            count: before.as_ref().map_or(0, |before| before.count) + 1,
            since: before.map_or(refused.time, |before| before.since),
            last: refused.clone(),
        }
    }

    /// The one record that stands for all of them; it is of no agent and of no tool in particular.
    pub(super) fn summary(&self) -> Result<Prepared, SpoolError> {
        let random = || {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(|error| SpoolError::Invalid {
                reason: error.to_string(),
            })?;
            Ok::<_, SpoolError>(bytes)
        };
        let millis = u64::try_from(self.last.time.micros() / 1000).unwrap_or_default();
        let [drawn @ .., _, _, _, _, _, _] = random()?;
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &drawn).into_uuid();
        let mut source = SourceRecord::new(
            id.to_string(),
            self.last.time,
            self.last.kind,
            self.last.namespace.clone(),
            self.last.outcome,
        );
        source.reason = Some(Reason::AuditUnavailable);
        let mut payload = Payload::new(random()?);
        payload.error = Some(format!(
            "{} refusals since {} have no record of their own: the refusals' share of the spool was used up",
            self.count, self.since
        ));
        Prepared::new(Draft {
            source,
            payload: Some(payload),
        })
    }
}
