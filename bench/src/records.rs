//! Records such as a sidecar reports them: one allowed read each.

use chain::hash::Hash;
use chain::payload::Payload;
use chain::record::{Revision, SourceRecord};
use chain::source::SourceChain;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Action, IdentityStrength, Outcome, RecordKind};
use proto::v1::{Record, RecordBatch};
use serde_json::value::RawValue;

use crate::error::{Result, unexpected};

const PARAMS: &str = r#"{"path":"/data/reports/2026/week-31.txt","message":"what the weather was like in Lisbon last week","n":100000000042}"#;

/// Makes the records of one epoch, one after the other.
pub struct Source {
    chain: SourceChain,
    template: SourceRecord,
    payload: Payload,
}

impl Source {
    /// Of a sidecar's epoch.
    ///
    /// # Errors
    /// When the payload's text is not JSON.
    pub fn new(sidecar: &str, epoch: u64) -> Result<Self> {
        let mut payload = Payload::new([7; 16]);
        payload.params = Some(RawValue::from_string(PARAMS.to_owned()).map_err(unexpected)?);
        Ok(Self {
            chain: SourceChain::new(sidecar.to_owned(), epoch),
            template: template(),
            payload,
        })
    }

    /// The next record: its number, its text, its payload's text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn seal_next(&mut self) -> Result<(u64, String, String)> {
        let random = Hash::of(&[self.chain.prev().as_bytes()]).to_string();
        let random: String = random.chars().take(12).collect();
        self.template.id = format!("019c0f3e-0000-7000-8000-{random}");
        let payload = self.payload.seal().map_err(unexpected)?;
        self.template.payload_digest = Some(payload.digest);
        let sealed = self.chain.seal(&mut self.template).map_err(unexpected)?;
        Ok((sealed.n, sealed.text, payload.text))
    }

    /// `count` records in batches.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn batches(&mut self, count: usize, batch: usize) -> Result<Vec<RecordBatch>> {
        let epoch = self.chain.epoch();
        let mut batches = Vec::new();
        let mut left = count;
        while left > 0 {
            let size = left.min(batch.max(1));
            let records: Result<_> = (0..size).map(|_| self.record()).collect();
            batches.push(RecordBatch {
                epoch,
                records: records?,
            });
            left -= size;
        }
        Ok(batches)
    }

    fn record(&mut self) -> Result<Record> {
        let (n, source, payload) = self.seal_next()?;
        Ok(Record {
            n,
            source: source.into(),
            payload: payload.into(),
        })
    }
}

fn template() -> SourceRecord {
    let time = Timestamp::from_micros(1_790_000_000_000_000);
    let mut record = SourceRecord::new(
        String::new(),
        time,
        RecordKind::Call,
        "default".to_owned(),
        Outcome::Ok,
    );
    record.agent = Some("bench".to_owned());
    record.identity = Some(IdentityStrength::Asserted);
    record.tool = Some("echo.echo".into());
    record.upstream = Some("echo".to_owned());
    record.fingerprint = Some(Hash::ZERO);
    record.action = Some(Action::Allow);
    record.rule = Some("bench".to_owned());
    record.rule_index = Some(19);
    record.revision = Some(Revision {
        generation: 1,
        number: 42,
    });
    record.risk = Some("READ".into());
    record.risks = vec!["READ".into()];
    record.side_effect = Some("read".into());
    record.latency_ms = Some(12);
    record.upstream_ms = Some(11);
    record.decision_us = Some(3);
    record.request_bytes = Some(120);
    record.response_bytes = Some(300);
    record.trace_id = Some("0123456789abcdef0123456789abcdef".to_owned());
    record.span_id = Some("0123456789abcdef".to_owned());
    record
}
