//! What a program writes, up to a bound.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Read at once.
const CHUNK: usize = 64 * 1024;
/// Between two reads of what is thrown away: a program that floods its output must not take the thread that serves everybody.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);

/// One output of a program.
#[derive(Debug)]
pub(super) struct Captured {
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

/// An output as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) is_cut: bool,
    /// Some of it was no UTF-8 and has been replaced.
    pub(super) was_invalid: bool,
}

impl Captured {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            is_cut: false,
        }
    }

    /// Reads to the end. What is beyond the bound is read too, so that the program can go on, and thrown away.
    pub(super) async fn fill(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            let room = self.limit.saturating_sub(self.bytes.len());
            self.bytes
                .extend_from_slice(chunk.get(..count.min(room)).unwrap_or_default());
            if count > room {
                self.is_cut = true;
                tokio::time::sleep(FLOOD_PAUSE).await;
            }
        }
    }

    /// The output as text that adds at most `room` bytes to an answer. A character that the cut went through is left out, and the
    /// cut is marked.
    pub(super) fn text(mut self, name: &str, room: usize) -> Text {
        if self.is_cut {
            let whole = match std::str::from_utf8(&self.bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Ok(_) | Err(_) => self.bytes.len(),
            };
            self.bytes.truncate(whole);
        }
        let (mut text, was_invalid) = match String::from_utf8(self.bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        let mut kept = self.limit;
        if let Some(at) = end_of_room(&text, room) {
            text.truncate(at);
            (kept, self.is_cut) = (at, true);
        }
        if self.is_cut {
            text.push_str(&format!("\n[{name} was cut after {kept} bytes]"));
        }
        Text {
            text,
            is_cut: self.is_cut,
            was_invalid,
        }
    }
}

/// Where a text has to end to add at most `room` bytes to an answer; `None`: nowhere before its end.
fn end_of_room(text: &str, room: usize) -> Option<usize> {
    let mut left = room;
    for (at, character) in text.char_indices() {
        left = match left.checked_sub(bytes_in_answer(character)) {
            Some(left) => left,
            None => return Some(at),
        };
    }
    None
}

/// What a character adds to an answer, which holds it twice: in a JSON text, and in a JSON text within a JSON text.
fn bytes_in_answer(character: char) -> usize {
    match character {
        '"' | '\\' => 2 + 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
        '\0'..='\u{1f}' => 6 + 7,
        _ => 2 * character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn captured(bytes: &[u8], limit: usize) -> Text {
        let mut captured = Captured::new(limit);
        captured.fill(bytes).await;
        captured.text("stdout", usize::MAX)
    }

    #[tokio::test]
    async fn output_is_kept_up_to_its_bound_and_the_cut_is_marked() {
        let whole = captured(b"abc", 3).await;
        assert_eq!((whole.text.as_str(), whole.is_cut), ("abc", false));
        let cut = captured(b"abcd", 3).await;
        assert_eq!(
            (cut.text.as_str(), cut.is_cut),
            ("abc\n[stdout was cut after 3 bytes]", true)
        );
        let large = captured(&vec![b'x'; 300_000], 100_000).await;
        assert!(large.is_cut && large.text.len() < 100_100);
    }

    #[tokio::test]
    async fn what_is_no_text_is_replaced_and_told_and_a_cut_splits_no_character() {
        let bad = captured(b"a\xffb", 9).await;
        assert_eq!((bad.text.as_str(), bad.was_invalid), ("a\u{fffd}b", true));
        let cut = captured("aé".as_bytes(), 2).await;
        assert!(cut.text.starts_with("a\n[") && !cut.was_invalid);
    }

    #[tokio::test]
    async fn what_grows_when_it_is_written_as_an_answer_is_cut_where_its_room_ends() {
        for character in ["\0", "\u{8}", "\n", "\"", "\\", "a", "é", "\u{2028}", "\u{7f}"] {
            let mut all = Captured::new(9_000);
            all.fill(character.repeat(2_000).as_bytes()).await;
            let text = all.text("stdout", 3_000);
            assert!(text.is_cut, "{character:?}");
            let (kept, mark) = text.text.rsplit_once('\n').unwrap();
            assert_eq!(mark, format!("[stdout was cut after {} bytes]", kept.len()));
            let once = serde_json::Value::from(kept).to_string();
            let twice = serde_json::Value::from(once.as_str()).to_string();
            // Without the quotation marks around both, which the inner one has escaped in the outer.
            let bytes = once.len() - 2 + twice.len() - 6;
            assert!((2_980..=3_000).contains(&bytes), "{character:?}: {bytes}");
        }
    }
}
