//! One name that stands for all that a pattern matches.

use crate::glob::Glob;

/// A text that the pattern matches: its wildcards filled with as little as reads well.
pub fn text_of(glob: &Glob) -> String {
    let mut text = String::new();
    for letter in glob.as_str().chars() {
        match letter {
            '*' => text.push_str("any"),
            '?' => text.push('x'),
            other => text.push(other),
        }
    }
    text
}
