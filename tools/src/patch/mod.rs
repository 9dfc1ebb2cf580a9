//! What a patch does: the files that it names, and whether it removes any.
//!
//! Three forms are read: V4A (`*** Begin Patch`), unified diffs and git diffs. A patch is read whole and in one form, or it is
//! incomplete: its paths are then unknown and what it may do is never milder. What looks like a header where content is expected
//! makes it incomplete too, since programs that apply patches differ in what they make of it.

mod diff;
mod name;
mod v4a;

#[cfg(test)]
mod tests;

use crate::classify::{Risk, RiskSet};
use crate::targets::Extent;

/// The longest patch that is read, in bytes.
pub const MAX_PATCH: usize = 4 * 1024 * 1024;
/// How many files one patch may name.
const MAX_FILES: usize = 10_000;
const MAX_REASONS: usize = 32;

/// What a patch does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchReading {
    /// The classes of everything that it does; never empty.
    pub risks: RiskSet,
    /// Every file that it names, on both sides of a move.
    pub paths: Extent,
    /// It removes a file.
    pub deletes: bool,
    /// It was read whole, in one form.
    pub complete: bool,
    /// Why, in the order of the text.
    pub reasons: Vec<String>,
}

/// Reads a patch: in bounded time and memory, whatever it is.
pub fn read(text: &str) -> PatchReading {
    let mut found = Found::default();
    let outcome = if text.len() > MAX_PATCH {
        Err("a patch of this size is not read")
    } else if let Some(problem) = deceptive(text) {
        // What it says is still counted, never relied on.
        let _ = read_form(text, &mut found);
        Err(problem)
    } else {
        read_form(text, &mut found)
    };
    found.finish(outcome)
}

fn read_form(text: &str, found: &mut Found) -> Result<(), &'static str> {
    let has_begin = text
        .lines()
        .any(|line| line.trim().starts_with("*** Begin Patch"));
    let is_v4a = has_begin || text.lines().any(|line| v4a::is_header(line.trim_end()));
    if is_v4a {
        v4a::read(text, found)
    } else {
        diff::read(text, found)
    }
}

/// Control characters that end lines for some programs only, and characters that hide or reorder text in a header.
fn deceptive(text: &str) -> Option<&'static str> {
    let breaks_line = |c: char| matches!(c, '\0' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    if text.contains(breaks_line) {
        return Some("a character that ends a line only for some programs");
    }
    let stray_return = text
        .split('\n')
        .any(|line| line.trim_end_matches('\r').contains('\r') || line.ends_with("\r\r"));
    stray_return.then_some("a carriage return inside of a line")
}

/// What a patch was found to name.
#[derive(Debug, Default)]
struct Found {
    paths: Vec<String>,
    seen: std::collections::HashSet<String>,
    deletes: bool,
    is_mode_changed: bool,
    reasons: Vec<String>,
    is_lost: bool,
}

impl Found {
    fn path(&mut self, path: &str, does: &str) {
        if path.is_empty() || path.chars().any(is_unreadable) || self.paths.len() >= MAX_FILES {
            self.is_lost = true;
            return;
        }
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(format!("{does} {path:?}"));
        }
        if self.seen.insert(path.to_owned()) {
            self.paths.push(path.to_owned());
        }
    }

    fn removes(&mut self, path: &str) {
        self.deletes = true;
        self.path(path, "deletes");
    }

    fn finish(mut self, outcome: Result<(), &'static str>) -> PatchReading {
        let mut risks = RiskSet::of(Risk::LocalWrite);
        let outcome = match (outcome, self.is_lost, self.paths.is_empty()) {
            (Ok(()), true, _) => Err("a file's name cannot be read with certainty"),
            (Ok(()), false, true) => Err("it names no file"),
            (outcome, _, _) => outcome,
        };
        if self.deletes {
            risks.insert(Risk::Delete);
        }
        if self.is_mode_changed {
            risks.insert(Risk::PermissionChange);
        }
        let complete = outcome.is_ok();
        if let Err(problem) = outcome {
            risks.insert(Risk::Execution);
            self.reasons
                .push(format!("the patch cannot be read with certainty: {problem}"));
        }
        PatchReading {
            risks,
            paths: match complete {
                true => Extent::Known(self.paths),
                false => Extent::Unknown,
            },
            deletes: self.deletes,
            complete,
            reasons: self.reasons,
        }
    }
}

/// Characters that no readable name has.
fn is_unreadable(c: char) -> bool {
    c.is_control()
        || (!c.is_ascii() && c.is_whitespace())
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e007f}')
}

/// Lines without their ends (`\n` or `\r\n`).
fn lines(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
}
