//! One stream of resolutions, shared by all calls that wait.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::v1;
use proto::v1::approvals_client::ApprovalsClient as Remote;
use tokio::sync::{Notify, watch};
use tonic::Streaming;

use super::{Approval, ApprovalError, ApprovalStatus};
use crate::control::shared::Shared;
use crate::control::stream::{End, Ended, OPEN_LIMIT, Session};

/// Approvals that may be waited for at once.
const MAX_WAITED: usize = 10_000;
/// Resolutions that are remembered for calls that begin to wait just after them.
const MAX_RECENT: usize = 4_096;

#[derive(Debug, Default)]
struct State {
    /// The greatest position seen.
    cursor: u64,
    /// The stream is open and has everything since this position; `None`: it is not open.
    complete_since: Option<u64>,
    /// Somebody waits for what the stream does not cover.
    is_short: bool,
    waiting: HashMap<String, watch::Sender<Approval>>,
    recent: VecDeque<Approval>,
}

/// Waiters by approval, and the newest resolutions.
#[derive(Debug, Default)]
pub(in crate::control) struct Feed {
    state: Mutex<State>,
    /// Told when somebody waits for what the stream does not cover.
    wanted: Notify,
}

/// Forgets the waiter when it goes.
struct Waiting<'f> {
    feed: &'f Feed,
    id: &'f str,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.feed.lock();
        // This waiter's own receiver is gone already or goes with it.
        if state
            .waiting
            .get(self.id)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            state.waiting.remove(self.id);
        }
    }
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn wait(&self, approval: &Approval, limit: Duration) -> Result<Approval, ApprovalError> {
        // Declared first, so dropped last: after the receiver.
        let _waiting = Waiting {
            feed: self,
            id: &approval.id,
        };
        let mut receiver = match self.subscribe(approval)? {
            Ok(receiver) => receiver,
            Err(resolved) => return Ok(resolved),
        };
        let resolved = receiver.wait_for(|now| now.status != ApprovalStatus::Pending);
        let _ = tokio::time::timeout(limit, resolved).await.map(|now| now.is_ok());
        Ok(receiver.borrow().clone())
    }

    /// A receiver of what comes, or what came already.
    fn subscribe(
        &self,
        approval: &Approval,
    ) -> Result<Result<watch::Receiver<Approval>, Approval>, ApprovalError> {
        let mut state = self.lock();
        let known = state.recent.iter().rev().find(|recent| recent.id == approval.id);
        if let Some(resolved) = known.filter(|known| known.status != ApprovalStatus::Pending) {
            return Ok(Err(resolved.clone()));
        }
        if state.waiting.len() >= MAX_WAITED && !state.waiting.contains_key(&approval.id) {
            return Err(ApprovalError::TooManyWaiters);
        }
        let sender = state
            .waiting
            .entry(approval.id.clone())
            .or_insert_with(|| watch::Sender::new(approval.clone()));
        let receiver = sender.subscribe();
        let is_covered = state.complete_since.is_some_and(|since| since <= approval.cursor);
        state.is_short |= !is_covered;
        drop(state);
        if !is_covered {
            self.wanted.notify_one();
        }
        Ok(Ok(receiver))
    }

    /// What to ask a new stream for; `None`: nobody waits.
    fn request(&self) -> Option<v1::WatchApprovalsRequest> {
        let mut state = self.lock();
        if state.waiting.is_empty() {
            return None;
        }
        let oldest = state
            .waiting
            .values()
            .map(|sender| sender.borrow().cursor)
            .min()
            .unwrap_or(0);
        let after = if state.cursor == 0 {
            oldest
        } else {
            state.cursor.min(oldest)
        };
        state.complete_since = Some(after);
        state.is_short = false;
        Some(v1::WatchApprovalsRequest {
            after,
            ids: state.waiting.keys().cloned().collect(),
        })
    }

    fn is_short(&self) -> bool {
        self.lock().is_short
    }

    fn closed(&self) {
        self.lock().complete_since = None;
    }

    fn deliver(&self, approval: Approval) {
        let mut state = self.lock();
        state.cursor = state.cursor.max(approval.cursor);
        if let Some(sender) = state.waiting.get(&approval.id) {
            sender.send_replace(approval.clone());
        }
        if approval.status == ApprovalStatus::Pending {
            return;
        }
        if state.recent.len() >= MAX_RECENT {
            let forgotten = state.recent.pop_front();
            // Who opened before that must be told by the control plane.
            state.complete_since = state
                .complete_since
                .zip(forgotten)
                .map(|(since, forgotten)| since.max(forgotten.cursor));
        }
        state.recent.push_back(approval);
    }
}

/// The stream behind the feed; open while somebody waits.
pub(in crate::control) struct FeedStream {
    shared: Arc<Shared>,
    feed: Arc<Feed>,
}

impl FeedStream {
    pub(in crate::control) fn new(shared: Arc<Shared>, feed: Arc<Feed>) -> Self {
        Self { shared, feed }
    }

    async fn open(&self, request: v1::WatchApprovalsRequest) -> Result<Streaming<v1::ApprovalState>, End> {
        let mut client = Remote::new(self.shared.authenticated());
        match tokio::time::timeout(OPEN_LIMIT, client.watch(request)).await {
            Ok(opened) => Ok(opened?.into_inner()),
            Err(_) => Err(End::Failed(
                "the control plane did not open the stream in time".to_owned(),
            )),
        }
    }

    async fn serve(&self, epoch: u64, was_useful: &mut bool) -> End {
        let mut request = self.feed.request();
        loop {
            let Some(asked) = request.take() else {
                tokio::select! {
                    () = self.feed.wanted.notified() => {}
                    () = self.shared.epoch_after(epoch) => return End::Again,
                }
                request = self.feed.request();
                continue;
            };
            let mut states = match self.open(asked).await {
                Ok(states) => states,
                Err(end) => return end,
            };
            // `Ok`: somebody waits for what this stream does not cover, so it is opened again with that.
            if let Err(end) = self.listen(&mut states, epoch, was_useful).await {
                return end;
            }
            request = self.feed.request();
        }
    }

    async fn listen(
        &self,
        states: &mut Streaming<v1::ApprovalState>,
        epoch: u64,
        was_useful: &mut bool,
    ) -> Result<(), End> {
        loop {
            tokio::select! {
                biased;
                state = states.message() => match state? {
                    Some(state) => {
                        *was_useful = true;
                        match Approval::from_wire(state) {
                            Ok(approval) => self.feed.deliver(approval),
                            Err(error) => tracing::warn!(%error, "an approval cannot be read and is left out"),
                        }
                    }
                    None => return Err(End::closed()),
                },
                () = self.feed.wanted.notified() => if self.feed.is_short() {
                    return Ok(());
                },
                () = self.shared.epoch_after(epoch) => return Err(End::Again),
            }
        }
    }
}

impl Session for FeedStream {
    async fn run(&mut self, epoch: u64) -> Ended {
        let mut was_useful = false;
        let end = self.serve(epoch, &mut was_useful).await;
        self.feed.closed();
        Ended { end, was_useful }
    }
}
