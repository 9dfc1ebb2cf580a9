//! Which commands an argument vector can mean.
//!
//! Most programs find their command among the leading words, and many let options stand between them
//! (`gh pr --repo x merge`). Whether a word after an option is that option's value or a command, only the program knows: so
//! both are thought of, and what is decided is the strictest of all. The vector alone says what it means: the way in which a
//! call was asked for takes no part.

use std::collections::{BTreeMap, BTreeSet};

use super::options::{is_option, takes_next};
use super::{ArgumentError, Command, CommandName, MAX_WORDS, UNDECLARED_WORDS};

/// The most readings of one argument vector that are followed.
const MAX_READINGS: usize = 1024;

/// The commands that one call can mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Each command that may be what runs, the likeliest first: that is the call's effective name. All of them are decided.
    pub names: Vec<Named>,
    /// Further names that the leading words make: a rule that names one of them holds for the call.
    pub related: Vec<String>,
}

/// A command that may be what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The tool's own name.
    pub local: String,
    /// The declared command that it is; `None`: it is not declared.
    pub declared: Option<CommandName>,
    /// Whether the program has no commands.
    pub is_bare: bool,
}

impl Meaning {
    /// A program without commands has one meaning.
    pub(super) fn only(local: &str) -> Self {
        Self {
            names: vec![Named {
                local: local.to_owned(),
                declared: None,
                is_bare: true,
            }],
            related: Vec::new(),
        }
    }

    /// What an argument vector can mean whose first `leading` arguments are words of its command.
    pub(super) fn of(
        argv: &[String],
        leading: usize,
        declared: &BTreeMap<CommandName, Command>,
    ) -> Result<Self, ArgumentError> {
        // As deep as a rule may name a command, declared or not.
        let leaves = Walk::over(argv).readings(leading.min(MAX_WORDS))?;
        let mut names: Vec<Named> = Vec::new();
        for words in &leaves {
            let named = named(words, declared);
            if !names.contains(&named) {
                names.push(named);
            }
        }
        let mut related = BTreeSet::new();
        for words in &leaves {
            for length in 1..=words.len() {
                related.insert(words.get(..length).unwrap_or_default().join("."));
            }
        }
        for named in &names {
            related.remove(&named.local);
        }
        Ok(Self {
            names,
            related: related.into_iter().collect(),
        })
    }

    /// Whether a command that is not declared may be what runs.
    pub fn has_undeclared(&self) -> bool {
        self.names
            .iter()
            .any(|named| named.declared.is_none() && !named.is_bare)
    }

    /// The one name of the call: the longest declared command, else the leading words.
    pub fn effective(&self) -> &str {
        // INVARIANT: every vector has at least one reading.
        self.names.first().map_or("", |named| named.local.as_str())
    }
}

/// The longest declared command that the words begin with, else their first ones.
fn named(words: &[&str], declared: &BTreeMap<CommandName, Command>) -> Named {
    let of = |length: usize| words.get(..length).unwrap_or_default();
    let found = (1..=words.len()).rev().find_map(|length| {
        declared.keys().find(|name| {
            name.words()
                .iter()
                .map(String::as_str)
                .eq(of(length).iter().copied())
        })
    });
    match found {
        Some(name) => Named {
            local: name.local(),
            declared: Some(name.clone()),
            is_bare: false,
        },
        None => Named {
            local: of(words.len().min(UNDECLARED_WORDS)).join("."),
            declared: None,
            is_bare: false,
        },
    }
}

/// The readings of an argument vector: which of its arguments are words of its command.
struct Walk<'a> {
    argv: &'a [String],
    leaves: Vec<Vec<&'a str>>,
    steps: usize,
}

impl<'a> Walk<'a> {
    fn over(argv: &'a [String]) -> Self {
        Self {
            argv,
            leaves: Vec::new(),
            steps: 0,
        }
    }

    /// Every reading, the one first that takes a word after an option for the option's value.
    fn readings(mut self, leading: usize) -> Result<Vec<Vec<&'a str>>, ArgumentError> {
        let words = self.argv.iter().take(leading).map(String::as_str).collect();
        self.follow(words, leading)?;
        Ok(self.leaves)
    }

    /// INVARIANT: it goes at most as deep as a command has words.
    fn follow(&mut self, words: Vec<&'a str>, from: usize) -> Result<(), ArgumentError> {
        self.steps += 1;
        if self.steps > MAX_READINGS {
            return Err(ArgumentError::Unclear);
        }
        let (certain, possible) = if words.len() < MAX_WORDS {
            next_words(self.argv, from)
        } else {
            (None, Vec::new())
        };
        let longer = |word: &'a str| words.iter().copied().chain([word]).collect::<Vec<_>>();
        match certain {
            Some((word, after)) => self.follow(longer(word), after)?,
            None => self.leaves.push(words.clone()),
        }
        for (word, after) in possible {
            self.follow(longer(word), after)?;
        }
        Ok(())
    }
}

/// A word, and where the arguments after it begin.
type Next<'a> = (&'a str, usize);

/// The word that comes next where options take the arguments after them, and the words that do where options do not.
fn next_words(argv: &[String], from: usize) -> (Option<Next<'_>>, Vec<Next<'_>>) {
    let mut possible = Vec::new();
    let mut may_be_value = false;
    for (index, argument) in argv.iter().enumerate().skip(from) {
        if argument == "--" && !may_be_value {
            break;
        }
        if is_option(argument) {
            may_be_value = takes_next(argument);
            continue;
        }
        match (is_word(argument), may_be_value) {
            (true, false) => return (Some((argument, index + 1)), possible),
            (true, true) => possible.push((argument.as_str(), index + 1)),
            // What can be no word ends them, unless it may be the value of an option.
            (false, false) => break,
            (false, true) => {}
        }
        may_be_value = false;
    }
    (None, possible)
}

/// Whether a text is a word of a command: `[a-z0-9][a-z0-9_-]*`, so never an option.
pub(super) fn is_word(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}
