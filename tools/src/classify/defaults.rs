//! The mappings and patterns that come with the product: `data/mappings.txt` and `data/patterns.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::mapping::{Effect, Mapping};
use super::schema::{self, Arguments};
use crate::model::ToolKind;

const MAPPINGS_FILE: &str = include_str!("data/mappings.txt");
const PATTERNS_FILE: &str = include_str!("data/patterns.txt");

/// A built-in mapping of one name.
#[derive(Debug)]
pub(super) struct Default {
    /// Arguments that a tool must declare for the mapping to be about it.
    needs: Vec<String>,
    pub(super) mapping: Mapping,
}

/// A built-in pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) glob: &'static str,
    pub(super) effect: Effect,
}

static MAPPINGS: LazyLock<HashMap<&'static str, Vec<Default>>> = LazyLock::new(|| {
    let mut by_name: HashMap<_, Vec<Default>> = HashMap::new();
    for block in blocks() {
        for (name, needs) in block.names {
            by_name.entry(name).or_default().push(Default {
                needs,
                mapping: block.mapping.clone(),
            });
        }
    }
    by_name
});

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    content(PATTERNS_FILE)
        .filter_map(|line| {
            let (glob, effect) = line.split_once(": ")?;
            let effect = Effect::parse(effect)?;
            Some(Pattern { glob, effect })
        })
        .collect()
});

/// A block of the file: names, and what they do.
pub(super) struct Block {
    pub(super) names: Vec<(&'static str, Vec<String>)>,
    pub(super) mapping: Mapping,
    /// Lines that say nothing known.
    pub(super) unread: Vec<&'static str>,
}

fn content(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

/// The blocks of the file of mappings, in its order.
pub(super) fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in content(MAPPINGS_FILE) {
        if line.starts_with(' ') {
            if let Some(block) = blocks.last_mut()
                && block.mapping.line(line.trim()).is_none()
            {
                block.unread.push(line);
            }
            continue;
        }
        let mut block = Block {
            names: Vec::new(),
            mapping: Mapping::default(),
            unread: Vec::new(),
        };
        match line.split_once(": ").and_then(|(names, effect)| {
            let Effect { capability, risks } = Effect::parse(effect)?;
            block.mapping.capability = capability;
            block.mapping.risks = risks;
            Some(names)
        }) {
            Some(names) => block.names = names.split(' ').map(name).collect(),
            None => block.unread.push(line),
        }
        blocks.push(block);
    }
    blocks
}

/// `NAME` or `NAME(ARGUMENT,ARGUMENT)`
fn name(text: &'static str) -> (&'static str, Vec<String>) {
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, needs)) => (name, needs.split(',').map(schema::key).collect()),
        None => (text, Vec::new()),
    }
}

/// The built-in mapping of a tool: of its name, and of its arguments where these are declared.
pub(super) fn mapping(name: &str, kind: ToolKind, arguments: &Arguments<'_>) -> Option<&'static Mapping> {
    let fits =
        |default: &&Default| kind == ToolKind::Host || default.needs.iter().all(|need| arguments.has(need));
    MAPPINGS
        .get(name)?
        .iter()
        .find(fits)
        .map(|default| &default.mapping)
}

/// The first built-in pattern that a name matches.
pub(super) fn pattern(name: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().find(|pattern| matches(pattern.glob, name))
}

/// Whether a name matches a pattern in which `*` is any text.
fn matches(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut rest = rest;
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (glob, name, expected) in [
            ("kanban_*", "kanban_move", true),
            ("kanban_*", "my_kanban_move", false),
            ("*_table", "add_table", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn every_line_of_the_data_files_is_understood() {
        let mut names = std::collections::HashSet::new();
        for block in blocks() {
            assert_eq!(block.unread, Vec::<&str>::new());
            assert_eq!(block.mapping.check(), Ok(()), "{:?}", block.names);
            for name in block.names {
                assert!(names.insert(name.clone()), "{name:?} is there twice");
            }
        }
        assert!(names.len() > 100);
        assert_eq!(content(PATTERNS_FILE).count(), PATTERNS.len());
    }
}
