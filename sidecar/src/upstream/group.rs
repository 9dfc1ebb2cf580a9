//! The process group of a child: what is ended with it.

use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Child;

/// How long a child may take to end after SIGTERM.
pub(super) const TERM_END: Duration = Duration::from_secs(2);

/// A process group that is killed when it is dropped. The child must have been started as its leader.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        Self { leader }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The group may be gone already, which is what is wanted.
            let _ = killpg(leader, signal);
        }
    }

    pub(super) fn disarm(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
