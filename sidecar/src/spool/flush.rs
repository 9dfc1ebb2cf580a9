//! Grouped flushes to disk: one `fdatasync` serves every call that waits for it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::SpoolError;
use super::log::Log;

/// How far the disk has what was written.
#[derive(Clone, Debug, Default)]
struct Progress {
    flushed: u64,
    failure: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Request {
    wanted: u64,
    is_stopping: bool,
}

#[derive(Debug, Default)]
struct Desk {
    request: Mutex<Request>,
    arrived: Condvar,
}

/// The thread that flushes. Calls ask it for a position and wait; while one flush runs, the next callers gather.
#[derive(Debug)]
pub(super) struct Flusher {
    desk: Arc<Desk>,
    progress: watch::Receiver<Progress>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    pub(super) fn start(log: Arc<Mutex<Log>>) -> Result<Self, SpoolError> {
        let desk = Arc::new(Desk::default());
        let (sender, progress) = watch::channel(Progress::default());
        let theirs = desk.clone();
        let thread = std::thread::Builder::new()
            .name("spool-flush".into())
            .spawn(move || run(&theirs, &log, &sender))
            .map_err(SpoolError::io("start the thread that flushes", "the spool"))?;
        Ok(Self {
            desk,
            progress,
            thread: Some(thread),
        })
    }

    /// Waits until everything up to `position` is on disk.
    pub(super) async fn flushed(&self, position: u64) -> Result<(), SpoolError> {
        self.desk.ask(position);
        let mut progress = self.progress.clone();
        let reached = progress
            .wait_for(|now| now.flushed >= position || now.failure.is_some())
            .await
            .map(|now| now.failure.clone());
        match reached {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(SpoolError::Broken { reason }),
            Err(_) => Err(SpoolError::Broken {
                reason: "the flushing thread has ended".into(),
            }),
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.desk.lock().is_stopping = true;
        self.desk.arrived.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn lock(&self) -> std::sync::MutexGuard<'_, Request> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, position: u64) {
        let mut request = self.lock();
        if request.wanted < position {
            request.wanted = position;
            self.arrived.notify_one();
        }
    }

    /// Waits for a request beyond `flushed`; `false`: the spool is closing.
    fn wait(&self, flushed: u64) -> bool {
        let request = self.lock();
        let request = self
            .arrived
            .wait_while(request, |request| {
                request.wanted <= flushed && !request.is_stopping
            })
            .unwrap_or_else(PoisonError::into_inner);
        request.wanted > flushed
    }
}

fn run(desk: &Desk, log: &Mutex<Log>, progress: &watch::Sender<Progress>) {
    let mut flushed = 0;
    while desk.wait(flushed) {
        let (position, files) = {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let mut files = std::mem::take(&mut log.unflushed);
            files.push(log.active.file.clone());
            (log.written, files)
        };
        match files.iter().try_for_each(|file| file.sync_data()) {
            Ok(()) => {
                flushed = position;
                progress.send_modify(|now| now.flushed = position);
            }
            Err(error) => {
                // After a failed flush the kernel may have dropped the pages: trying again would prove nothing.
                let reason: Arc<str> = error.to_string().into();
                tracing::error!(%error, "a flush of the spool to disk failed: calls are denied until the sidecar is restarted");
                log.lock().unwrap_or_else(PoisonError::into_inner).broken = Some(reason.clone());
                progress.send_modify(|now| now.failure = Some(reason));
                return;
            }
        }
    }
}
