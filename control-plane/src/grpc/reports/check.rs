//! Whether a batch of records is one that this sidecar may report.

use chain::hash::Hash;
use chain::vocabulary::RecordKind;
use policy::glob::Glob;
use proto::v1::{Record, RecordBatch};
use tonic::Status;

use crate::auth::Claims;
use crate::grpc::refusal::Refused;
use crate::store::records::{Incoming, IncomingRecord, IngestBatch, RefusedRecord};

/// Characters of a refusal's reason that are kept.
const LONGEST_REASON: usize = 300;

/// Checks batches against one credential.
pub(super) struct Checker {
    claims: Claims,
    agents: Vec<Glob>,
    /// The agent that was found to be in scope last: batches are mostly of one.
    last_agent: String,
}

impl Checker {
    pub(super) fn new(claims: Claims) -> Self {
        let agents = claims
            .agents
            .iter()
            .filter_map(|glob| glob.parse().ok())
            .collect();
        Self {
            claims,
            agents,
            last_agent: String::new(),
        }
    }

    /// The batch in the store's form.
    ///
    /// # Errors
    /// `out_of_scope` for an epoch that is not this sidecar's, invalid argument for what is no batch. One record that may not be
    /// reported is refused on its own: the others do not wait for it.
    pub(super) fn check(&mut self, batch: RecordBatch) -> Result<IngestBatch, Status> {
        if batch.epoch == 0 || batch.epoch > self.claims.epoch {
            return Err(out_of_scope(format!(
                "epoch {} is not one of this sidecar's so far",
                batch.epoch
            )));
        }
        let mut before = None;
        for record in &batch.records {
            if before.is_some_and(|before: u64| before.checked_add(1) != Some(record.n)) {
                return Err(Status::invalid_argument(format!(
                    "record {} of epoch {} does not follow the one before it",
                    record.n, batch.epoch
                )));
            }
            before = Some(record.n);
        }
        let records = batch
            .records
            .into_iter()
            .map(|record| self.incoming(record, batch.epoch))
            .collect();
        Ok(IngestBatch {
            sidecar: self.claims.sidecar.clone(),
            epoch: batch.epoch,
            records,
        })
    }

    fn incoming(&mut self, record: Record, epoch: u64) -> Incoming {
        let Record { n, source, payload } = record;
        let link = Hash::of(&[&source]);
        let read = IncomingRecord::decode(n, source, payload).map_err(|error| error.to_string());
        match read.and_then(|record| self.check_one(&record, epoch).map(|()| record)) {
            Ok(record) => Incoming::Record(Box::new(record)),
            Err(reason) => {
                tracing::warn!(sidecar = %self.claims.sidecar, epoch, n, reason, "a record is refused; the chain says so in its place");
                Incoming::Refused(RefusedRecord {
                    n,
                    link,
                    namespace: self.claims.namespace.clone(),
                    reason: reason.chars().take(LONGEST_REASON).collect(),
                })
            }
        }
    }

    fn check_one(&mut self, record: &IncomingRecord, epoch: u64) -> Result<(), String> {
        let source = &record.record;
        if source.namespace != self.claims.namespace {
            return Err("it is of another namespace".to_owned());
        }
        let is_own = source.sidecar.as_deref() == Some(self.claims.sidecar.as_str())
            && source.epoch == Some(epoch)
            && source.n == Some(record.n)
            && source.source_prev.is_some()
            && source.stands_for.is_none();
        if !is_own {
            return Err(
                "it says another sidecar, epoch or number of itself, links no other, or stands for another"
                    .to_owned(),
            );
        }
        match source.kind {
            RecordKind::Call | RecordKind::Decision => {}
            RecordKind::Act => {
                return Err("it is of a governance act, which only the control plane records".to_owned());
            }
        }
        match &source.agent {
            Some(agent) if *agent != self.last_agent => {
                if !self.agents.iter().any(|glob| glob.matches(agent)) {
                    return Err(format!(
                        "it is of agent `{agent}`, which this sidecar may not speak for"
                    ));
                }
                self.last_agent.clone_from(agent);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn out_of_scope(message: String) -> Status {
    Refused::OutOfScope.status(message)
}

#[cfg(test)]
mod tests {
    use chain::record::SourceRecord;
    use chain::timestamp::Timestamp;
    use chain::vocabulary::Outcome;

    use super::*;

    fn checker() -> Checker {
        Checker::new(Claims {
            sidecar: "s".into(),
            namespace: "prod".into(),
            epoch: 2,
            agents: vec!["support-*".into()],
            upstreams: vec![],
            expires_at: 0,
        })
    }

    fn batch(epoch: u64, numbers: &[u64], agent: &str, namespace: &str) -> RecordBatch {
        batch_of(RecordKind::Call, epoch, numbers, agent, namespace)
    }

    fn batch_of(kind: RecordKind, epoch: u64, numbers: &[u64], agent: &str, namespace: &str) -> RecordBatch {
        let record = |n: &u64| {
            let time = Timestamp::from_micros(0);
            let mut source = SourceRecord::new("x".into(), time, kind, namespace.into(), Outcome::Ok);
            source.sidecar = Some("s".into());
            source.epoch = Some(epoch);
            source.n = Some(*n);
            source.source_prev = Some(Hash::ZERO);
            source.agent = Some(agent.into());
            Record {
                n: *n,
                source: source.encode().unwrap().into(),
                payload: Vec::new().into(),
            }
        };
        RecordBatch {
            epoch,
            records: numbers.iter().map(record).collect(),
        }
    }

    #[test]
    fn records_inside_the_credential_are_taken() {
        let taken = checker().check(batch(1, &[4, 5], "support-1", "prod")).unwrap();
        assert_eq!(taken.records.len(), 2);
    }

    fn is_refused(batch: RecordBatch) -> bool {
        let taken = checker().check(batch).unwrap();
        matches!(taken.records.as_slice(), [Incoming::Refused(_)])
    }

    #[test]
    fn a_record_outside_the_credential_is_refused_and_no_other() {
        for wrong in [
            batch(1, &[1], "billing", "prod"),
            batch(1, &[1], "support-1", "dev"),
        ] {
            assert!(is_refused(wrong));
        }
        let mut mixed = batch(1, &[1, 2, 3], "support-1", "prod");
        mixed.records[1].source = "no record".into();
        let taken = checker().check(mixed).unwrap().records;
        assert!(matches!(
            taken.as_slice(),
            [
                Incoming::Record(_),
                Incoming::Refused(RefusedRecord { n: 2, .. }),
                Incoming::Record(_)
            ]
        ));
    }

    #[test]
    fn an_epoch_of_another_process_refuses_the_batch() {
        for epoch in [0, 3] {
            let refused = checker().check(batch(epoch, &[1], "support-1", "prod"));
            assert_eq!(refused.unwrap_err().code(), tonic::Code::PermissionDenied);
        }
    }

    #[test]
    fn a_sidecar_cannot_record_a_governance_act() {
        assert!(is_refused(batch_of(
            RecordKind::Act,
            1,
            &[1],
            "support-1",
            "prod"
        )));
        assert!(!is_refused(batch_of(
            RecordKind::Decision,
            1,
            &[1],
            "support-1",
            "prod"
        )));
    }

    #[test]
    fn a_hole_inside_a_batch_is_no_batch() {
        let error = checker()
            .check(batch(1, &[1, 3], "support-1", "prod"))
            .unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument);
    }
}
