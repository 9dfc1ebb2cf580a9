//! Epochs: opening, ending, settling, closing.

use policy::glob::Glob;

use super::SpoolError;
use super::draft::{FIRST_LINK, Prepared};
use super::entry::{Entry, EpochMark};
use super::log::{Held, Log};
use super::segment::{self, Summary};
use super::tail::Tail;

/// What an enrolment says about numbering.
#[derive(Clone, Debug)]
pub struct EpochGrant {
    /// Id of the sidecar.
    pub sidecar: String,
    /// Its namespace.
    pub namespace: String,
    /// The new epoch.
    pub epoch: u64,
    /// Globs over the agents that it may speak for. Records of others are kept without the agent's name.
    pub agents: Vec<String>,
    /// Epochs that the control plane has not closed, with the last number it has of each.
    pub open_epochs: Vec<(u64, u64)>,
}

/// Where an epoch stands, for delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStatus {
    /// The epoch.
    pub epoch: u64,
    /// Every number up to here may be forgotten.
    pub settled: u64,
    /// The last number given, 0 when there is none.
    pub last: u64,
    /// No further number will come.
    pub ended: bool,
    /// The control plane has taken its end.
    pub closed: bool,
}

impl Log {
    pub(super) fn open_epoch(&mut self, grant: &EpochGrant) -> Result<(), SpoolError> {
        if !self.sidecar.is_empty() && self.sidecar != grant.sidecar {
            self.begin_as_another()?;
        }
        if grant.epoch <= self.highest {
            return Err(SpoolError::EpochUsed {
                given: grant.epoch,
                highest: self.highest,
            });
        }
        self.write_backlog()?;
        for mark in self.epochs.values_mut() {
            mark.ended = true;
        }
        for (epoch, committed) in grant
            .open_epochs
            .iter()
            .filter(|(epoch, _)| *epoch != grant.epoch)
        {
            let mark = self.epochs.entry(*epoch).or_insert(EpochMark {
                epoch: *epoch,
                settled: *committed,
                last: *committed,
                previous: FIRST_LINK,
                ended: true,
                closed: false,
            });
            // A power failure can take numbers from here that the chain already has.
            mark.last = mark.last.max(*committed);
        }
        self.epochs.insert(
            grant.epoch,
            EpochMark {
                epoch: grant.epoch,
                settled: 0,
                last: 0,
                previous: FIRST_LINK,
                ended: false,
                closed: false,
            },
        );
        self.current = Some(grant.epoch);
        self.highest = grant.epoch;
        self.sidecar.clone_from(&grant.sidecar);
        self.namespace.clone_from(&grant.namespace);
        self.agents = globs(&grant.agents);
        self.write_state()?;
        self.number_drafts()
    }

    /// The control plane has lost this sidecar's id and gave another: what is not settled gets new numbers under that.
    fn begin_as_another(&mut self) -> Result<(), SpoolError> {
        tracing::warn!(
            before = self.sidecar,
            "this sidecar has a new id: unsettled records are numbered anew"
        );
        let mut orphans = Vec::new();
        let segments: Vec<_> = self.older.keys().copied().chain([self.active.id]).collect();
        for id in segments {
            segment::scan(&self.dir, id, |entry| {
                if let Entry::Record {
                    epoch, n, statement, ..
                } = entry
                    && self.epochs.get(&epoch).is_some_and(|mark| n > mark.settled)
                {
                    orphans.push(statement);
                }
            })?;
        }
        for statement in orphans {
            let key = self.take_key();
            self.append(&Entry::Draft {
                key,
                statement: statement.clone(),
            })?;
            let segment = self.active.id;
            self.drafts.insert(key, Held { segment, statement });
        }
        let empty = |summary: &mut Summary| summary.records.clear();
        self.older.values_mut().for_each(empty);
        empty(&mut self.written_to_active);
        self.tail = Tail::default();
        self.epochs.clear();
        self.current = None;
        self.highest = 0;
        Ok(())
    }

    /// Gives numbers to what ended while there was no epoch.
    fn number_drafts(&mut self) -> Result<(), SpoolError> {
        while let Some((&key, held)) = self.drafts.first_key_value() {
            match Prepared::from_statement(&held.statement) {
                Ok(mut prepared) => self.number(key, &mut prepared).map(|_| ())?,
                Err(error) => tracing::error!(%error, "a kept record cannot be read and is left out"),
            }
            self.drafts.remove(&key);
        }
        Ok(())
    }

    /// Ends the current epoch when no call is open. Later records wait for the next one.
    pub(super) fn end_epoch(&mut self) -> Result<bool, SpoolError> {
        self.write_backlog()?;
        if !self.open.is_empty() {
            return Ok(false);
        }
        if let Some(mark) = self.current.take().and_then(|epoch| self.epochs.get_mut(&epoch)) {
            mark.ended = true;
            self.write_state()?;
        }
        Ok(true)
    }

    pub(super) fn settle(&mut self, epoch: u64, through: u64) {
        let Some(mark) = self.epochs.get_mut(&epoch) else {
            return;
        };
        let settled = through.min(mark.last);
        if settled <= mark.settled {
            return;
        }
        mark.settled = settled;
        self.is_stale = true;
        self.forget();
    }

    pub(super) fn close(&mut self, epoch: u64) {
        let Some(mark) = self
            .epochs
            .get_mut(&epoch)
            .filter(|mark| mark.ended && !mark.closed)
        else {
            return;
        };
        mark.closed = true;
        self.is_stale = true;
        self.forget();
        if self.is_stale
            && let Err(error) = self.write_state()
        {
            tracing::warn!(%error, "the end of an epoch is not noted in the spool yet");
        }
    }

    fn forget(&mut self) {
        let before = self.epochs.len();
        self.epochs
            .retain(|_, mark| !(mark.closed && mark.settled >= mark.last));
        if self.epochs.len() < before
            && let Err(error) = self.write_state()
        {
            tracing::warn!(%error, "a settled epoch is not forgotten on disk yet");
        }
        let epochs = &self.epochs;
        self.tail
            .forget(|epoch, n| epochs.get(&epoch).is_none_or(|mark| n <= mark.settled));
        self.forget_settled();
    }

    pub(super) fn status(&self) -> Vec<EpochStatus> {
        let status = |mark: &EpochMark| EpochStatus {
            epoch: mark.epoch,
            settled: mark.settled,
            last: mark.last,
            ended: mark.ended,
            closed: mark.closed,
        };
        self.epochs.values().map(status).collect()
    }
}

/// The patterns that can be read.
pub(super) fn globs(texts: &[String]) -> Vec<Glob> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}
