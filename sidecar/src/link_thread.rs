//! A thread with a reactor of its own for the link to the control plane.
//!
//! Calls are served on one reactor that never hands work to another thread: a hop between threads costs a call more than
//! everything else that is done for it. Decoding and compiling what the control plane sends, and delivering records,
//! must not hold up calls, so they have a thread of their own.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The thread; it ends, and what still runs on it is dropped, when this is dropped.
#[derive(Debug)]
pub(crate) struct LinkThread {
    runtime: Handle,
    end: Option<DropGuard>,
    thread: Option<JoinHandle<()>>,
}

impl LinkThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the operating system gives no reactor or no thread.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let ended = end.clone();
        let thread = std::thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || runtime.block_on(ended.cancelled()))?;
        Ok(Self {
            runtime: handle,
            end: Some(end.drop_guard()),
            thread: Some(thread),
        })
    }

    /// Where the link's tasks run.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl Drop for LinkThread {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
