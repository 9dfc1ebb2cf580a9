//! Which service has which tool, where tools have no prefix.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The tools without a prefix of all services. Of two services that declare one name, the one that stands first in the
/// configuration has it, in whatever order their documents came.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Claims {
    held: Mutex<Held>,
    changes: watch::Sender<u64>,
}

/// A service that can have tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    /// Its place in the configuration.
    place: usize,
    /// Tells it from one that was begun anew in its place.
    number: u64,
}

#[derive(Debug, Default)]
struct Held {
    by_tool: HashMap<String, Holder>,
    /// Services that lost a name.
    lost: BTreeMap<Holder, Clash>,
    names: BTreeMap<Holder, String>,
    last: u64,
}

/// A name that two services declare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tool \"{tool}\" is one of the OpenAPI service {other} too; give one of both a `name` in the configuration, which its tools' names then begin with"
)]
pub(super) struct Clash {
    tool: String,
    other: String,
}

impl Claims {
    /// A service that begins.
    pub(super) fn begin(&self, place: usize, name: &str) -> Holder {
        let mut held = self.lock();
        held.last += 1;
        let holder = Holder {
            place,
            number: held.last,
        };
        held.names.insert(holder, name.to_owned());
        holder
    }

    /// A service that ends has nothing any more.
    pub(super) fn end(&self, holder: Holder) {
        let mut held = self.lock();
        held.release(holder);
        held.names.remove(&holder);
    }

    /// Claims the names of all tools of a service in place of those that it had.
    pub(super) fn claim(&self, holder: Holder, tools: &[String]) -> Result<(), Clash> {
        let mut held = self.lock();
        held.release(holder);
        let earlier = |tool: &String| {
            let other = held
                .by_tool
                .get(tool)
                .filter(|other| other.place < holder.place)?;
            Some(held.clash(tool, *other))
        };
        if let Some(clash) = tools.iter().find_map(earlier) {
            return Err(clash);
        }
        for tool in tools {
            let before = held.by_tool.insert(tool.clone(), holder);
            // What was begun anew takes over from what it replaces.
            if let Some(loser) = before.filter(|other| other.place != holder.place) {
                let clash = held.clash(tool, holder);
                held.by_tool.retain(|_, other| *other != loser);
                held.lost.insert(loser, clash);
            }
        }
        drop(held);
        self.changes.send_modify(|version| *version += 1);
        Ok(())
    }

    /// Waits until a service that has its names loses one.
    pub(super) async fn lost(&self, holder: Holder) -> Clash {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(clash) = self.lock().lost.get(&holder).cloned() {
                return clash;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn release(&mut self, holder: Holder) {
        self.by_tool.retain(|_, other| *other != holder);
        self.lost.remove(&holder);
    }

    fn clash(&self, tool: &str, other: Holder) -> Clash {
        Clash {
            tool: tool.to_owned(),
            other: self.names.get(&other).cloned().unwrap_or_default(),
        }
    }
}
