//! The link against a scripted control plane on an in-memory channel.

mod enrolment;
pub(crate) mod plane;
mod records;
mod services;
mod state;

use std::path::Path;
use std::time::Duration;

use net::clock::Clock;
use plane::Plane;

use super::*;
use crate::spool::{self, Spool};

/// A link to a scripted plane, with everything that it needs.
struct Rig {
    plane: Plane,
    control: Control,
    spool: Spool,
    clock: Clock,
    dir: tempfile::TempDir,
}

impl Rig {
    async fn start() -> Self {
        let plane = Plane::start();
        Self::on(plane, tempfile::tempdir().unwrap(), Clock::manual(), true)
    }

    fn on(plane: Plane, dir: tempfile::TempDir, clock: Clock, is_joining: bool) -> Self {
        let spool = open_spool(dir.path(), &clock);
        let mut options = Options::new(Link::Channel(plane.channel()), dir.path());
        options.clock = clock.clone();
        options.join = is_joining.then(|| JoinProof::Token(Secret::new("join me")));
        let control = Control::start(&options, spool.clone()).unwrap();
        Self {
            plane,
            control,
            spool,
            clock,
            dir,
        }
    }

    /// Ends this process' part and starts another one on the same directory.
    async fn restart(self, plane: Plane) -> Self {
        let Self {
            plane: old,
            control,
            spool,
            clock,
            dir,
        } = self;
        old.cut();
        control.shutdown(Duration::from_millis(10)).await;
        drop((control, old));
        drop(spool);
        Self::on(plane, dir, clock, false)
    }
}

fn options_of(dir: &Path, clock: &Clock) -> spool::Options {
    spool::Options {
        sync: spool::SyncMode::Process,
        clock: clock.clone(),
        ..spool::Options::new(dir.join("records"))
    }
}

fn open_spool(dir: &Path, clock: &Clock) -> Spool {
    Spool::open(&options_of(dir, clock)).unwrap()
}

/// Waits for a condition.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(10), waited).await;
    assert!(reached.is_ok(), "not reached: {what}");
}
