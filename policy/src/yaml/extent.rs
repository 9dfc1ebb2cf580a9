//! Where the events of the parser start and end.

use saphyr_parser::{Marker, Span};

use super::value::{Layout, Mark, Style};

/// A place of the parser's, in the reader's terms.
pub(super) fn mark(at: &Marker) -> Mark {
    Mark {
        line: to_u32(at.line()),
        column: to_u32(at.col() + 1),
    }
}

/// Where an event starts and ends.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) start: Mark,
    pub(super) end: Mark,
}

impl Extent {
    pub(super) fn of(span: &Span) -> Self {
        Self {
            start: mark(&span.start),
            end: mark(&span.end),
        }
    }

    /// Of the start of a list or mapping: only a bracket takes room.
    pub(super) fn collection(self, is_decorated: bool) -> Layout {
        let style = if self.start == self.end {
            Style::Block
        } else {
            Style::Flow
        };
        Layout {
            end: self.end,
            style,
            is_decorated,
        }
    }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
