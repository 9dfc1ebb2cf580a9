//! The vocabulary of programs: `data/commands.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::classify::{Risk, RiskSet};

pub(super) const VOCABULARY: &str = include_str!("data/commands.txt");

/// How a program is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// By its row alone.
    Row,
    /// It runs the command that its arguments hold.
    Wrap,
    /// By a reader of its own.
    Special,
}

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Risk(Risk),
    Write,
    Value,
    File,
    Flag,
    Pattern,
}

/// What the arguments that are no options are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Files,
    Text,
    /// A pattern, then files.
    Pattern,
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) risks: RiskSet,
    pub(super) how: How,
    pub(super) options: Vec<(&'static str, Effect)>,
    pub(super) operands: Operands,
    pub(super) most: Option<(usize, Risk)>,
    pub(super) unless: Option<&'static str>,
    pub(super) skip: usize,
    pub(super) assigns: bool,
    pub(super) is_wrapper: bool,
    pub(super) is_words: bool,
}

impl Row {
    /// Whether an option could make it do more than its row says.
    pub(super) fn is_sensitive(&self) -> bool {
        let harmful = |effect: &Effect| matches!(effect, Effect::Risk(_) | Effect::Write);
        self.how != How::Row
            || self.most.is_some()
            || self.unless.is_some()
            || self.options.iter().any(|(_, effect)| harmful(effect))
    }

    /// What the short option does.
    pub(super) fn short(&self, c: char) -> impl Iterator<Item = Effect> + '_ {
        self.options.iter().filter_map(move |(name, effect)| {
            let mut characters = name.chars();
            let is_it =
                characters.next() == Some('-') && characters.next() == Some(c) && characters.next().is_none();
            is_it.then_some(*effect)
        })
    }

    /// What the long option, perhaps shortened, may do. `name` has its dashes.
    pub(super) fn long<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Effect> + 'a {
        self.options
            .iter()
            .filter(move |(option, _)| option.starts_with(name))
            .map(|(_, effect)| *effect)
    }
}

static ROWS: LazyLock<HashMap<&'static str, Row>> = LazyLock::new(|| {
    let mut rows = HashMap::new();
    for line in VOCABULARY.lines() {
        if let Some((names, row)) = parse(line) {
            for name in names {
                rows.insert(name, row.clone());
            }
        }
    }
    rows
});

/// The row of a program, or of a subcommand (`git log`).
pub(super) fn row(name: &str) -> Option<&'static Row> {
    ROWS.get(name)
}

/// The names of every row.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.keys().copied()
}

/// The programs and the row of one line of the vocabulary; `None` for comments and lines that say nothing.
pub(super) fn parse(line: &'static str) -> Option<(Vec<&'static str>, Row)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut parts = line.split(" | ");
    let (class, programs) = parts.next()?.split_once(' ')?;
    let mut row = Row {
        risks: RiskSet::EMPTY,
        how: How::Row,
        options: Vec::new(),
        operands: Operands::Files,
        most: None,
        unless: None,
        skip: 0,
        assigns: false,
        is_wrapper: false,
        is_words: false,
    };
    for word in class.split('+') {
        match word {
            "wrap" => (row.how, row.is_wrapper) = (How::Wrap, true),
            "special" => row.how = How::Special,
            name => row.risks.insert(Risk::from_name(name)?),
        }
    }
    for part in parts {
        rule(&mut row, part)?;
    }
    Some((names_of(programs), row))
}

fn names_of(programs: &'static str) -> Vec<&'static str> {
    if !programs.starts_with("git ") {
        return programs.split_whitespace().collect();
    }
    let mut names = Vec::new();
    let mut rest = programs;
    while let Some(next) = rest.get(1..).and_then(|tail| tail.find(" git ")) {
        names.extend(rest.get(..next + 1));
        rest = rest.get(next + 2..).unwrap_or_default();
    }
    names.push(rest);
    names
}

fn rule(row: &mut Row, part: &'static str) -> Option<()> {
    let mut words = part.split_whitespace();
    let effect = match words.next()? {
        "special" => {
            row.how = How::Special;
            return Some(());
        }
        "text" => {
            row.operands = Operands::Text;
            return Some(());
        }
        "assigns" => {
            row.assigns = true;
            return Some(());
        }
        "words" => {
            row.is_words = true;
            return Some(());
        }
        "skip" => {
            row.skip = words.next()?.parse().ok()?;
            return Some(());
        }
        "most" => {
            row.most = Some((words.next()?.parse().ok()?, Risk::from_name(words.next()?)?));
            return Some(());
        }
        "unless" => {
            row.unless = Some(words.next()?);
            return Some(());
        }
        "pattern" => {
            row.operands = Operands::Pattern;
            Effect::Pattern
        }
        "write" => Effect::Write,
        "run" => Effect::Risk(Risk::Execution),
        "delete" => Effect::Risk(Risk::Delete),
        "admin" => Effect::Risk(Risk::PermissionChange),
        "value" => Effect::Value,
        "file" => Effect::File,
        "flag" => Effect::Flag,
        _ => return None,
    };
    row.options.extend(words.map(|option| (option, effect)));
    Some(())
}
