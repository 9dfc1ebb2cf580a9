//! Server-sent events, as they arrive.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

/// The longest id that is kept for resuming.
const MAX_ID: usize = 1024;

/// An event is larger than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Reads events out of the chunks of a body.
#[derive(Debug)]
pub(super) struct Events {
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    /// A carriage return ended the last line, so a line feed now belongs to it.
    skips_line_feed: bool,
    is_first_line: bool,
    data: Vec<Bytes>,
    size: usize,
    is_message: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            skips_line_feed: false,
            is_first_line: true,
            data: Vec::new(),
            size: 0,
            is_message: true,
            last_id: None,
            retry: None,
        }
    }

    /// Adds what arrived.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The last id that the server gave.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asks to wait before it is connected to again.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The data of the next whole event of type `message`.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TooLarge> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if let Some(data) = self.dispatch() {
                    return Ok(Some(data));
                }
                continue;
            }
            self.field(line)?;
        }
        Ok(None)
    }

    fn line(&mut self) -> Result<Option<Bytes>, TooLarge> {
        if self.skips_line_feed && !self.buffer.is_empty() {
            self.skips_line_feed = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
            }
        }
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'\n', b'\r', fresh) else {
            self.scanned = self.buffer.len();
            let is_too_large = self.buffer.len() > self.limit.saturating_add(16);
            return if is_too_large { Err(TooLarge) } else { Ok(None) };
        };
        self.skips_line_feed = fresh.get(found) == Some(&b'\r');
        let mut line = self.buffer.split_to(self.scanned + found).freeze();
        self.buffer.advance(1);
        self.scanned = 0;
        if std::mem::take(&mut self.is_first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        Ok(Some(line))
    }

    fn field(&mut self, mut line: Bytes) -> Result<(), TooLarge> {
        let length = memchr::memchr(b':', &line).unwrap_or(line.len());
        let name = line.split_to(length);
        if !line.is_empty() {
            line.advance(1);
        }
        if line.first() == Some(&b' ') {
            line.advance(1);
        }
        let text = || std::str::from_utf8(&line).ok();
        match name.as_ref() {
            b"data" => {
                self.size += line.len() + 1;
                if self.size > self.limit.saturating_add(1) {
                    return Err(TooLarge);
                }
                self.data.push(line);
            }
            b"event" => self.is_message = line.is_empty() || *line == *b"message",
            b"id" => {
                if let Some(id) = text().filter(|id| id.len() <= MAX_ID && !id.contains('\0')) {
                    self.last_id = (!id.is_empty()).then(|| id.to_owned());
                }
            }
            b"retry" => {
                if let Some(millis) = text().and_then(|text| text.parse().ok()) {
                    self.retry = Some(Duration::from_millis(millis));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<Bytes> {
        let data = std::mem::take(&mut self.data);
        self.size = 0;
        let is_message = std::mem::replace(&mut self.is_message, true);
        let data = match data.as_slice() {
            [] => return None,
            [only] => only.clone(),
            many => Bytes::from(many.join(&b"\n"[..])),
        };
        (is_message && !data.is_empty()).then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(chunks: &[&[u8]]) -> (Vec<String>, Events) {
        let mut events = Events::new(100);
        let mut found = Vec::new();
        for chunk in chunks {
            events.push(chunk);
            while let Some(data) = events.next().unwrap() {
                found.push(String::from_utf8(data.to_vec()).unwrap());
            }
        }
        (found, events)
    }

    #[test]
    fn events_are_read_whatever_the_chunks_and_line_ends() {
        let text = b"\xef\xbb\xbfid: 7\nretry: 1500\ndata:\n\n: comment\r\ndata: {\"a\":1}\r\n\r\nevent: other\ndata: x\n\ndata: one\rdata: two\r\rdata: cut";
        for size in [1, 2, 3, 1000] {
            let chunks: Vec<&[u8]> = text.chunks(size).collect();
            let (found, events) = all(&chunks);
            assert_eq!(found, ["{\"a\":1}", "one\ntwo"]);
            assert_eq!(events.last_id(), Some("7"));
            assert_eq!(events.retry(), Some(Duration::from_millis(1500)));
        }
    }

    #[test]
    fn an_event_beyond_the_bound_is_an_error_before_it_is_whole() {
        let mut events = Events::new(100);
        events.push(&[b'x'; 200]);
        assert_eq!(events.next(), Err(TooLarge));
        let mut events = Events::new(100);
        events.push(&b"data: 0123456789012345678901234567890123456789\n".repeat(3));
        assert_eq!(events.next(), Err(TooLarge));
    }
}
