//! Server-sent events (WHATWG HTML, section 9.2.6), as far as MCP uses them: the data of each event is one message.

/// Collects bytes and gives the data of each whole event.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    data: Vec<u8>,
}

impl Events {
    /// Takes bytes as they came and returns the messages that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.buffer.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let rest = self.buffer.split_off(end + 1);
            let line = std::mem::replace(&mut self.buffer, rest);
            self.line(line.trim_ascii_end(), &mut messages);
        }
        messages
    }

    /// Bytes that wait for the rest of their event.
    pub(super) fn held(&self) -> usize {
        self.buffer.len() + self.data.len()
    }

    fn line(&mut self, line: &[u8], messages: &mut Vec<Vec<u8>>) {
        if line.is_empty() {
            if !self.data.is_empty() {
                messages.push(std::mem::take(&mut self.data));
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data
                .extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_the_bytes_are_cut() {
        let stream = b": hi\nid: 1\ndata: {\"a\":1}\r\n\r\ndata:{\"b\":\ndata: 2}\n\n";
        for cut in 0..stream.len() {
            let (head, tail) = stream.split_at(cut);
            let mut events = Events::default();
            let mut messages = events.push(head);
            messages.extend(events.push(tail));
            assert_eq!(
                messages,
                [b"{\"a\":1}".to_vec(), b"{\"b\":\n2}".to_vec()],
                "cut at {cut}"
            );
            assert_eq!(events.held(), 0);
        }
    }
}
