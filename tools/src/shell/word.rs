//! Words of shell text: what they say, and what they leave open.

use super::lexer::Script;

/// Stands in a word's text for a part whose value the text does not say.
pub(super) const OPEN: char = '\u{E000}';

/// One word after quote removal, with everything that makes it uncertain.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    /// What it says; [`OPEN`] stands for each part whose value is not known.
    pub(super) text: String,
    /// A part comes from an expansion, so the value is not known.
    pub(super) open: bool,
    /// It may become several words or none: an unquoted expansion, a brace expansion.
    pub(super) splits: bool,
    /// It has unquoted pattern characters.
    pub(super) glob: bool,
    /// A part was quoted or escaped.
    pub(super) quoted: bool,
    /// It runs something or its meaning differs between shells: a substitution, arithmetic, an unusual expansion.
    pub(super) runs: bool,
    /// Where the value of an assignment starts in the text, when the word has the form of one.
    pub(super) assigns: Option<usize>,
    /// The commands inside of it.
    pub(super) inner: Vec<Script>,
}

impl Word {
    /// A word that says exactly this.
    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            quoted: true,
            ..Self::default()
        }
    }

    /// What the word says, when it says exactly one thing.
    pub(super) fn certain(&self) -> Option<&str> {
        (!self.open && !self.splits && !self.glob).then_some(self.text.as_str())
    }

    /// Whether the word may turn out to be, or to contain, an option that cannot be seen.
    pub(super) fn may_hide_option(&self) -> bool {
        self.splits || self.text.starts_with(OPEN) || (self.open && self.text.starts_with('-'))
    }

    /// Whether a file's name could make it an option.
    pub(super) fn may_match_option(&self) -> bool {
        self.glob && self.text.starts_with(['*', '?', '[', '-'])
    }

    /// The part of the text from this byte on, as a word of its own.
    pub(super) fn tail(&self, from: usize) -> Self {
        let text = self.text.get(from..).unwrap_or_default().to_owned();
        Self {
            open: text.contains(OPEN),
            text,
            splits: self.splits,
            glob: self.glob,
            quoted: true,
            runs: self.runs,
            assigns: None,
            inner: Vec::new(),
        }
    }
}

/// Decodes one escape of `$'…'`; the characters after the backslash come from `rest`. Returns the character and how many bytes
/// were used, or `None` for what shells read differently.
pub(super) fn ansi_escape(rest: &str) -> Option<(char, usize)> {
    let first = rest.chars().next()?;
    let simple = match first {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '?' => first,
        'x' => return number(rest, 1, 2, 16),
        'u' => return number(rest, 1, 4, 16),
        'U' => return number(rest, 1, 8, 16),
        '0'..='7' => return number(rest, 0, 3, 8),
        _ => return None,
    };
    Some((simple, first.len_utf8()))
}

fn number(rest: &str, skip: usize, most: usize, radix: u32) -> Option<(char, usize)> {
    let digits: String = rest
        .chars()
        .skip(skip)
        .take(most)
        .take_while(|c| c.is_digit(radix))
        .collect();
    let value = u32::from_str_radix(&digits, radix).ok()?;
    // Bytes above 127 make parts of characters, and NUL ends the word.
    let is_plain = radix == 16 && skip == 1 && most > 2 || value < 128;
    let decoded = char::from_u32(value).filter(|c| is_plain && *c != '\0' && *c != OPEN)?;
    Some((decoded, skip + digits.len()))
}

/// Whether a character can make text look like something that it is not, or is read differently by different shells.
pub(super) fn is_deceptive(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        _ if c.is_control() => true,
        _ if c.is_ascii() => false,
        _ if c.is_whitespace() => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{ffff}'
        | '\u{e0000}'..='\u{10ffff}' => true,
        _ => false,
    }
}
