//! Reading one word: quotes, escapes and expansions.

use super::lexer::{Lexer, Refusal};
use super::word::{OPEN, Word, ansi_escape, is_deceptive};

impl Lexer<'_> {
    /// Reads a word up to what delimits it.
    pub(super) fn word(&mut self) -> Result<Word, Refusal> {
        let start = self.at;
        let mut word = Word::default();
        let (mut bracket, mut brace, mut list) = (false, false, false);
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | '&' | '|' | ';' | '(' | ')' => break,
                '<' | '>' if self.second() == Some('(') => {
                    self.at += 2;
                    let script = self.deeper(|lexer| lexer.script(true))?;
                    word.inner.push(script);
                    word.runs = true;
                    open(&mut word, true);
                }
                '<' | '>' => break,
                '\\' => self.escape(&mut word)?,
                '\'' => self.single_quotes(&mut word)?,
                '"' => self.double_quotes(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backquotes(&mut word, false)?,
                _ => {
                    self.bump();
                    match c {
                        '*' | '?' => word.glob = true,
                        '[' => bracket = true,
                        ']' if bracket => word.glob = true,
                        '{' => brace = true,
                        ',' if brace => list = true,
                        '.' if brace && self.peek() == Some('.') => list = true,
                        '}' if list => word.splits = true,
                        '!' => self.history(&mut word),
                        '^' if word.text.is_empty() => word.runs = true,
                        '=' if word.assigns.is_none() && is_name(&word) => {
                            word.assigns = Some(word.text.len() + 1)
                        }
                        _ => (),
                    }
                    self.literal(&mut word, c);
                }
            }
        }
        if self.at == start {
            return Err(Refusal::Unreadable("a word"));
        }
        Ok(word)
    }

    fn literal(&mut self, word: &mut Word, c: char) {
        if is_deceptive(c) {
            self.deceives = true;
            word.runs = true;
            // A shell drops it, and what follows joins what was before.
            if c == '\0' {
                return;
            }
        }
        if c == OPEN {
            word.open = true;
        }
        word.text.push(c);
    }

    /// What an interactive shell replaces by an earlier command.
    fn history(&mut self, word: &mut Word) {
        if self
            .peek()
            .is_some_and(|c| !matches!(c, ' ' | '\t' | '\n' | '=' | '(' | ')' | '"' | ']'))
        {
            word.runs = true;
        }
    }

    fn escape(&mut self, word: &mut Word) -> Result<(), Refusal> {
        self.bump();
        match self.bump() {
            None => Err(Refusal::Unterminated("an escape")),
            Some('\n') => Ok(()),
            Some(c) => {
                word.quoted = true;
                self.literal(word, c);
                Ok(())
            }
        }
    }

    fn single_quotes(&mut self, word: &mut Word) -> Result<(), Refusal> {
        self.bump();
        word.quoted = true;
        loop {
            match self.bump() {
                None => return Err(Refusal::Unterminated("a single quote")),
                Some('\'') => return Ok(()),
                Some(c) => self.literal(word, c),
            }
        }
    }

    pub(super) fn double_quotes(&mut self, word: &mut Word) -> Result<(), Refusal> {
        self.bump();
        word.quoted = true;
        loop {
            match self.peek() {
                None => return Err(Refusal::Unterminated("a double quote")),
                Some('"') => {
                    self.bump();
                    return Ok(());
                }
                Some(_) => self.quoted_piece(word)?,
            }
        }
    }

    /// The body of a here-document that is expanded.
    pub(super) fn document_body(&mut self) -> Result<Word, Refusal> {
        let mut word = Word {
            quoted: true,
            ..Word::default()
        };
        while let Some(c) = self.peek() {
            if c == '"' {
                self.bump();
                word.text.push(c);
            } else {
                self.quoted_piece(&mut word)?;
            }
        }
        Ok(word)
    }

    fn quoted_piece(&mut self, word: &mut Word) -> Result<(), Refusal> {
        match self.peek() {
            Some('$') => self.dollar(word, true),
            Some('`') => self.backquotes(word, true),
            Some('\\') => {
                self.bump();
                match self.peek() {
                    Some('\n') => {
                        self.bump();
                    }
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        self.bump();
                        word.text.push(c);
                    }
                    _ => word.text.push('\\'),
                }
                Ok(())
            }
            Some(c) => {
                self.bump();
                if c == '!' {
                    self.history(word);
                }
                self.literal(word, c);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Everything that begins with `$`.
    fn dollar(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Refusal> {
        self.bump();
        match self.peek() {
            Some('(') => {
                self.bump();
                word.runs = true;
                if self.eat("(") {
                    self.deeper(|lexer| lexer.arithmetic(word))?;
                } else {
                    let script = self.deeper(|lexer| lexer.script(true))?;
                    word.inner.push(script);
                }
                open(word, !is_quoted);
            }
            Some('{') => {
                self.bump();
                self.deeper(|lexer| lexer.parameter(word))?;
                open(word, !is_quoted);
            }
            Some('[') => return Err(Refusal::Unreadable("$[")),
            Some('\'') if !is_quoted => self.ansi_quotes(word)?,
            Some('"') if !is_quoted => {
                word.runs = true;
                self.double_quotes(word)?;
            }
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                while self.peek().is_some_and(|c| c == '_' || c.is_ascii_alphanumeric()) {
                    self.bump();
                }
                open(word, !is_quoted);
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '@' | '*' | '#' | '?' | '$' | '!' | '-') => {
                self.bump();
                open(word, !is_quoted || c == '@');
            }
            // A line continuation may hide what follows.
            Some('\\') => return Err(Refusal::Unreadable("a $ before a backslash")),
            _ => word.text.push('$'),
        }
        Ok(())
    }

    /// `$'…'`, which only some shells know: what it decodes to is used, and it is never harmless.
    fn ansi_quotes(&mut self, word: &mut Word) -> Result<(), Refusal> {
        self.bump();
        word.quoted = true;
        word.runs = true;
        loop {
            match self.bump() {
                None => return Err(Refusal::Unterminated("$'")),
                Some('\'') => return Ok(()),
                Some('\\') => match ansi_escape(self.rest()) {
                    Some((c, used)) => {
                        self.at += used;
                        word.text.push(c);
                    }
                    None => {
                        if self.bump().is_none() {
                            return Err(Refusal::Unterminated("$'"));
                        }
                        open(word, false);
                    }
                },
                Some(c) => self.literal(word, c),
            }
        }
    }

    fn backquotes(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Refusal> {
        self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err(Refusal::Unterminated("a backquote")),
                Some('`') => break,
                Some('\\') => match self.bump() {
                    None => return Err(Refusal::Unterminated("a backquote")),
                    Some(c @ ('$' | '`' | '\\')) => text.push(c),
                    Some('"') if is_quoted => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                },
                Some(c) => text.push(c),
            }
        }
        let mut inner = Lexer::new(&text, self.depth);
        let script = inner.deeper(|lexer| lexer.script(false))?;
        self.deceives |= inner.deceives;
        word.inner.push(script);
        word.runs = true;
        open(word, !is_quoted);
        Ok(())
    }

    /// The rest of an arithmetic expression, up to and with `))`.
    pub(super) fn arithmetic(&mut self, word: &mut Word) -> Result<(), Refusal> {
        word.runs = true;
        word.open = true;
        let mut parentheses = 0_usize;
        loop {
            match self.peek() {
                None => return Err(Refusal::Unterminated("arithmetic")),
                Some('$') => self.dollar(word, true)?,
                Some('`') => self.backquotes(word, true)?,
                Some('\'' | '"' | '\\' | '#' | '{' | '}') => return Err(Refusal::Unreadable("arithmetic")),
                Some(')') if parentheses == 0 => {
                    return match self.eat("))") {
                        true => Ok(()),
                        false => Err(Refusal::Unreadable("arithmetic")),
                    };
                }
                Some(c) => {
                    match c {
                        '(' => parentheses += 1,
                        ')' => parentheses -= 1,
                        _ => (),
                    }
                    self.bump();
                }
            }
        }
    }

    /// The rest of `${…}`, up to and with its `}`. What is not a plain value of a variable can run something.
    fn parameter(&mut self, word: &mut Word) -> Result<(), Refusal> {
        let start = self.at;
        while self.peek().is_some_and(|c| c == '_' || c.is_ascii_alphanumeric()) {
            self.bump();
        }
        if self.at == start
            && self
                .peek()
                .is_some_and(|c| matches!(c, '@' | '*' | '#' | '?' | '$' | '!' | '-'))
        {
            let special = self.bump();
            if self.peek() != Some('}') {
                word.runs = true;
            } else if special == Some('@') {
                word.splits = true;
            }
        }
        if self.eat("}") {
            return Ok(());
        }
        if !(self.eat(":-") || self.eat(":+") || self.eat(":?")) {
            word.runs = true;
        }
        let mut ignored = Word::default();
        loop {
            match self.peek() {
                None => return Err(Refusal::Unterminated("${")),
                Some('}') => {
                    self.bump();
                    break;
                }
                Some('\\') => self.escape(&mut ignored)?,
                // Inside double quotes shells differ in what a single quote is.
                Some('\'') => return Err(Refusal::Unreadable("a quote inside ${")),
                Some('"') => self.deeper(|lexer| lexer.double_quotes(&mut ignored))?,
                Some('$') if self.second() == Some('\'') => {
                    return Err(Refusal::Unreadable("a quote inside ${"));
                }
                Some('$') => self.dollar(&mut ignored, true)?,
                Some('`') => self.backquotes(&mut ignored, true)?,
                Some('<' | '>') if self.second() == Some('(') => {
                    return Err(Refusal::Unreadable("a substitution inside ${"));
                }
                Some(c) => {
                    self.bump();
                    self.deceives |= is_deceptive(c);
                }
            }
        }
        word.runs |= ignored.runs;
        word.inner.append(&mut ignored.inner);
        Ok(())
    }
}

fn open(word: &mut Word, splits: bool) {
    word.open = true;
    word.splits |= splits;
    word.text.push(OPEN);
}

/// Whether what stands before `=` is unquoted and a variable's name, perhaps with an index or `+`.
fn is_name(word: &Word) -> bool {
    if word.quoted || word.text.is_empty() {
        return false;
    }
    let name = word.text.strip_suffix('+').unwrap_or(&word.text);
    let name = match name.split_once('[') {
        Some((name, index)) if index.ends_with(']') => name,
        Some(_) => return false,
        None if word.open => return false,
        None => name,
    };
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
        && characters.all(|c| c == '_' || c.is_ascii_alphanumeric())
}
