//! Applies states in order, away from the stream, so that no snapshot delays a stop or a lease.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proto::v1::{Delta, Full};
use tokio::task::JoinHandle;

use super::shared::Shared;
use super::snapshot::Snapshot;
use super::view::{ApplyError, View};

/// Messages that may wait to be applied.
const MAX_WAITING: usize = 1_024;

/// A message that changes the view.
#[derive(Debug)]
pub(super) enum Step {
    Full(Full),
    Delta(Delta),
}

/// What became of a message.
pub(super) enum Applied {
    /// It is in force.
    InForce { view: Arc<View>, apply: Duration },
    /// The view stays as it was.
    Refused { reason: String },
}

type Made = Result<(View, Snapshot), ApplyError>;

/// The view of one stream and the messages that wait for it.
pub(super) struct Applier {
    shared: Arc<Shared>,
    view: Option<Arc<View>>,
    /// With the boot time of their receipt.
    waiting: VecDeque<(Step, Duration)>,
    working: Option<(JoinHandle<Made>, Duration)>,
}

impl Applier {
    pub(super) fn new(shared: Arc<Shared>, view: Option<Arc<View>>) -> Self {
        Self {
            shared,
            view,
            waiting: VecDeque::new(),
            working: None,
        }
    }

    /// Queues a message; `false`: too many wait.
    pub(super) fn push(&mut self, step: Step) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        self.waiting.push_back((step, self.shared.clock.boot_now()));
        true
    }

    /// The outcome of the next message; waits when there is none. Loses nothing when it is dropped before it answers.
    pub(super) async fn next(&mut self) -> Applied {
        loop {
            if let Some((working, received)) = &mut self.working {
                let made = working.await;
                let received = *received;
                self.working = None;
                return match made {
                    Ok(Ok((view, snapshot))) => self.install(view, snapshot, received),
                    Ok(Err(error)) => Applied::Refused {
                        reason: error.to_string(),
                    },
                    Err(error) => Applied::Refused {
                        reason: format!("applying the snapshot was cut off: {error}"),
                    },
                };
            }
            match self.waiting.pop_front() {
                Some((step, received)) => self.working = Some((self.start(step), received)),
                None => std::future::pending().await,
            }
        }
    }

    fn start(&self, step: Step) -> JoinHandle<Made> {
        let shared = self.shared.clone();
        let held = self.view.clone();
        tokio::task::spawn_blocking(move || {
            let keys = shared.keys.load_full();
            let view = match step {
                Step::Full(full) => View::from_full(&full, &keys)?,
                Step::Delta(delta) => held
                    .as_deref()
                    .unwrap_or(&View::default())
                    .with_delta(delta, &keys)?,
            };
            let applied = shared.in_force.snapshot();
            let before = held.as_deref().filter(|held| held.revision == applied.revision);
            let snapshot = Snapshot::compile(&view, shared.local, before.map(|held| (held, &*applied)));
            Ok((view, snapshot))
        })
    }

    fn install(&mut self, view: View, snapshot: Snapshot, received: Duration) -> Applied {
        let in_force = self.shared.in_force.snapshot();
        if in_force.is_present && snapshot.revision < in_force.revision {
            return Applied::Refused {
                reason: format!(
                    "the control plane sent revision {}, but {} is in force; it may be behind its database",
                    snapshot.revision, in_force.revision
                ),
            };
        }
        let view = Arc::new(view);
        self.view = Some(view.clone());
        self.shared.in_force.install(snapshot);
        Applied::InForce {
            view,
            apply: self.shared.clock.since(received),
        }
    }
}
