//! The expressions of `pattern` and `patternProperties`, in linear time.

use std::borrow::Cow;
use std::fmt;

use regex_automata::meta::Regex;

use super::SchemaError;

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 4096;
/// The largest compiled expression, in bytes.
const MAX_COMPILED: usize = 512 << 10;

/// An expression as JSON Schema means it: ECMA-262 with `u`, found anywhere in a text.
#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) text: Box<str>,
    regex: Regex,
}

impl Pattern {
    pub(super) fn compile(text: &str) -> Result<Self, SchemaError> {
        let refused = |problem: String| SchemaError::Pattern {
            pattern: text.chars().take(80).collect(),
            problem,
        };
        if text.len() > MAX_LENGTH {
            return Err(refused(format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let config = Regex::config()
            .nfa_size_limit(Some(MAX_COMPILED))
            .onepass_size_limit(Some(MAX_COMPILED))
            .hybrid_cache_capacity(MAX_COMPILED);
        let regex = Regex::builder().configure(config).build(&translated(text));
        match regex {
            Ok(regex) => Ok(Self {
                text: text.into(),
                regex,
            }),
            Err(error) => Err(refused(
                error
                    .syntax_error()
                    .map_or_else(|| error.to_string(), |syntax| last_line(&syntax.to_string())),
            )),
        }
    }

    pub(super) fn is_found_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// Syntax errors draw the expression over several lines; the last one says what is wrong.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim().to_owned()
}

/// What ECMA-262 writes otherwise: `\uXXXX`, `\d` of ASCII digits, and classes in which `[`, `&&`, `~~` and `--` mean
/// themselves.
fn translated(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '[']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    let mut in_class = false;
    let mut before = '\0';
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let escaped = letters.next().unwrap_or('\\');
                escape(escaped, in_class, &mut letters, &mut out);
                before = '\0';
                continue;
            }
            '[' if in_class => out.push_str("\\["),
            '&' | '~' | '-' if in_class && before == letter => {
                out.push('\\');
                out.push(letter);
            }
            '[' => in_class = open_class(&mut letters, &mut out),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            _ => out.push(letter),
        }
        before = letter;
    }
    Cow::Owned(out)
}

/// Begins a class; says whether it goes on. `[]` accepts nothing and `[^]` everything there.
fn open_class(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> bool {
    let is_negated = letters.next_if_eq(&'^').is_some();
    let is_empty = letters.next_if_eq(&']').is_some();
    out.push_str(match (is_negated, is_empty) {
        (false, false) => "[",
        (true, false) => "[^",
        (false, true) => "[^\\s\\S]",
        (true, true) => "[\\s\\S]",
    });
    !is_empty
}

fn escape(
    escaped: char,
    in_class: bool,
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) {
    match escaped {
        'd' if in_class => out.push_str("0-9"),
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'u' if letters.peek().is_some_and(char::is_ascii_hexdigit) => {
            let digits: String = letters.by_ref().take(4).collect();
            out.push_str(&format!("\\x{{{digits}}}"));
        }
        // Identity escapes of letters that Rust's expressions do not know.
        '<' | '>' | '\'' | '"' | '`' | '@' | '%' | '=' | '!' | ',' | ':' | ';' | '_' | '/' => {
            out.push_str(&format!("\\x{{{:x}}}", u32::from(escaped)));
        }
        'b' if in_class => out.push_str("\\x08"),
        other => {
            out.push('\\');
            out.push(other);
        }
    }
}
