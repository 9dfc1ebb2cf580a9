//! Server-sent events, as they arrive.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

/// The longest id that is kept for resuming.
const MAX_ID: usize = 1024;

/// How much of either end of an event beyond the bound is kept.
const KEPT: usize = 256;

/// An event is larger than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// What an event is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    /// Names the address that messages are sent to (2024-11-05).
    Endpoint,
    Other,
}

/// A whole event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) data: Bytes,
}

/// What is left of an event that was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
}

impl Ends {
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.head.len());
        self.head
            .extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        self.tail
            .extend_from_slice(bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
    }
}

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
    kind: Kind,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// The event that is being left out, and whether a line of it has begun.
    left_out: Option<(Ends, bool)>,
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
            kind: Kind::Message,
            last_id: None,
            retry: None,
            left_out: None,
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
        while let Some(event) = self.next_event()? {
            if event.kind == Kind::Message {
                return Ok(Some(event.data));
            }
        }
        Ok(None)
    }

    /// The next whole event that has data.
    pub(super) fn next_event(&mut self) -> Result<Option<Event>, TooLarge> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
                continue;
            }
            self.field(line)?;
        }
        Ok(None)
    }

    /// Leaves out the event that was too large; what is left of it, once it is over.
    pub(super) fn skip(&mut self) -> Option<Ends> {
        let (mut ends, mut is_in_line) = self.left_out.take().unwrap_or_else(|| {
            let mut ends = Ends::default();
            for line in std::mem::take(&mut self.data) {
                ends.add(&line);
            }
            (ends, false)
        });
        self.scanned = 0;
        self.is_first_line = false;
        loop {
            self.pass_line_feed();
            let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer) else {
                is_in_line |= !self.buffer.is_empty();
                ends.add(&self.buffer);
                self.buffer.clear();
                self.left_out = Some((ends, is_in_line));
                return None;
            };
            self.skips_line_feed = self.buffer.get(found) == Some(&b'\r');
            let line = self.buffer.split_to(found);
            self.buffer.advance(1);
            if line.is_empty() && !is_in_line {
                self.size = 0;
                self.kind = Kind::Message;
                ends.head = without_field(&ends.head).to_vec();
                return Some(ends);
            }
            is_in_line = false;
            ends.add(&line);
        }
    }

    fn pass_line_feed(&mut self) {
        if self.skips_line_feed && !self.buffer.is_empty() {
            self.skips_line_feed = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
            }
        }
    }

    fn line(&mut self) -> Result<Option<Bytes>, TooLarge> {
        self.pass_line_feed();
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let found = memchr::memchr2(b'\n', b'\r', fresh);
        let length = self.scanned + found.unwrap_or(fresh.len());
        if length > self.limit.saturating_add(16) {
            return Err(TooLarge);
        }
        let Some(found) = found else {
            self.scanned = length;
            return Ok(None);
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
                self.data.push(line);
                if self.size > self.limit.saturating_add(1) {
                    return Err(TooLarge);
                }
            }
            b"event" => {
                self.kind = match line.as_ref() {
                    b"" | b"message" => Kind::Message,
                    b"endpoint" => Kind::Endpoint,
                    _ => Kind::Other,
                }
            }
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

    fn dispatch(&mut self) -> Option<Event> {
        let data = std::mem::take(&mut self.data);
        self.size = 0;
        let kind = std::mem::replace(&mut self.kind, Kind::Message);
        let data = match data.as_slice() {
            [] => return None,
            [only] => only.clone(),
            many => Bytes::from(many.join(&b"\n"[..])),
        };
        (!data.is_empty()).then_some(Event { kind, data })
    }
}

/// A line of data without the name of its field.
fn without_field(line: &[u8]) -> &[u8] {
    let data = line.strip_prefix(b"data:").unwrap_or(line);
    data.strip_prefix(b" ").unwrap_or(data)
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

    #[test]
    fn an_event_beyond_the_bound_leaves_its_ends_and_the_next_event_whole() {
        for line_end in ["\n", "\r\n", "\r"] {
            let text = format!(
                "data: {{\"id\":7,{}\"end\":8}}{line_end}{line_end}event: endpoint{line_end}data: /next{line_end}{line_end}",
                "x".repeat(900)
            );
            for size in [1, 7, 5000] {
                let mut events = Events::new(100);
                let (mut left_out, mut found, mut is_skipping) = (Vec::new(), Vec::new(), false);
                for chunk in text.as_bytes().chunks(size) {
                    events.push(chunk);
                    loop {
                        if is_skipping {
                            let Some(ends) = events.skip() else { break };
                            left_out.push(ends);
                            is_skipping = false;
                        }
                        match events.next_event() {
                            Ok(Some(event)) => found.push(event),
                            Ok(None) => break,
                            Err(TooLarge) => is_skipping = true,
                        }
                    }
                }
                let [ends] = left_out.as_slice() else {
                    panic!("{left_out:?}")
                };
                assert!(ends.head.starts_with(b"{\"id\":7,xx"), "{ends:?}");
                assert!(ends.tail.ends_with(b"x\"end\":8}"), "{ends:?}");
                let next = Event {
                    kind: Kind::Endpoint,
                    data: Bytes::from_static(b"/next"),
                };
                assert_eq!(found, [next], "{line_end:?} {size}");
            }
        }
    }
}
