//! Ending on SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Cancels `shutdown` at the first SIGTERM or SIGINT. The handlers are in place when this returns. The
/// task ends when `shutdown` is cancelled by whomever, so that `tasks` can be awaited.
pub fn on_signal(shutdown: &CancellationToken, tasks: &TaskTracker) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = shutdown.clone();
    tasks.spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = shutdown.cancelled() => return,
        };
        tracing::info!(signal = name, "shutting down");
        shutdown.cancel();
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_cancels_the_token() {
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        on_signal(&shutdown, &tasks).unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).unwrap();
        shutdown.cancelled().await;
        tasks.close();
        tasks.wait().await;
    }

    #[tokio::test]
    async fn the_watcher_ends_with_the_token() {
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        on_signal(&shutdown, &tasks).unwrap();
        shutdown.cancel();
        tasks.close();
        tasks.wait().await;
    }
}
