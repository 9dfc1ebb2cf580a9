//! Finding one argument by its name.

use crate::json::{Kind, Node};

/// The longest name of an argument, in bytes.
const MAX_NAME: usize = 256;

/// Whether a text names an argument: `query`, or `a.b` for one inside another.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name
            .split('.')
            .all(|part| !part.is_empty() && !part.chars().any(|c| c.is_control() || c.is_whitespace()))
}

/// The argument of this name.
///
/// # Errors
/// With the reason when it is missing, or when a sibling has the same name but for case: some servers match keys
/// without case, and then the last one wins.
pub(super) fn find<'d>(arguments: Option<Node<'d>>, name: &str) -> Result<Node<'d>, String> {
    let missing = || format!("the argument {name:?} is missing");
    let mut node = arguments.ok_or_else(missing)?;
    for part in name.split('.') {
        if node.kind() != Kind::Object {
            return Err(missing());
        }
        let folded = part.to_lowercase();
        let alike = |key: &str| {
            key != part && (key.to_lowercase() == folded || key.to_uppercase() == part.to_uppercase())
        };
        if let Some((key, _)) = node.members().find(|(key, _)| alike(key)) {
            let key: String = key.chars().take(64).collect();
            return Err(format!("the arguments {part:?} and {key:?} differ only in case"));
        }
        node = node.get(part).ok_or_else(missing)?;
    }
    Ok(node)
}
