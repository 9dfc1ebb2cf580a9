//! The one pass from bytes to tape.

use std::collections::HashSet;

use super::node::{Entry, Tag};
use super::{JsonError, JsonErrorKind, Limits, MAX_BYTES, MAX_DEPTH, text};
use crate::decimal::{DecimalError, scan};

/// Objects with at most this many members compare keys with each other; larger ones by a hash set.
const LINEAR_KEYS: usize = 16;

pub(super) fn parse(bytes: &[u8], limits: Limits) -> Result<(&str, Vec<Entry>), JsonError> {
    let max_bytes = limits.max_bytes.min(MAX_BYTES);
    if bytes.len() > max_bytes {
        let kind = JsonErrorKind::TooLarge { limit: max_bytes };
        return Err(JsonError {
            offset: max_bytes,
            kind,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
        offset: error.valid_up_to(),
        kind: JsonErrorKind::InvalidUtf8,
    })?;
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        tape: Vec::with_capacity((bytes.len() / 6 + 4).min(4096)),
        open: Vec::with_capacity(8),
        keys: Vec::with_capacity(32),
        max_depth: limits.max_depth.min(MAX_DEPTH),
    };
    parser.run()?;
    Ok((text, parser.tape))
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tape: Vec<Entry>,
    /// The arrays and objects that are open, outermost first.
    open: Vec<Open>,
    /// The keys of all open objects, outermost first.
    keys: Vec<Entry>,
    max_depth: usize,
}

#[derive(Clone, Copy)]
struct Open {
    /// Index of its first entry on the tape.
    index: usize,
    start: usize,
    is_object: bool,
    count: usize,
    /// Where its keys begin.
    keys: usize,
}

/// What comes next.
enum Next {
    Value,
    AfterValue,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), JsonError> {
        let mut next = Next::Value;
        loop {
            self.skip_white_space();
            next = match next {
                Next::Value => self.value()?,
                Next::AfterValue => match self.open.last().copied() {
                    Some(open) => self.after_value(open)?,
                    None if self.at == self.bytes.len() => return Ok(()),
                    None => return Err(self.error(JsonErrorKind::Syntax)),
                },
            };
        }
    }

    fn value(&mut self) -> Result<Next, JsonError> {
        match self.peek() {
            Some(b'"') => {
                let entry = self.string()?;
                self.tape.push(entry);
                Ok(Next::AfterValue)
            }
            Some(b'{') => self.open(true),
            Some(b'[') => self.open(false),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true", Tag::Bool),
            Some(b'f') => self.literal(b"false", Tag::Bool),
            Some(b'n') => self.literal(b"null", Tag::Null),
            _ => Err(self.unexpected()),
        }
    }

    fn open(&mut self, is_object: bool) -> Result<Next, JsonError> {
        if self.open.len() >= self.max_depth {
            return Err(self.error(JsonErrorKind::TooDeep {
                limit: self.max_depth,
            }));
        }
        let mut open = Open {
            index: self.tape.len(),
            start: self.at,
            is_object,
            count: 0,
            keys: self.keys.len(),
        };
        let tag = if is_object { Tag::Object } else { Tag::Array };
        self.tape.push(Entry::new(tag, self.at, 0));
        self.at += 1;
        self.skip_white_space();
        let closing = if is_object { b'}' } else { b']' };
        if self.peek() == Some(closing) {
            self.close(open, tag)?;
            return Ok(Next::AfterValue);
        }
        open.count = 1;
        self.open.push(open);
        if is_object {
            self.key(open)?;
        }
        Ok(Next::Value)
    }

    /// After an element or member: a comma and one more, or the end.
    fn after_value(&mut self, open: Open) -> Result<Next, JsonError> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                if let Some(last) = self.open.last_mut() {
                    last.count += 1;
                }
                if open.is_object {
                    self.skip_white_space();
                    self.key(open)?;
                }
                Ok(Next::Value)
            }
            Some(b'}') if open.is_object => {
                self.open.pop();
                self.close(open, Tag::Object)?;
                Ok(Next::AfterValue)
            }
            Some(b']') if !open.is_object => {
                self.open.pop();
                self.close(open, Tag::Array)?;
                Ok(Next::AfterValue)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn close(&mut self, open: Open, tag: Tag) -> Result<(), JsonError> {
        self.at += 1;
        if open.count > LINEAR_KEYS && open.is_object {
            self.check_many_keys(open.keys)?;
        }
        self.keys.truncate(open.keys);
        let close = self.tape.len();
        self.tape.push(Entry::new(Tag::Close, self.at, open.count));
        if let Some(entry) = self.tape.get_mut(open.index) {
            *entry = Entry::new(tag, open.start, close);
        }
        Ok(())
    }

    fn key(&mut self, open: Open) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = self.string()?;
        let earlier = self.keys.get(open.keys..).unwrap_or_default();
        if earlier.len() < LINEAR_KEYS && earlier.iter().any(|other| self.same_key(*other, key)) {
            return Err(duplicate(key));
        }
        self.keys.push(key);
        self.tape.push(key);
        self.skip_white_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn same_key(&self, left: Entry, right: Entry) -> bool {
        if left.escaped() || right.escaped() {
            left.string(self.text) == right.string(self.text)
        } else {
            left.inside(self.text) == right.inside(self.text)
        }
    }

    fn check_many_keys(&self, from: usize) -> Result<(), JsonError> {
        let keys = self.keys.get(from..).unwrap_or_default();
        let mut seen = HashSet::with_capacity(keys.len());
        for key in keys {
            if !seen.insert(key.string(self.text)) {
                return Err(duplicate(*key));
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<Entry, JsonError> {
        let start = self.at;
        let span = text::scan(self.bytes, start + 1)?;
        self.at = span.end + 1;
        Ok(Entry::new(Tag::String, start, self.at).with_escapes(span.escaped))
    }

    fn number(&mut self) -> Result<Next, JsonError> {
        let start = self.at;
        let parts = scan(self.bytes.get(start..).unwrap_or_default()).map_err(|error| JsonError {
            offset: start,
            kind: match error {
                DecimalError::Syntax => JsonErrorKind::Syntax,
                DecimalError::Exponent => JsonErrorKind::Exponent,
            },
        })?;
        self.at += parts.length;
        self.tape.push(Entry::new(Tag::Number, start, self.at));
        Ok(Next::AfterValue)
    }

    fn literal(&mut self, word: &[u8], tag: Tag) -> Result<Next, JsonError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.error(JsonErrorKind::Syntax));
        }
        let start = self.at;
        self.at += word.len();
        self.tape.push(Entry::new(tag, start, self.at));
        Ok(Next::AfterValue)
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn unexpected(&self) -> JsonError {
        self.error(if self.at < self.bytes.len() {
            JsonErrorKind::Syntax
        } else {
            JsonErrorKind::UnexpectedEnd
        })
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError {
            offset: self.at,
            kind,
        }
    }
}

fn duplicate(key: Entry) -> JsonError {
    JsonError {
        offset: key.start(),
        kind: JsonErrorKind::DuplicateKey,
    }
}
