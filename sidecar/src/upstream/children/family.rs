//! Which processes came of the programs that this process started, and which of them may go on.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::files::FileError;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::keeper::Keeper;
use super::mark::{Found, Mark, VARIABLE};
use super::run::Run;
use super::{proc, stale};

/// Ticks in a second, as `/proc` counts them everywhere.
const TICKS_PER_SECOND: u64 = 100;
/// Between two looks in the background: a program that starts others without end must not take the thread that serves everybody.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);
/// Looks of one sweep, each after something was reaped.
const LOOKS: usize = 8;
/// How long the keeper may take to end.
const KEEPER_END: Duration = Duration::from_secs(2);

/// Why a process cannot own its children.
#[derive(Debug, thiserror::Error)]
pub enum ChildrenError {
    /// What marks them cannot be kept.
    #[error(transparent)]
    Mark(#[from] FileError),
    /// The kernel refuses.
    #[error("cannot become the parent of orphans among the programs that are run: {0}")]
    Parent(#[source] Errno),
}

/// The programs that this process runs, and everything that comes of them.
#[derive(Debug)]
pub struct Children {
    mark: Mark,
    /// Every child of this process is started here, so what else is its child is an orphan.
    owns_process: bool,
    /// What began before has nothing to do with programs.
    began: u64,
    state: Mutex<State>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// Processes that are waited for by whoever started them.
    started: BTreeSet<i32>,
    /// Runs that are not over, and when each began, in ticks.
    runs: BTreeMap<u64, u64>,
    /// Processes whose parents have ended.
    orphans: BTreeMap<i32, Orphan>,
    keeper: Option<Keeper>,
}

/// A process whose parent has ended.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    /// The run that it comes from, where its environment says so.
    run: Option<u64>,
    start: u64,
    leads_group: bool,
}

/// One look at the orphans.
#[derive(Debug, Default)]
struct Look {
    remains: Remains,
    has_reaped: bool,
}

/// What still exists of runs that are over.
#[derive(Debug, Default)]
pub(super) struct Remains {
    runs: BTreeSet<u64>,
    has_unmarked: bool,
}

impl Remains {
    /// Whether something may come from this run.
    pub(super) fn holds(&self, run: u64) -> bool {
        self.has_unmarked || self.runs.contains(&run)
    }
}

impl Children {
    /// For a process that has children of other code too: of a program no more is known than its group.
    #[must_use]
    pub fn of_groups() -> Arc<Self> {
        Arc::new(Self::new(Mark::fresh(), false))
    }

    /// For a process whose children are all started here, and whose executable begins with [`keep_if_asked`](super::keep_if_asked). What an
    /// earlier process with the same directory left running is ended; the directory MUST be locked. Blocks for a moment.
    ///
    /// # Errors
    /// When the directory cannot be used, or the kernel refuses.
    pub fn of_process(folder: Option<&Path>) -> Result<Arc<Self>, ChildrenError> {
        let (mark, found) = match folder {
            Some(folder) => Mark::kept_in(folder)?,
            None => (Mark::fresh(), Found::New),
        };
        if found == Found::Before {
            let killed = stale::end(&mark.of_installation());
            if killed > 0 {
                tracing::warn!(
                    killed,
                    "processes of programs that outlived an earlier sidecar were ended"
                );
            }
        }
        prctl::set_child_subreaper(true).map_err(ChildrenError::Parent)?;
        Ok(Arc::new(Self::new(mark, true)))
    }

    fn new(mark: Mark, owns_process: bool) -> Self {
        Self {
            mark,
            owns_process,
            began: now(),
            state: Mutex::default(),
            moved: Notify::new(),
        }
    }

    /// Starts a program as the leader of a process group, marked.
    pub(in crate::upstream) fn spawn(self: &Arc<Self>, command: &mut Command) -> io::Result<(Child, Run)> {
        // Held while it starts: nobody may take it for an orphan before it is known.
        let mut state = self.state();
        self.ensure_keeper(&mut state);
        state.last += 1;
        let (number, began) = (state.last, now());
        let child = command
            .env(VARIABLE, self.mark.of_run(number))
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        state.started.extend(leader);
        state.runs.insert(number, began);
        drop(state);
        Ok((
            child,
            Run::new(Arc::clone(self), number, leader.map(Pid::from_raw)),
        ))
    }

    fn ensure_keeper(&self, state: &mut State) {
        if !self.owns_process || state.keeper.as_mut().is_some_and(Keeper::is_running) {
            return;
        }
        if let Some(ended) = state.keeper.take() {
            state.started.retain(|id| u32::try_from(*id) != Ok(ended.id()));
        }
        match Keeper::start(&self.mark.of_process()) {
            Ok(keeper) => {
                state.started.extend(i32::try_from(keeper.id()));
                state.keeper = Some(keeper);
            }
            Err(error) => {
                tracing::warn!(%error, "programs have no keeper: they would outlive a kill of the sidecar until its next start");
            }
        }
    }

    /// A run is over: nothing that comes from it may go on.
    pub(super) fn over(&self, number: u64, leader: Option<Pid>) {
        let mut state = self.state();
        state.runs.remove(&number);
        if let Some(leader) = leader {
            state.started.remove(&leader.as_raw());
        }
    }

    /// Resolves after the next sweep in the background.
    pub(super) fn moved(&self) -> impl Future<Output = ()> {
        self.moved.notified()
    }

    /// Reaps orphans that have ended and kills those whose run is over.
    pub(super) fn sweep(&self) -> Remains {
        if !self.owns_process {
            return Remains::default();
        }
        for _ in 0..LOOKS {
            let look = self.look_once();
            if !look.has_reaped {
                return look.remains;
            }
            // What has ended may have left children to this process since they were listed.
        }
        Remains {
            has_unmarked: true,
            ..Remains::default()
        }
    }

    fn look_once(&self) -> Look {
        let mut look = Look::default();
        let remains = &mut look.remains;
        let mut guard = self.state();
        let state = &mut *guard;
        for id in proc::own_children() {
            if state.started.contains(&id) {
                continue;
            }
            let pid = Pid::from_raw(id);
            if !matches!(
                waitpid(pid, Some(WaitPidFlag::WNOHANG)),
                Ok(WaitStatus::StillAlive)
            ) {
                state.orphans.remove(&id);
                look.has_reaped = true;
                continue;
            }
            let orphan = match state.orphans.entry(id) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => match self.origin(id) {
                    Some(orphan) => *unknown.insert(orphan),
                    None => continue,
                },
            };
            if self.goes_on(&state.runs, orphan) {
                continue;
            }
            if orphan.leads_group {
                let _ = killpg(pid, Signal::SIGKILL);
            }
            match kill(pid, Signal::SIGKILL) {
                Ok(()) => match orphan.run {
                    Some(run) => _ = remains.runs.insert(run),
                    None => remains.has_unmarked = true,
                },
                // It has taken other rights.
                Err(error) => {
                    tracing::debug!(%error, "a process that a program left behind cannot be killed")
                }
            }
        }
        look
    }

    fn origin(&self, id: i32) -> Option<Orphan> {
        let status = proc::status(id)?;
        let mark = proc::variable(id, VARIABLE);
        Some(Orphan {
            run: mark.and_then(|mark| self.mark.run(&mark)),
            start: status.start,
            leads_group: status.group == id,
        })
    }

    fn goes_on(&self, runs: &BTreeMap<u64, u64>, orphan: Orphan) -> bool {
        match orphan.run {
            Some(run) => runs.contains_key(&run),
            // The first process of a container is the parent of everybody's orphans.
            None if std::process::id() == 1 || orphan.start < self.began => true,
            // Any of these may have started it.
            None => runs.values().any(|began| *began <= orphan.start),
        }
    }

    /// Sweeps whenever a process has ended, until `stop`.
    pub(in crate::upstream) async fn watch(self: Arc<Self>, stop: CancellationToken) {
        if !self.owns_process {
            return;
        }
        let mut ended = match signal(SignalKind::child()) {
            Ok(ended) => ended,
            Err(error) => {
                tracing::warn!(%error, "orphans of programs are looked for when calls end, and not before");
                return;
            }
        };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ended.recv() => {
                    self.sweep();
                    self.moved.notify_waiters();
                }
            }
            sleep(SWEEP_PAUSE).await;
        }
    }

    /// Lets the keeper end, after every run.
    pub(in crate::upstream) async fn finish(&self) {
        self.sweep();
        let Some(mut keeper) = self.state().keeper.take() else {
            return;
        };
        keeper.dismiss();
        let deadline = Instant::now() + KEEPER_END;
        while keeper.is_running() && Instant::now() < deadline {
            sleep(SWEEP_PAUSE).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time as `/proc` tells when a process began, rounded down as there.
fn now() -> u64 {
    let Ok(now) = clock_gettime(ClockId::CLOCK_BOOTTIME) else {
        return 0;
    };
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
    seconds * TICKS_PER_SECOND + nanos / (1_000_000_000 / TICKS_PER_SECOND)
}
