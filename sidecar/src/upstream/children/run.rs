//! One program that was started, and what it started.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::time::{Instant, timeout};

use super::family::Children;

/// How long a program may take to end after SIGTERM.
pub(in crate::upstream) const TERM_END: Duration = Duration::from_secs(2);
/// How long what was killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks at what was killed; each is twice as long as the one before, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// One program that was started, the leader of a process group. Dropping it kills the group, and whatever else comes of the
/// program is ended in the background.
#[derive(Debug)]
pub(in crate::upstream) struct Run {
    children: Arc<Children>,
    number: u64,
    leader: Option<Pid>,
    is_over: bool,
}

impl Run {
    pub(super) fn new(children: Arc<Children>, number: u64, leader: Option<Pid>) -> Self {
        Self {
            children,
            number,
            leader,
            is_over: false,
        }
    }

    /// Signals the group.
    pub(in crate::upstream) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The group may be gone already, which is what is wanted.
            let _ = killpg(leader, signal);
        }
    }

    /// Kills what the program left behind, and waits until it is gone. The program itself MUST have been waited for.
    pub(in crate::upstream) async fn end(mut self) {
        self.over();
        let deadline = Instant::now() + GONE_WITHIN;
        let mut pause = FIRST_PAUSE;
        loop {
            let moved = self.children.moved();
            if !self.children.sweep().holds(self.number) {
                return;
            }
            if Instant::now() >= deadline {
                tracing::warn!("a program left processes behind that do not end when they are killed");
                return;
            }
            let _ = timeout(pause, moved).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn over(&mut self) {
        self.is_over = true;
        self.signal(Signal::SIGKILL);
        self.children.over(self.number, self.leader.take());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_over {
            self.over();
        }
    }
}
