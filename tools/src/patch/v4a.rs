//! V4A patches: `*** Begin Patch`, headers, lines of content, `*** End Patch`.

use super::{Found, lines};

const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE_TO: &str = "*** Move to:";
const MOVE_FILE: &str = "*** Move File:";

/// Whether the line is a header that names a file.
pub(super) fn is_header(line: &str) -> bool {
    [ADD, UPDATE, DELETE, MOVE_TO, MOVE_FILE]
        .iter()
        .any(|header| line.starts_with(header))
}

/// What may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before `*** Begin Patch`.
    Outside,
    /// A header must come.
    Header,
    Added,
    /// An update's first line may move the file.
    UpdateHeader,
    Updated,
    Ended,
}

pub(super) fn read(text: &str, found: &mut Found) -> Result<(), &'static str> {
    let mut state = State::Outside;
    let mut problem = None;
    let mut updated = String::new();
    for line in lines(text) {
        let trimmed = line.trim_end();
        match next(state, trimmed, line, &mut updated, found) {
            Ok(after) => state = after,
            Err(error) => {
                problem.get_or_insert(error);
                // Whatever a program makes of it, it may name a file.
                let bare = line.trim_start_matches([' ', '\t', '+', '-', '>']).trim_end();
                if is_header(bare)
                    && let Ok(after) = header(bare, &mut updated, found)
                {
                    state = after;
                }
            }
        }
    }
    match (problem, state) {
        (Some(problem), _) => Err(problem),
        (None, State::Ended) => Ok(()),
        (None, _) => Err("it does not end with \"*** End Patch\""),
    }
}

fn next(
    state: State,
    trimmed: &str,
    line: &str,
    updated: &mut String,
    found: &mut Found,
) -> Result<State, &'static str> {
    match state {
        State::Outside if trimmed == "*** Begin Patch" => Ok(State::Header),
        State::Outside | State::Ended if trimmed.is_empty() => Ok(state),
        State::Outside => Err("text before \"*** Begin Patch\""),
        State::Ended => Err("text after \"*** End Patch\""),
        _ if trimmed == "*** End Patch" => Ok(State::Ended),
        _ if trimmed == "*** End of File" && state == State::Updated => Ok(state),
        State::UpdateHeader if trimmed.starts_with(MOVE_TO) => {
            found.path(name(trimmed, MOVE_TO)?, "moves to");
            Ok(State::Updated)
        }
        _ if trimmed.starts_with(MOVE_TO) => Err("a move that is not of an update"),
        _ if is_header(trimmed) => header(trimmed, updated, found),
        _ if line.trim_start().starts_with("***") => Err("a header that is not known"),
        _ if hides_header(line) => Err("a header inside of content"),
        State::Header if trimmed.is_empty() => Ok(state),
        State::Header => Err("content before a header"),
        State::Added if line.starts_with('+') || line.is_empty() => Ok(state),
        State::Added => Err("a line of a new file that does not begin with +"),
        State::UpdateHeader | State::Updated => match line.chars().next() {
            None | Some('+' | '-' | ' ' | '@') => Ok(State::Updated),
            Some(_) => Err("a line of content that begins with none of + - @ or a blank"),
        },
    }
}

/// Reads a header's name, and says what may follow.
fn header(line: &str, updated: &mut String, found: &mut Found) -> Result<State, &'static str> {
    if line.starts_with(ADD) {
        found.path(name(line, ADD)?, "adds");
        return Ok(State::Added);
    }
    if line.starts_with(DELETE) {
        found.deletes = true;
        found.removes(name(line, DELETE)?);
        return Ok(State::Header);
    }
    if line.starts_with(MOVE_FILE) {
        let both = name(line, MOVE_FILE)?;
        let (from, to) = both.split_once(" -> ").ok_or("a move without \" -> \"")?;
        if to.contains(" -> ") {
            return Err("a move with several \" -> \"");
        }
        found.path(from.trim(), "moves");
        found.path(to.trim(), "moves to");
        return Ok(State::Header);
    }
    if line.starts_with(MOVE_TO) {
        found.path(name(line, MOVE_TO)?, "moves to");
        return Ok(State::Updated);
    }
    let path = name(line, UPDATE)?;
    found.path(path, "updates");
    path.clone_into(updated);
    Ok(State::UpdateHeader)
}

fn name<'l>(line: &'l str, header: &str) -> Result<&'l str, &'static str> {
    let name = line
        .strip_prefix(header)
        .unwrap_or_default()
        .trim_matches([' ', '\t']);
    if name.is_empty() {
        return Err("a header without a file's name");
    }
    Ok(name)
}

/// Content that a program could take for a header when it strips what precedes it.
fn hides_header(line: &str) -> bool {
    let bare = line.trim_start_matches([' ', '\t', '+', '-', '>']);
    bare.len() < line.len()
        && (is_header(bare) || bare.starts_with("*** Begin Patch") || bare.starts_with("*** End Patch"))
}
