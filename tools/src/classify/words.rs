//! The words of a name.

use crate::model::ToolKind;

/// The words of a name in lower case: split at `_ - . / :`, other punctuation, digits, case changes and acronyms.
/// `None` for a name that cannot be read with certainty.
pub(super) fn split(name: &str) -> Option<Vec<String>> {
    if !is_readable(name) {
        return None;
    }
    let characters: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, c) in characters.iter().enumerate() {
        if !c.is_alphabetic() {
            finish(&mut word, &mut words);
            continue;
        }
        if c.is_uppercase() {
            let after_lower = at
                .checked_sub(1)
                .and_then(|i| characters.get(i))
                .is_some_and(|p| p.is_lowercase());
            let before_lower = characters.get(at + 1).is_some_and(|n| n.is_lowercase());
            if after_lower || before_lower {
                finish(&mut word, &mut words);
            }
        }
        word.extend(c.to_lowercase());
    }
    finish(&mut word, &mut words);
    Some(words)
}

fn finish(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    Other,
}

/// Whether a person who sees the name reads the characters that are there: letters of one script, nothing
/// invisible, no look-alikes.
fn is_readable(name: &str) -> bool {
    let mut seen = None;
    name.chars().all(|c| {
        if is_deceptive(c) {
            return false;
        }
        if !c.is_alphabetic() {
            return true;
        }
        let script = script(c);
        *seen.get_or_insert(script) == script
    })
}

fn script(letter: char) -> Script {
    match letter {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{17f}' => Script::Latin,
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
        '\u{400}'..='\u{52f}' => Script::Cyrillic,
        _ => Script::Other,
    }
}

/// Characters that are invisible, that change their neighbours, or that are letters in disguise.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{131}' | '\u{17f}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{300}'..='\u{36f}' | '\u{180b}'..='\u{180f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{20d0}'..='\u{20ff}'
        | '\u{2100}'..='\u{214f}' | '\u{2460}'..='\u{24ff}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
        | '\u{fb00}'..='\u{fb06}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{feff}'
        | '\u{ff01}'..='\u{ff5e}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{1d400}'..='\u{1d7ff}'
        | '\u{1f100}'..='\u{1f1ff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Running text, such as a description.
pub(super) struct Texts;

impl Texts {
    /// Text beyond this is not looked at.
    const MAX_BYTES: usize = 16 << 10;
    /// A first sentence is cut here.
    const MAX_SENTENCE: usize = 400;

    /// Its words, as written.
    pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
        start(text, Self::MAX_BYTES)
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
    }

    /// Its first sentence.
    pub(super) fn first_sentence(text: &str) -> &str {
        let text = start(text.trim_start(), Self::MAX_SENTENCE);
        let ends = [". ", ".\n", "\n\n", "\n"]
            .iter()
            .filter_map(|end| text.find(end))
            .min();
        ends.and_then(|end| text.get(..end)).unwrap_or(text)
    }
}

/// The beginning of a text, cut between characters.
fn start(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or(text)
}

/// A tool's own name: a host's tools carry the server that they came from, as `mcp__server__tool` or
/// `mcp_server_tool`, and that takes no part.
pub(super) fn own_name(local: &str, kind: ToolKind) -> &str {
    if kind != ToolKind::Host {
        return local;
    }
    let own = match local.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => local.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')),
    };
    own.map(|(_, own)| own)
        .filter(|own| own.chars().any(char::is_alphabetic))
        .unwrap_or(local)
}
