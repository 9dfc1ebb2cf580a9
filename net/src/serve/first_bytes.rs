//! A deadline for a connection's first bytes, until they tell HTTP/1.1 from HTTP/2. hyper's own timeout
//! for headers begins only then.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How an HTTP/2 connection begins (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) struct FirstBytes<S> {
    stream: S,
    waiting: Option<Waiting>,
}

struct Waiting {
    deadline: Pin<Box<Sleep>>,
    preface_left: &'static [u8],
}

impl<S> FirstBytes<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        let deadline = Box::pin(tokio::time::sleep(patience));
        Self {
            stream,
            waiting: Some(Waiting {
                deadline,
                preface_left: PREFACE,
            }),
        }
    }
}

impl Waiting {
    /// Whether the protocol is still unknown after `bytes`.
    fn goes_on_after(&mut self, bytes: &[u8]) -> bool {
        match self.preface_left.strip_prefix(bytes) {
            Some(left) => {
                self.preface_left = left;
                !left.is_empty()
            }
            None => false,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let filled_before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let Some(waiting) = &mut this.waiting else {
            return read;
        };
        if read.is_pending() {
            ready!(waiting.deadline.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no request came in time",
            )));
        }
        let new = buf.filled().get(filled_before..).unwrap_or_default();
        if new.is_empty() || !waiting.goes_on_after(new) {
            this.waiting = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
