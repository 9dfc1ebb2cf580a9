//! Programs that run other programs: looked through to what they run.

use super::reader::Reader;
use super::table::{Effect, Row};
use super::word::Word;
use crate::classify::Risk;

/// How many places are tried for the command of a wrapper whose options are not known.
const MAX_GUESSES: usize = 12;

/// A wrapper that is described by its row.
pub(super) fn wrapper(
    reader: &mut Reader,
    program: &str,
    row: &Row,
    arguments: &[Word],
    input: Option<&Word>,
) {
    match options(reader, program, row, arguments) {
        Some(rest) => command_after(reader, program, row, rest, input),
        None => guess(reader, arguments, input),
    }
}

fn command_after(reader: &mut Reader, program: &str, row: &Row, rest: &[Word], input: Option<&Word>) {
    let mut rest = rest;
    while let Some((word, after)) = rest.split_first()
        && row.assigns
        && (word.assigns.is_some() || (word.text.contains('=') && !word.text.starts_with('=')))
    {
        reader.add(Risk::Execution, || "a variable is set".to_owned());
        rest = after;
    }
    let skipped = rest.get(..row.skip.min(rest.len())).unwrap_or_default();
    if skipped.iter().any(|word| word.splits) {
        reader.uncertain(|| format!("where the command of {program} begins is not certain"));
    }
    match rest.get(row.skip..) {
        Some(command) if !command.is_empty() => reader.command(command, input),
        _ if matches!(program, "env" | "nice") => {
            reader.add(Risk::Read, || format!("{program} alone"));
        }
        _ => reader.uncertain(|| format!("{program} without a command")),
    }
}

/// What follows the options of a program that stops at the first other argument; `None` when that is not certain.
pub(super) fn options<'w>(
    reader: &mut Reader,
    program: &str,
    row: &Row,
    arguments: &'w [Word],
) -> Option<&'w [Word]> {
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        if word.may_hide_option() || word.may_match_option() {
            reader.uncertain(|| format!("an argument of {program} may be any option"));
            return None;
        }
        if word.certain() == Some("--") {
            return Some(after);
        }
        let is_number = word
            .text
            .get(1..)
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if !word.text.starts_with('-') {
            return Some(rest);
        }
        rest = after;
        if is_number && word.text.len() > 1 {
            continue;
        }
        match takes_value(reader, program, row, &word.text) {
            Taken::Nothing => (),
            Taken::Next => rest = rest.split_first().map_or(rest, |(_, after)| after),
            Taken::Unknown => {
                reader.uncertain(|| format!("an option of {program} is not known"));
                return None;
            }
        }
    }
    Some(rest)
}

enum Taken {
    Nothing,
    Next,
    Unknown,
}

fn takes_value(reader: &mut Reader, program: &str, row: &Row, text: &str) -> Taken {
    if text.starts_with("--") {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let effects: Vec<Effect> = row.long(name).collect();
        return match effects.first() {
            None => Taken::Unknown,
            Some(effect) if effects.iter().all(|other| other == effect) => {
                apply(reader, program, *effect);
                match (effect, value) {
                    (Effect::Value | Effect::Write | Effect::File, None) => Taken::Next,
                    (Effect::Risk(_), _) => Taken::Unknown,
                    _ => Taken::Nothing,
                }
            }
            Some(_) => Taken::Unknown,
        };
    }
    let mut letters = text.chars().skip(1).peekable();
    if letters.peek().is_none() {
        return if row.short('-').next().is_some() || row.options.iter().any(|(name, _)| *name == "-") {
            Taken::Nothing
        } else {
            Taken::Unknown
        };
    }
    while let Some(letter) = letters.next() {
        let Some(effect) = row.short(letter).next() else {
            return Taken::Unknown;
        };
        apply(reader, program, effect);
        match effect {
            Effect::Value | Effect::Write | Effect::File => {
                return if letters.peek().is_some() {
                    Taken::Nothing
                } else {
                    Taken::Next
                };
            }
            Effect::Risk(_) => return Taken::Unknown,
            Effect::Flag | Effect::Pattern => (),
        }
    }
    Taken::Nothing
}

fn apply(reader: &mut Reader, program: &str, effect: Effect) {
    match effect {
        Effect::Risk(risk) => reader.add(risk, || format!("an option of {program}")),
        Effect::Write => {
            reader.paths.lose();
            reader.add(Risk::LocalWrite, || format!("an option of {program} writes"));
        }
        Effect::Value | Effect::File | Effect::Flag | Effect::Pattern => (),
    }
}

/// Where a command begins is not certain: everything that it could be counts.
pub(super) fn guess(reader: &mut Reader, words: &[Word], input: Option<&Word>) {
    reader.uncertain(|| "where a command begins is not certain".to_owned());
    for start in 0..words.len().min(MAX_GUESSES) {
        let Some(rest) = words.get(start..) else { return };
        if rest.first().is_some_and(|word| !word.text.starts_with('-')) {
            reader.command(rest, input);
        }
    }
    for word in words.iter().take(MAX_GUESSES) {
        let text = word.text.split_once('=').filter(|_| word.text.starts_with('-'));
        let text = text.map_or(word.text.as_str(), |(_, value)| value);
        if text.contains(' ') && !word.open {
            reader.text(text);
        }
    }
}
