//! What a policy says that its author most likely did not mean.
//!
//! Nothing here changes a decision. With a catalogue the findings name the tools that they are about.

mod confusable;
mod contradiction;
mod known;
mod reach;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::document::{Mode, Policy, PolicyKind, Rule};

pub use confusable::{plain_form, strange_characters};

/// The most tools that one finding names; it counts all.
pub const MAX_NAMED: usize = 12;

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lint {
    /// The rule can never decide anything.
    NeverMatches,
    /// The pattern covers no known tool.
    NoSuchTool,
    /// A deny or an approval hits tools that do not have the field.
    MissingField,
    /// An allow rule covers more than plain reads.
    AllowsMore,
    /// Characters that look like others, or are not seen.
    Confusable,
    /// Only shadow policies match these agents: they are denied.
    ShadowOnly,
    /// `resources` or `columns` on tools without an extractor.
    NoExtractor,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing.
    pub lint: Lint,
    /// The policy.
    pub policy: String,
    /// The rule, from 0; none when it is about the whole policy.
    pub rule: Option<usize>,
    /// The policy's file.
    pub file: Option<Arc<str>>,
    /// The rule's line; 0 when it is about the whole policy.
    pub line: u32,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The tools that it is about, at most [`MAX_NAMED`].
    pub tools: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) if self.line > 0 => write!(out, "{file}:{} ", self.line)?,
            Some(file) => write!(out, "{file} ")?,
            None => write!(out, "{} ", self.policy)?,
        }
        write!(out, "{}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(out, "; {hint}")?;
        }
        Ok(())
    }
}

/// A rule with where it stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    policy: &'p Policy,
    index: usize,
    rule: &'p Rule,
}

impl Place<'_> {
    fn finding(&self, lint: Lint, message: String) -> Finding {
        Finding {
            lint,
            policy: self.policy.name.to_string(),
            rule: Some(self.index),
            file: self.policy.source_file.clone(),
            line: self.rule.line,
            message,
            hint: None,
            tools: Vec::new(),
        }
    }
}

impl Finding {
    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn about(mut self, tools: &[&str]) -> Self {
        self.tools = tools
            .iter()
            .take(MAX_NAMED)
            .map(|name| (*name).to_owned())
            .collect();
        self
    }

    fn of_policy(policy: &Policy, lint: Lint, message: String) -> Self {
        Self {
            lint,
            policy: policy.name.to_string(),
            rule: None,
            file: policy.source_file.clone(),
            line: 0,
            message,
            hint: None,
            tools: Vec::new(),
        }
    }
}

/// Everything worth saying about policies that stand together, in the order of policies and rules.
pub fn lint(policies: &[Arc<Policy>], catalogue: Option<&Catalogue>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for policy in policies {
        confusable::of_policy(policy, &mut findings);
        shadow_only(policy, policies, &mut findings);
        for (index, rule) in policy.rules.iter().enumerate() {
            let place = Place { policy, index, rule };
            confusable::of_rule(place, &mut findings);
            let is_dead = reach::never_matches(place, policies)
                .or_else(|| contradiction::never_holds(rule))
                .map(|why| {
                    place
                        .finding(Lint::NeverMatches, format!("rule {index} can never match: {why}"))
                        .with_hint("remove it, or move it up")
                });
            if let Some(finding) = is_dead {
                findings.push(finding);
                continue;
            }
            if let Some(catalogue) = catalogue.filter(|known| !known.is_empty()) {
                known::of_rule(place, catalogue, &mut findings);
            }
        }
    }
    findings
}

/// Agents that a shadow policy matches and no enforced standard policy does.
fn shadow_only(policy: &Policy, policies: &[Arc<Policy>], findings: &mut Vec<Finding>) {
    if policy.mode != Mode::Shadow || policy.kind != PolicyKind::Standard {
        return;
    }
    let enforced = |agent: &crate::glob::Glob| {
        policies
            .iter()
            .filter(|other| other.mode == Mode::Enforce && other.kind == PolicyKind::Standard)
            .any(|other| other.agents.iter().any(|glob| glob.covers(agent)))
    };
    let alone: Vec<&str> = policy
        .agents
        .iter()
        .filter(|agent| !enforced(agent))
        .map(|agent| agent.as_str())
        .collect();
    if !alone.is_empty() {
        let message = format!(
            "agents {} may be matched by shadow policies only, which apply nothing: such agents are denied",
            alone.join(", ")
        );
        findings.push(
            Finding::of_policy(policy, Lint::ShadowOnly, message)
                .with_hint("add an enforced policy for them, or set mode: enforce here"),
        );
    }
}

#[cfg(test)]
mod tests;
