//! Ending what is marked, where this process is not its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::mark::VARIABLE;
use super::proc::{self, Status};

/// How long programs that start others faster than they can be killed are followed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks, while something is left.
const PAUSE: Duration = Duration::from_millis(5);

/// Kills every process whose mark begins with this, and what came of it, until none is left. How many were killed. Blocks.
pub(super) fn end(prefix: &str) -> usize {
    let began = Instant::now();
    let mut killed = BTreeSet::new();
    loop {
        let marked = marked(prefix);
        if marked.is_empty() || began.elapsed() > PATIENCE {
            return killed.len();
        }
        for (id, status) in marked {
            // Another process may have got the id meanwhile.
            if proc::status(id).is_some_and(|now| now.start == status.start)
                && kill(Pid::from_raw(id), Signal::SIGKILL).is_ok()
            {
                killed.insert((id, status.start));
            }
        }
        pause(PAUSE);
    }
}

/// The marked processes and their descendants, which may have cleared their environment.
fn marked(prefix: &str) -> Vec<(i32, Status)> {
    let all: BTreeMap<i32, Status> = proc::all()
        .into_iter()
        .filter_map(|id| Some((id, proc::status(id)?)))
        .collect();
    let bears_it = |id: i32| proc::variable(id, VARIABLE).is_some_and(|mark| mark.starts_with(prefix));
    let mut found: BTreeMap<i32, Status> = all
        .iter()
        .filter(|(id, _)| bears_it(**id))
        .map(|(id, status)| (*id, *status))
        .collect();
    loop {
        let before = found.len();
        for (id, status) in &all {
            if found.contains_key(&status.parent) {
                found.insert(*id, *status);
            }
        }
        if found.len() == before {
            return found.into_iter().collect();
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the keeper and the start of a process have no reactor that this could hold up"
)]
pub(super) fn pause(time: Duration) {
    thread::sleep(time);
}
