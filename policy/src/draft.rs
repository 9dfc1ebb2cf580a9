//! The first draft of a policy over tools that nobody has judged yet: plain reads run, everything else asks a person.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tools::classify::{Access, Classification, Family};
use tools::model::Tool;

use crate::document::Action;

/// What an upstream has, for a draft.
#[derive(Debug, Clone)]
pub struct Drafted<'t> {
    /// The upstream's name.
    pub upstream: &'t str,
    /// Its tools, in any order.
    pub tools: Vec<&'t Tool>,
}

/// One policy document for `agent`. Plain reads are allowed; writes, generic tools and those that give no signal ask a person;
/// what the upstreams' resources and prompts hold is allowed; everything else is denied. Tools are grouped by upstream, reads
/// first, each under a comment that says why it is where it is. The text loads as it is.
///
/// A tool whose name is a pattern of the policy language cannot be named by a rule: it is left to the final `deny`, and a
/// comment says so.
pub fn draft(agent: &str, upstreams: &[Drafted<'_>]) -> String {
    let mut out = String::from(
        "# A draft: plain reads run, everything else asks a person. Read it, then make it yours.\n",
    );
    let name = quoted(agent);
    // Writing to a string does not fail.
    let _ = write!(out, "name: {name}\nagent: {name}\nrules:\n");
    for upstream in upstreams {
        group(&mut out, upstream);
    }
    out.push_str("  # Whatever else there is, or comes later.\n  - tools: [\"*\"]\n    action: deny\n");
    out
}

fn group(out: &mut String, drafted: &Drafted<'_>) {
    let mut by_action: BTreeMap<Action, Vec<&Tool>> = BTreeMap::new();
    let mut unnameable = Vec::new();
    for tool in &drafted.tools {
        if !is_nameable(tool.name.as_str()) {
            unnameable.push(*tool);
        } else if tool.classification.plain_read {
            by_action.entry(Action::Allow).or_default().push(tool);
        } else {
            by_action.entry(Action::HumanApproval).or_default().push(tool);
        }
    }
    let upstream = drafted.upstream;
    for (action, mut tools) in by_action {
        tools.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
        let what = match action {
            Action::Allow => "plain reads",
            Action::HumanApproval | Action::Deny => "writes, and what could write",
        };
        let _ = writeln!(out, "  # {upstream}: {what}");
        for tool in &tools {
            let _ = writeln!(out, "  #   {}", described(tool));
        }
        out.push_str("  - tools:\n");
        for tool in tools {
            let _ = writeln!(out, "      - {}", quoted(tool.name.as_str()));
        }
        let _ = writeln!(out, "    action: {}", action);
    }
    for tool in unnameable {
        let _ = writeln!(
            out,
            "  # {upstream}: denied, for its name is a pattern: {}",
            described(tool)
        );
    }
    let _ = writeln!(
        out,
        "  # {upstream}: its resources and prompts\n  - tools: [{}, {}]\n    action: allow",
        quoted(&format!("{upstream}.resource:*")),
        quoted(&format!("{upstream}.prompt:*")),
    );
}

/// Whether a rule that names it covers it and nothing else.
fn is_nameable(name: &str) -> bool {
    !name.contains(['*', '?', '[', '{', '\\']) && !name.starts_with('@')
}

/// `gmail.gmail_list_emails [read] name verb "list"`, on one line whatever the tool says of itself.
fn described(tool: &Tool) -> String {
    let classification = &tool.classification;
    let text = format!(
        "{} [{}] {}",
        tool.name,
        label(classification),
        classification.reasons.join(", ")
    );
    text.trim_end()
        .chars()
        .map(|character| {
            if is_plain(character) {
                character
            } else {
                '\u{fffd}'
            }
        })
        .collect()
}

/// Whether a YAML comment may hold it, and a reader sees it as it is.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn label(classification: &Classification) -> &'static str {
    match (classification.family, classification.access) {
        (Family::Generic, _) => "generic",
        (Family::Named, Access::Read) => "read",
        (Family::Named, Access::Write) => "write",
        (Family::Named, Access::Unknown) => "unknown",
    }
}

/// A string of YAML between double quotes: JSON's form is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalogue::{Catalogue, KnownTool};
    use crate::document::{Lists, Policy, Source};
    use crate::lint::lint;

    fn tool(text: &str) -> Tool {
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        Tool::mcp(&"mail".parse().unwrap(), raw.into()).unwrap()
    }

    #[test]
    fn a_draft_loads_lints_clean_and_allows_plain_reads_alone() {
        let tools = [
            tool(
                r#"{"name":"list_mails","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}"#,
            ),
            tool(r#"{"name":"send_mail","inputSchema":{"type":"object"}}"#),
            tool(r#"{"name":"run","inputSchema":{"type":"object","properties":{"code":{"type":"string"}}}}"#),
            tool(r#"{"name":"odd\u2028 \"name\" # x","description":"d"}"#),
            tool(r#"{"name":"a*b"}"#),
        ];
        let drafted = Drafted {
            upstream: "mail",
            tools: tools.iter().collect(),
        };
        let text = draft("claude", &[drafted]);
        let policies = Policy::parse_all("draft.yaml", &text, &Source::Directory, &Lists::none())
            .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
        let [policy] = policies.as_slice() else {
            panic!("{text}")
        };
        let allowed: Vec<_> = policy
            .rules
            .iter()
            .filter(|rule| rule.action == Action::Allow)
            .collect();
        assert_eq!(allowed.len(), 2, "{text}");
        assert!(text.contains("#   mail.list_mails [read] "), "{text}");
        assert!(
            text.contains("denied, for its name is a pattern: mail.a*b"),
            "{text}"
        );
        let known: Catalogue = tools.into_iter().map(KnownTool::of).collect();
        let policies: Vec<_> = policies.into_iter().map(Arc::new).collect();
        assert_eq!(lint(&policies, Some(&known)), []);
    }

    #[test]
    fn a_draft_of_nothing_denies_everything() {
        let text = draft("claude", &[]);
        let policies = Policy::parse_all("draft.yaml", &text, &Source::Directory, &Lists::none()).unwrap();
        assert_eq!(policies[0].rules.len(), 1);
    }
}
