//! The newest statement of the trace chain's head that this sidecar was given: what it is told later may not be behind it.

use std::time::Duration;

use proto::v1::{CheckpointNotice, CheckpointRef};
use tokio::time::Instant;

use super::kept;
use super::shared::Shared;

/// How long a checkpoint that the chain contradicts is not held against the control plane again by a new stream.
const STATED_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The checkpoint that is held.
#[derive(Debug)]
pub(super) struct Held {
    notice: Option<CheckpointNotice>,
    /// When a stream was last opened anew to state it.
    stated: Option<Instant>,
}

/// What a notice was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is held from now on, or was left out with an alarm.
    Settled,
    /// The chain is behind what is held: the control plane must be told, by the Hello of a new stream, so that it begins a generation.
    Behind,
}

impl Held {
    /// What an earlier process kept.
    pub(super) fn load(shared: &Shared) -> Self {
        Self {
            notice: kept::load_checkpoint(&shared.dir),
            stated: None,
        }
    }

    /// What a Hello states.
    pub(super) fn notice(&self) -> Option<CheckpointNotice> {
        self.notice.clone()
    }

    /// Takes the newest statement.
    pub(super) fn hear(&mut self, notice: CheckpointNotice, shared: &Shared) -> Heard {
        let Some(at) = proven(&notice, shared) else {
            tracing::error!("a checkpoint is not signed by a known key and is left out");
            return Heard::Settled;
        };
        let held = self.notice.as_ref().and_then(|held| held.at.as_ref());
        if let Some(held) = held.filter(|held| contradicts(held, &at)) {
            tracing::error!(
                held_generation = held.generation,
                held_seq = held.seq,
                generation = at.generation,
                seq = at.seq,
                "ALARM: the trace chain is behind a checkpoint that this sidecar holds, or contradicts it"
            );
            return self.behind();
        }
        if let Err(error) = kept::save_checkpoint(&shared.dir, &notice) {
            tracing::warn!(%error, "the newest checkpoint is not kept on disk");
        }
        self.notice = Some(notice);
        self.stated = None;
        Heard::Settled
    }

    /// Once in a while a new stream is worth it; a control plane that does not listen must not cost the lease.
    fn behind(&mut self) -> Heard {
        if self
            .stated
            .is_some_and(|stated| stated.elapsed() < STATED_AGAIN_AFTER)
        {
            return Heard::Settled;
        }
        self.stated = Some(Instant::now());
        Heard::Behind
    }
}

/// Where a notice says that the chain is, when its signed text says the same.
fn proven(notice: &CheckpointNotice, shared: &Shared) -> Option<CheckpointRef> {
    let stated = shared.keys.load().checkpoint(notice)?;
    notice.at.clone().filter(|at| {
        (stated.generation, stated.seq) == (at.generation, at.seq)
            && stated.hash.as_bytes().as_slice() == at.hash.as_ref()
    })
}

fn contradicts(held: &CheckpointRef, at: &CheckpointRef) -> bool {
    let place = |at: &CheckpointRef| (at.generation, at.seq);
    place(held) > place(at) || (place(held) == place(at) && held.hash != at.hash)
}
