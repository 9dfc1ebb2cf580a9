//! A text by its lines, and the places of values in it.

use crate::yaml::{Mark, Node, Style, Value};

/// The byte order mark, which no place counts.
const BOM: char = '\u{feff}';

/// A text whose lines are counted from 1, as the reader counts them.
pub(super) struct Page<'t> {
    bom: &'t str,
    text: &'t str,
    /// Where each line starts; the last is the end of the text.
    starts: Vec<usize>,
}

/// A part of the text (in bytes, without the byte order mark) and what comes in its place.
pub(super) struct Splice {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) text: String,
}

impl<'t> Page<'t> {
    pub(super) fn new(whole: &'t str) -> Self {
        let text = whole.strip_prefix(BOM).unwrap_or(whole);
        let bom = whole.strip_suffix(text).unwrap_or_default();
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { bom, text, starts }
    }

    /// The line that a lone carriage return ends, if there is one: readers differ in what they make of it.
    pub(super) fn odd_break(&self) -> Option<u32> {
        let at = self.text.match_indices('\r').map(|(at, _)| at);
        let odd = at
            .into_iter()
            .find(|at| self.text.as_bytes().get(at + 1) != Some(&b'\n'))?;
        let line = self.starts.iter().take_while(|start| **start <= odd).count();
        u32::try_from(line).ok()
    }

    /// Where a line starts; behind the last one, the end of the text.
    pub(super) fn start(&self, line: u32) -> usize {
        let index = (line as usize).saturating_sub(1);
        self.starts.get(index).copied().unwrap_or(self.text.len())
    }

    /// A line with what ends it; empty when there is no such line.
    pub(super) fn whole_line(&self, line: u32) -> &'t str {
        let end = self.start(line.saturating_add(1));
        match line {
            0 => "",
            _ => self.text.get(self.start(line)..end).unwrap_or_default(),
        }
    }

    /// A line without what ends it.
    pub(super) fn line(&self, line: u32) -> &'t str {
        let whole = self.whole_line(line);
        let bare = whole.strip_suffix('\n').unwrap_or(whole);
        bare.strip_suffix('\r').unwrap_or(bare)
    }

    /// What ends a line; for the last line of a text without a final break, what ends its first.
    pub(super) fn line_break(&self, line: u32) -> &'static str {
        let whole = self.whole_line(line);
        let shown = if whole.ends_with('\n') {
            whole
        } else {
            self.whole_line(1)
        };
        if shown.ends_with("\r\n") { "\r\n" } else { "\n" }
    }

    /// Whether a text that is put before a line has to break the one before first.
    pub(super) fn is_open_end(&self, line: u32) -> bool {
        self.start(line) == self.text.len() && !self.text.ends_with('\n')
    }

    /// Where a mark is, in bytes.
    pub(super) fn offset(&self, mark: Mark) -> Option<usize> {
        let line = self.whole_line(mark.line);
        let column = (mark.column as usize).checked_sub(1)?;
        let mut ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        Some(self.start(mark.line) + ends.nth(column)?)
    }

    /// The text behind a place.
    pub(super) fn from(&self, from: usize) -> &'t str {
        self.text.get(from..).unwrap_or_default()
    }

    /// The text between two places.
    pub(super) fn between(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// How far a line that holds only a comment is indented.
    pub(super) fn comment_indent(&self, line: u32) -> Option<usize> {
        let text = self.line(line);
        let comment = text.trim_start_matches(' ');
        comment.starts_with('#').then(|| text.len() - comment.len())
    }

    /// The last line on which something of a value stands.
    pub(super) fn last_line(&self, value: &Value) -> u32 {
        let layout = value.layout();
        match layout.style {
            Style::Plain | Style::Quoted | Style::Flow | Style::Alias => layout.end.line,
            Style::Lines => {
                let before = self.line_before(layout.end);
                if before.trim().is_empty() {
                    layout.end.line.saturating_sub(1)
                } else {
                    layout.end.line
                }
            }
            Style::Block => {
                let of_parts = match value.node() {
                    Node::Seq(elements) => elements.iter().map(|part| self.last_line(part)).max(),
                    Node::Map(map) => {
                        let entries = map.entries().iter();
                        entries
                            .map(|entry| entry.mark.line.max(self.last_line(&entry.value)))
                            .max()
                    }
                    Node::Null | Node::Bool(_) | Node::Number(_) | Node::NotFinite(_) | Node::String(_) => {
                        None
                    }
                };
                of_parts.unwrap_or(0).max(value.line())
            }
        }
    }

    /// What stands before a mark on its line.
    pub(super) fn line_before(&self, mark: Mark) -> &'t str {
        let end = self.offset(mark).unwrap_or(self.text.len());
        self.between(self.start(mark.line), end)
    }

    /// The text with some parts replaced; they are in order and do not overlap.
    pub(super) fn with(&self, splices: &[Splice]) -> String {
        let mut whole = self.bom.to_owned();
        let mut at = 0;
        for splice in splices {
            whole.push_str(self.between(at, splice.from));
            whole.push_str(&splice.text);
            at = splice.to;
        }
        whole.push_str(self.between(at, self.text.len()));
        whole
    }
}
