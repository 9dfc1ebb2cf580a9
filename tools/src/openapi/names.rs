//! The names of tools and arguments.

use sha2::{Digest, Sha256};

/// The longest name of a tool, in characters.
pub(super) const MAX_NAME: usize = 128;

/// The name of an operation: its `operationId` in snake case, else its method and path.
pub(super) fn tool_name(operation_id: Option<&str>, method: &str, path: &str) -> String {
    let by_id = operation_id.map(snake).filter(|name| !name.is_empty());
    bounded(by_id.unwrap_or_else(|| by_path(method, path)))
}

/// The name of an operation by its method and path.
pub(super) fn by_method_and_path(method: &str, path: &str) -> String {
    bounded(by_path(method, path))
}

fn by_path(method: &str, path: &str) -> String {
    let path = snake(path);
    let method = method.to_ascii_lowercase();
    if path.is_empty() {
        method
    } else {
        format!("{method}_{path}")
    }
}

/// `getPetByID`, `pets/get-by-id` and `GetPet.byId` as `get_pet_by_id` and so on.
fn snake(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut name = String::with_capacity(text.len() + 8);
    for (at, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let begins_word = letter.is_ascii_uppercase()
            && (before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(char::is_ascii_uppercase)
                    && after.is_some_and(char::is_ascii_lowercase)
                    // A plural of capitals, as in `listURLs`, is one word.
                    && !(after == Some(&'s') && letters.get(at + 2).is_none_or(|next| !next.is_ascii_lowercase()))));
        if begins_word && !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name.truncate(name.trim_end_matches('_').len());
    name
}

/// At most [`MAX_NAME`] characters; what is cut off is told apart by its digest.
fn bounded(name: String) -> String {
    if name.len() <= MAX_NAME {
        return name;
    }
    let digest = Sha256::digest(name.as_bytes());
    let marks: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    // Names are ASCII.
    let head = name.get(..MAX_NAME - 9).unwrap_or_default();
    format!("{head}_{marks}")
}
