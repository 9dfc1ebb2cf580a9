//! From text to tokens: words with their expansions, operators, here-documents. Linear, bounded in depth, and strict: what
//! shells read differently is refused or marked.

use super::document::HereDocument;
use super::word::{Word, is_deceptive};

/// How many constructs may be inside each other.
pub(super) const MAX_DEPTH: usize = 12;

/// Why text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// Something that was begun does not end.
    #[error("{0} does not end")]
    Unterminated(&'static str),
    /// Shells differ in what they make of it, or it is beyond this reader.
    #[error("{0} cannot be read with certainty")]
    Unreadable(&'static str),
    /// Nested too deeply.
    #[error("constructs are nested more deeply than {MAX_DEPTH}")]
    TooDeep,
}

/// A token of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// An operator, or a line's end.
    Operator(&'static str),
    /// A word, by its place among the script's words.
    Word(usize),
    /// A number directly before a redirection.
    Descriptor(u32),
    /// A word that begins an array assignment: `name=` directly before `(`.
    Array(usize),
}

/// The tokens of a text or of a substitution.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) tokens: Vec<Token>,
    pub(super) words: Vec<Word>,
}

impl Script {
    fn says(&self, index: usize, text: &str) -> bool {
        self.words
            .get(index)
            .is_some_and(|word| !word.quoted && word.text == text)
    }

    pub(super) fn push(&mut self, word: Word) {
        self.words.push(word);
        self.tokens.push(Token::Word(self.words.len() - 1));
    }
}

const OPERATORS: [&str; 23] = [
    ";;&", "&>>", "<<<", "<<-", "&&", "||", ";;", ";&", "|&", "&>", "<<", "<&", "<>", ">>", ">&", ">|", "&",
    "|", ";", "<", ">", "(", ")",
];

/// What the last token lets the next one be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The beginning of a command.
    Command,
    /// A tag of a here-document.
    Tag { strips_tabs: bool },
    /// `for` at the beginning of a command.
    For,
    /// Anything else; whether a shell might see the beginning of a command here.
    Other { doubtful: bool },
}

/// What a `)` ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enclosing {
    Parentheses,
    /// A pattern of a `case`.
    Case,
}

pub(super) struct Lexer<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Characters were seen that deceive.
    pub(super) deceives: bool,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            deceives: false,
        }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let is_next = self.rest().starts_with(expected);
        if is_next {
            self.at += expected.len();
        }
        is_next
    }

    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth >= MAX_DEPTH {
            return Err(Refusal::TooDeep);
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }

    /// Reads a whole text, or a substitution up to and with its `)`.
    pub(super) fn script(&mut self, is_substitution: bool) -> Result<Script, Refusal> {
        let mut script = Script::default();
        let mut before = Before::Command;
        let mut documents: Vec<HereDocument> = Vec::new();
        let mut enclosing: Vec<Enclosing> = Vec::new();
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else {
                return match (is_substitution, documents.is_empty()) {
                    (true, _) => Err(Refusal::Unterminated("a substitution")),
                    (_, false) => Err(Refusal::Unterminated("a here-document")),
                    _ => Ok(script),
                };
            };
            if c == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    let c = self.bump();
                    self.deceives |= c.is_some_and(is_deceptive);
                }
                continue;
            }
            if c == '\n' {
                self.bump();
                if matches!(before, Before::Tag { .. }) {
                    return Err(Refusal::Unterminated("a here-document's operator"));
                }
                script.tokens.push(Token::Operator("\n"));
                for document in documents.drain(..) {
                    self.here_document(&document, &mut script)?;
                }
                before = Before::Command;
                continue;
            }
            let is_process = matches!(c, '<' | '>') && self.second() == Some('(');
            if matches!(c, '&' | '|' | ';' | '<' | '>' | '(' | ')') && !is_process {
                if c == '(' && self.second() == Some('(') && self.arithmetic_command(before, &mut script)? {
                    before = Before::Other { doubtful: true };
                    continue;
                }
                if c == ')' && is_substitution && enclosing.is_empty() {
                    self.bump();
                    return match documents.is_empty() && !matches!(before, Before::Tag { .. }) {
                        true => Ok(script),
                        false => Err(Refusal::Unterminated("a here-document")),
                    };
                }
                before = self.operator(&mut script, &mut enclosing);
                continue;
            }
            let start = self.at;
            let was = before;
            before = self.word_token(before, &mut script, &mut documents)?;
            let raw = self.text.get(start..self.at).unwrap_or_default();
            case_word(raw, was, is_substitution, &mut enclosing)?;
        }
    }

    fn skip_blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
    }

    fn operator(&mut self, script: &mut Script, enclosing: &mut Vec<Enclosing>) -> Before {
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.eat(operator)) else {
            self.bump();
            return Before::Other { doubtful: true };
        };
        // The parser would take two in a row for arithmetic, which is recognised here.
        if operator == "(" && script.tokens.last() == Some(&Token::Operator("(")) {
            script.tokens.push(Token::Operator("\n"));
        }
        // The parser would take `esac )` for a pattern.
        if operator == ")"
            && matches!(script.tokens.last(), Some(Token::Word(last)) if script.says(*last, "esac"))
        {
            script.tokens.push(Token::Operator("\n"));
        }
        script.tokens.push(Token::Operator(operator));
        match operator {
            "(" => enclosing.push(Enclosing::Parentheses),
            // The end of a pattern, after which a command begins.
            ")" if enclosing.last() == Some(&Enclosing::Case) => return Before::Command,
            ")" => {
                enclosing.pop();
            }
            _ => (),
        }
        match operator {
            "<<" => Before::Tag { strips_tabs: false },
            "<<-" => Before::Tag { strips_tabs: true },
            ")" | ";;" | ";&" | ";;&" => Before::Other { doubtful: true },
            "<" | ">" | "<<<" | "&>" | "&>>" | "<&" | "<>" | ">>" | ">&" | ">|" => {
                Before::Other { doubtful: false }
            }
            _ => Before::Command,
        }
    }

    /// `((…))` where a command begins, and after `for`. Returns false, having read nothing, when it is not there.
    fn arithmetic_command(&mut self, before: Before, script: &mut Script) -> Result<bool, Refusal> {
        if !matches!(before, Before::Command | Before::For) {
            return Ok(false);
        }
        let start = self.at;
        self.at += 2;
        let mut word = Word::default();
        match self.deeper(|lexer| lexer.arithmetic(&mut word)) {
            Ok(()) => (),
            Err(Refusal::Unreadable(_)) if before == Before::Command => {
                self.at = start;
                return Ok(false);
            }
            Err(refusal) => return Err(refusal),
        }
        if before == Before::For {
            // `for ((…)); do` is read as `while …; do`: only what runs matters.
            script.tokens.pop();
            script.push(Word::literal("while"));
            if let Some(last) = script.words.last_mut() {
                last.quoted = false;
            }
            script.push(word);
            self.skip_blanks();
            if !matches!(self.peek(), Some(';' | '\n')) {
                script.tokens.push(Token::Operator(";"));
            }
            return Ok(true);
        }
        script.push(word);
        Ok(true)
    }

    fn word_token(
        &mut self,
        before: Before,
        script: &mut Script,
        documents: &mut Vec<HereDocument>,
    ) -> Result<Before, Refusal> {
        let start = self.at;
        let word = self.word()?;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        if let Before::Tag { strips_tabs } = before {
            if word.open || word.splits || word.runs || word.text.contains('\n') {
                return Err(Refusal::Unreadable("a here-document's tag"));
            }
            let (tag, is_literal) = (word.text.clone(), word.quoted);
            script.push(Word::literal(&tag));
            script.push(Word::default());
            let body = script.words.len() - 1;
            script.push(Word::literal(&tag));
            documents.push(HereDocument {
                body,
                tag,
                is_literal,
                strips_tabs,
            });
            return Ok(Before::Other { doubtful: false });
        }
        let is_number = raw.len() <= 6 && !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(self.peek(), Some('<' | '>')) {
            let number = raw.parse().map_err(|_| Refusal::Unreadable("a descriptor"))?;
            script.tokens.push(Token::Descriptor(number));
            return Ok(before);
        }
        if before == Before::Command && raw == "[[" {
            script.push(self.extended_test()?);
            return Ok(Before::Other { doubtful: true });
        }
        let after = match raw {
            "if" | "then" | "else" | "elif" | "do" | "while" | "until" | "{" | "!" | "time"
                if before == Before::Command =>
            {
                Before::Command
            }
            "for" if before == Before::Command => Before::For,
            _ => Before::Other {
                doubtful: is_reserved(raw),
            },
        };
        if raw.ends_with('=') && self.peek() == Some('(') && word.assigns == Some(word.text.len()) {
            script.words.push(word);
            script.tokens.push(Token::Array(script.words.len() - 1));
        } else {
            script.push(word);
        }
        Ok(after)
    }

    /// The rest of `[[ … ]]`, as one word that runs something: comparisons evaluate, and evaluation can run commands.
    fn extended_test(&mut self) -> Result<Word, Refusal> {
        let mut test = Word {
            text: "[[".to_owned(),
            open: true,
            runs: true,
            ..Word::default()
        };
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(Refusal::Unterminated("[[")),
                Some('#') => return Err(Refusal::Unreadable("a # inside [[")),
                Some(';') => return Err(Refusal::Unreadable("a ; inside [[")),
                Some('<' | '>') if self.second() == Some('(') => {
                    return Err(Refusal::Unreadable("a substitution inside [["));
                }
                Some('\n' | '&' | '|' | '(' | ')' | '<' | '>') => {
                    self.bump();
                }
                Some(_) => {
                    let start = self.at;
                    let word = self.word()?;
                    if self.text.get(start..self.at) == Some("]]") {
                        return Ok(test);
                    }
                    test.inner.extend(word.inner);
                }
            }
        }
    }
}

/// Follows `case` and `esac`, which decide what a `)` inside of a substitution ends.
fn case_word(
    raw: &str,
    before: Before,
    is_substitution: bool,
    enclosing: &mut Vec<Enclosing>,
) -> Result<(), Refusal> {
    let is_certain = before == Before::Command;
    let is_doubtful = matches!(before, Before::Other { doubtful: true });
    match raw {
        "case" if is_certain => enclosing.push(Enclosing::Case),
        "esac" if (is_certain || is_doubtful) && enclosing.last() == Some(&Enclosing::Case) => {
            enclosing.pop();
        }
        "case" | "esac" if is_doubtful && is_substitution => {
            return Err(Refusal::Unreadable("case inside a substitution"));
        }
        _ => (),
    }
    Ok(())
}

/// Whether a shell gives the word a meaning of its own where a command begins.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "!" | "{"
            | "}"
            | "case"
            | "do"
            | "done"
            | "elif"
            | "else"
            | "esac"
            | "fi"
            | "for"
            | "if"
            | "in"
            | "then"
            | "until"
            | "while"
            | "[["
            | "]]"
            | "function"
            | "select"
            | "coproc"
            | "time"
    )
}
