//! A file that is read again: on SIGHUP, and when it has changed.

use std::fmt::Display;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Between two looks; a change counts when the look after it sees no further one.
const LOOK: Duration = Duration::from_millis(300);

/// What tells one state of a file from another without reading it; `None` while it cannot be looked at.
type Stamp = Option<(SystemTime, u64, u64)>;

/// A file that is watched.
#[derive(Debug)]
pub struct Reloads {
    path: PathBuf,
    read: Stamp,
    seen: Stamp,
    hangup: Signal,
}

impl Reloads {
    /// Watches a file that has just been read. Needs a runtime. From now on SIGHUP does not end the process.
    ///
    /// # Errors
    /// When signals cannot be taken.
    pub async fn of(path: &Path) -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        let read = stamp(path).await;
        Ok(Self {
            path: path.to_owned(),
            read,
            seen: read,
            hangup,
        })
    }

    /// Waits until the file is to be read again.
    pub async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => {
                    self.seen = stamp(&self.path).await;
                    self.read = self.seen;
                    return;
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = stamp(&self.path).await;
            let is_quiet = now == self.seen;
            self.seen = now;
            if is_quiet && self.seen != self.read && self.seen.is_some() {
                self.read = self.seen;
                return;
            }
        }
    }

    /// Reads the file with `load` whenever it is to be read again, and hands what it holds to `apply`; a file with problems changes
    /// nothing, and each problem is logged. Never returns.
    pub async fn keep<C, P: Display>(
        mut self,
        load: impl Fn(&Path) -> Result<C, Vec<P>>,
        mut apply: impl AsyncFnMut(C),
    ) {
        loop {
            self.next().await;
            match load(&self.path) {
                Ok(config) => apply(config).await,
                Err(problems) => {
                    for problem in problems {
                        tracing::error!(%problem, "the changed configuration is not valid; the one in force stays");
                    }
                }
            }
        }
    }
}

async fn stamp(path: &Path) -> Stamp {
    let metadata = tokio::fs::metadata(path).await.ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_changed_file_is_read_again_and_so_is_one_at_a_hangup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, "one").unwrap();
        let mut reloads = Reloads::of(&path).await.unwrap();
        std::fs::write(&path, "another").unwrap();
        tokio::time::timeout(LONG, reloads.next()).await.unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGHUP).unwrap();
        tokio::time::timeout(LONG, reloads.next()).await.unwrap();
        let replacement = folder.path().join("new");
        std::fs::write(&replacement, "another").unwrap();
        std::fs::rename(&replacement, &path).unwrap();
        tokio::time::timeout(LONG, reloads.next()).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_with_problems_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, "good").unwrap();
        let reloads = Reloads::of(&path).await.unwrap();
        let (applied, mut came) = tokio::sync::mpsc::channel(8);
        let refused = std::sync::Arc::new(tokio::sync::Notify::new());
        let refusing = std::sync::Arc::clone(&refused);
        let load = move |path: &Path| match std::fs::read_to_string(path) {
            Ok(text) if text.starts_with("good") => Ok(text),
            Ok(text) => {
                refusing.notify_one();
                Err(vec![text])
            }
            Err(error) => Err(vec![error.to_string()]),
        };
        let mut keeping = tokio::task::JoinSet::new();
        keeping.spawn(reloads.keep(load, async move |text| applied.send(text).await.unwrap()));
        std::fs::write(&path, "bad").unwrap();
        tokio::time::timeout(LONG, refused.notified()).await.unwrap();
        std::fs::write(&path, "good again").unwrap();
        let first = tokio::time::timeout(LONG, came.recv()).await.unwrap();
        assert_eq!(first.as_deref(), Some("good again"));
    }
}
