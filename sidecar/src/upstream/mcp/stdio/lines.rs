//! Lines of bounded length from a stream.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of either end of a line beyond the bound is kept.
const KEPT: usize = 256;
const CHUNK: usize = 16 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Bytes),
    /// The line was longer than the bound; only its ends are left.
    Overlong {
        head: Bytes,
        tail: Bytes,
    },
}

/// Lines of bounded length from a stream.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    head: Option<Bytes>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(source: R, limit: usize) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            head: None,
        }
    }

    /// The next line; `None` at the end of the stream. Loses nothing when dropped before it is done.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
            if let Some(found) = memchr::memchr(b'\n', fresh) {
                let line = self.buffer.split_to(self.scanned + found + 1);
                self.scanned = 0;
                return Ok(Some(self.finish(line)));
            }
            self.scanned = self.buffer.len();
            self.shorten();
            self.buffer.reserve(CHUNK);
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                let line = self.buffer.split();
                self.scanned = 0;
                return Ok(Some(self.finish(line)));
            }
        }
    }

    /// Lets go of the middle of a line that is too long.
    fn shorten(&mut self) {
        if self.head.is_none() && self.buffer.len() <= self.limit {
            return;
        }
        if self.head.is_none() {
            self.head = Some(
                self.buffer
                    .get(..KEPT)
                    .map(Bytes::copy_from_slice)
                    .unwrap_or_default(),
            );
            // A buffer of its own, so that the long one is given back.
            self.buffer = BytesMut::from(tail_of(&self.buffer));
        } else {
            self.buffer.advance(self.buffer.len().saturating_sub(KEPT));
        }
        self.scanned = self.buffer.len();
    }

    fn finish(&mut self, line: BytesMut) -> Line {
        match self.head.take() {
            Some(head) => Line::Overlong {
                head,
                tail: Bytes::copy_from_slice(tail_of(&line)),
            },
            None if line.len() > self.limit.saturating_add(1) => Line::Overlong {
                head: line.get(..KEPT).map(Bytes::copy_from_slice).unwrap_or_default(),
                tail: Bytes::copy_from_slice(tail_of(&line)),
            },
            None => Line::Text(line.freeze()),
        }
    }
}

fn tail_of(line: &[u8]) -> &[u8] {
    line.get(line.len().saturating_sub(KEPT)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        found
    }

    #[tokio::test]
    async fn lines_come_in_order_and_the_last_needs_no_end() {
        let found = all(b"a\n\nbc", 10).await;
        let expected = [&b"a\n"[..], b"\n", b"bc"].map(|text| Line::Text(Bytes::copy_from_slice(text)));
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_leaves_its_ends_and_the_next_line_whole() {
        let mut text = vec![b'x'; 100_000];
        text.extend_from_slice(b"END\nnext\n");
        let found = all(&text, 1000).await;
        let [Line::Overlong { head, tail }, Line::Text(next)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(head.len(), KEPT);
        assert!(tail.ends_with(b"END\n"));
        assert_eq!(next, &b"next\n"[..]);
    }
}
