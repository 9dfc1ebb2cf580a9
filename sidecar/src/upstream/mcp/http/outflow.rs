//! Whether what was written to an upstream has left.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use net::outbound::Dialed;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream to an upstream, which notes when it takes no more.
pub(super) struct Outflow {
    stream: Dialed,
    is_blocked: Arc<AtomicBool>,
}

/// What waits to be written to an upstream that reads no further.
#[derive(Debug)]
pub(super) struct Backlog(Arc<AtomicBool>);

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl Outflow {
    pub(super) fn new(stream: Dialed) -> (Self, Backlog) {
        let is_blocked = Arc::new(AtomicBool::new(false));
        let backlog = Backlog(Arc::clone(&is_blocked));
        (Self { stream, is_blocked }, backlog)
    }

    fn noted<T>(&self, outcome: Poll<T>) -> Poll<T> {
        self.is_blocked.store(outcome.is_pending(), Ordering::Relaxed);
        outcome
    }
}

impl AsyncRead for Outflow {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Outflow {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.noted(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.noted(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
