//! Tests from what happened.

use std::collections::BTreeSet;

use crate::decide::{Floor, FloorKind};
use crate::document::Action;

/// One call that was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Who called.
    pub agent: String,
    /// For whom.
    pub user: Option<String>,
    /// Where.
    pub namespace: String,
    /// What.
    pub tool: String,
    /// The arguments, a JSON object.
    pub params: String,
    /// The risks that it was judged to have.
    pub risks: Vec<String>,
    /// Pins and dispatcher, as they were.
    pub floors: Vec<Floor>,
    /// What it reached: `paths`, `hosts`, … with their members.
    pub targets: Vec<(String, Vec<String>)>,
    /// What was decided.
    pub action: Action,
    /// By which policy.
    pub policy: Option<String>,
    /// The record.
    pub record: String,
}

/// A test file that asserts what happened; calls that are alike appear once.
pub fn write(observed: &[Observed]) -> String {
    let mut text =
        String::from("# written from records: read it, and keep what is meant to stay so\ntests:\n");
    let mut seen = BTreeSet::new();
    for one in observed {
        let key = (
            &one.agent,
            &one.user,
            &one.namespace,
            (&one.tool, &one.params, &one.risks, &one.targets),
            one.floors.iter().map(floor).collect::<Vec<_>>(),
            one.action,
            &one.policy,
        );
        if !seen.insert(key) {
            continue;
        }
        // JSON is YAML: every text is written as a JSON string.
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
        text.push_str(&format!(
            "  - name: {}\n",
            quoted(&format!("record {}", one.record))
        ));
        text.push_str(&format!("    agent: {}\n", quoted(&one.agent)));
        if let Some(user) = &one.user {
            text.push_str(&format!("    user: {}\n", quoted(user)));
        }
        if one.namespace != "default" {
            text.push_str(&format!("    namespace: {}\n", quoted(&one.namespace)));
        }
        text.push_str(&format!("    tool: {}\n", quoted(&one.tool)));
        if one.params != "{}" {
            text.push_str(&format!("    params: {}\n", one.params));
        }
        if !one.risks.is_empty() {
            text.push_str(&format!("    risk: [{}]\n", one.risks.join(", ")));
        }
        if !one.floors.is_empty() {
            let floors: Vec<&str> = one.floors.iter().map(floor).collect();
            text.push_str(&format!("    floors: [{}]\n", floors.join(", ")));
        }
        for (key, members) in &one.targets {
            let members: Vec<String> = members.iter().map(|member| quoted(member)).collect();
            text.push_str(&format!("    {key}: [{}]\n", members.join(", ")));
        }
        text.push_str(&format!("    action: {}\n", one.action.as_str()));
        if let Some(policy) = &one.policy {
            text.push_str(&format!("    rule: {}\n", quoted(policy)));
        }
    }
    if seen.is_empty() {
        text.push_str("  []\n");
    }
    text
}

/// A floor as a test names it.
fn floor(floor: &Floor) -> &'static str {
    match (floor.kind, floor.action) {
        (FloorKind::PinNew, _) => "\"pin:new\"",
        (FloorKind::PinChanged, _) => "\"pin:changed\"",
        (FloorKind::Dispatcher, Action::Deny) => "dispatcher",
        (FloorKind::Dispatcher, Action::HumanApproval | Action::Allow) => "\"dispatcher:human_approval\"",
    }
}
