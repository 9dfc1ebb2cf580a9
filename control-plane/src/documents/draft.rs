//! A policy as the store takes it.

use policy::Policy;
use policy::document::Origin;
use policy::glob::Glob;

use crate::store::desired::{PolicyDraft, PolicyOrigin};

/// The store's form of a policy that was read from `text`.
///
/// # Errors
/// Never for a policy that was parsed; the type is serde_json's.
pub fn draft(policy: &Policy, text: &str) -> Result<PolicyDraft, serde_json::Error> {
    let texts = |globs: &[Glob]| globs.iter().map(|glob| glob.as_str().to_owned()).collect();
    Ok(PolicyDraft {
        name: policy.name.as_str().to_owned(),
        text: text.to_owned(),
        body: policy.to_sent()?.into(),
        agents: texts(&policy.agents),
        namespaces: texts(&policy.namespaces),
        origin: match &policy.origin {
            Origin::Inline(index) => PolicyOrigin::Inline { index: *index },
            Origin::Directory(file, index) => PolicyOrigin::Directory {
                file: file.as_ref().to_owned(),
                index: *index,
            },
            Origin::Api => PolicyOrigin::Api,
        },
        problem: None,
    })
}

/// The text of each document of a YAML stream that is not empty, every byte kept but the separators.
#[must_use]
pub fn split_documents(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_separator = line.trim_end() == "---" || line.starts_with("--- ");
        if is_separator {
            parts.extend(text.get(start..at));
            start = at + line.len();
        }
        at += line.len();
    }
    parts.extend(text.get(start..));
    let holds_something = |part: &&str| {
        part.lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    parts.into_iter().filter(holds_something).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_split_at_its_separators_only() {
        let text =
            "# head\n---\nname: a # --- no\nmessage: |\n  ---x\n---\n\n# only a comment\n---\nname: b\n";
        assert_eq!(
            split_documents(text),
            ["name: a # --- no\nmessage: |\n  ---x\n", "name: b\n"]
        );
        assert_eq!(split_documents("name: a"), ["name: a"]);
        assert!(split_documents("\n# nothing\n").is_empty());
    }
}
