//! The framing of messages over standard streams finds the same lines however the bytes come, loses none of them, and
//! keeps of a line beyond the bound only its ends.
//!
//! The file is taken as it is: the whole sidecar would take many times as long to build.
#![no_main]

#[path = "../../sidecar/src/upstream/mcp/stdio/lines.rs"]
mod lines;

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use lines::{Line, Lines};
use tokio::io::{AsyncRead, ReadBuf};

const LIMIT: usize = 600;
/// What is kept of either end of a line beyond the bound.
const KEPT: usize = 256;

/// Bytes that come in pieces.
struct Pieces<'b> {
    rest: &'b [u8],
    size: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = self.size.min(self.rest.len()).min(buffer.remaining());
        let (piece, rest) = self.rest.split_at(size);
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

fn read(bytes: &[u8], size: usize) -> Vec<Line> {
    let mut lines = Lines::new(Pieces { rest: bytes, size }, LIMIT);
    let mut found = Vec::new();
    loop {
        // The source always has an answer, so the future needs no waking.
        match pin!(lines.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Some(line))) => found.push(line),
            Poll::Ready(Ok(None)) => return found,
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => panic!("it waits for what is there"),
        }
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(read(bytes, usize::from(size).max(1)), whole);
    assert_eq!(read(bytes, 1), whole);
    let expected: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(whole.len(), expected.len());
    for (line, expected) in whole.iter().zip(expected) {
        match line {
            Line::Text(text) => {
                assert_eq!(text, expected);
                assert!(text.len() <= LIMIT + 1);
            }
            Line::Overlong { head, tail } => {
                assert!(expected.len() > LIMIT);
                assert_eq!(head, &expected[..KEPT]);
                assert_eq!(tail, &expected[expected.len() - KEPT..]);
            }
        }
    }
});
