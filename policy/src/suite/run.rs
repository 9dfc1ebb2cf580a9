//! Cases are decided and compared.

use serde::Serialize;
use tools::classify::Classification;
use tools::json::{Document, Limits};
use tools::targets::{Extent, Targets};

use super::{Case, Expected, Given, Suite};
use crate::PolicySet;
use crate::catalogue::Catalogue;
use crate::decide::{Call, Decision};
use crate::document::Action;

/// What came of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Where the test is.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// Its name.
    pub name: Option<String>,
    /// Who called.
    pub agent: String,
    /// For whom.
    pub user: Option<String>,
    /// What.
    pub tool: String,
    /// With what.
    pub params: String,
    /// Whether it is as was asserted.
    pub passed: bool,
    /// What was asserted.
    pub expected: String,
    /// The action that was decided; none when the call cannot be read.
    pub action: Option<Action>,
    /// The rule that decided, as `policy#index`.
    pub rule: Option<String>,
    /// Why, in one word.
    pub reason: String,
}

impl Suite {
    /// Decides every case.
    pub fn run(&self, set: &PolicySet, catalogue: &Catalogue) -> Vec<Outcome> {
        self.cases.iter().map(|case| case.run(set, catalogue)).collect()
    }
}

impl Case {
    /// Decides the case.
    pub fn run(&self, set: &PolicySet, catalogue: &Catalogue) -> Outcome {
        let decided = self.decide(set, catalogue);
        let mut outcome = Outcome {
            file: self.file.to_string(),
            line: self.line,
            name: self.name.as_deref().map(str::to_owned),
            agent: self.agent.to_string(),
            user: self.user.as_ref().map(ToString::to_string),
            tool: self.tool.to_string(),
            params: self.params.to_string(),
            passed: false,
            expected: self.expected.to_string(),
            action: None,
            rule: None,
            reason: String::new(),
        };
        match decided {
            Ok(decision) => {
                outcome.passed = self.expected.holds(&decision);
                outcome.action = Some(decision.action);
                outcome.rule = decision
                    .rule
                    .as_ref()
                    .map(|rule| format!("{}#{}", rule.policy, rule.index));
                outcome.reason = decision.reason.as_str().to_owned();
            }
            Err(error) => outcome.reason = error,
        }
        outcome
    }

    fn decide(&self, set: &PolicySet, catalogue: &Catalogue) -> Result<Decision, String> {
        let document = Document::parse(self.params.as_bytes(), Limits::ARGUMENTS)
            .map_err(|error| format!("the params cannot be read: {error}"))?;
        let known = catalogue.get_or_unknown(&self.tool);
        let (classification, targets) = known.assess(Some(document.root()));
        let classification = self.given.applied(classification);
        let floors = self.given.floors.as_ref().unwrap_or(&known.floors);
        Ok(set.decide(&Call {
            namespace: &self.namespace,
            agent: &self.agent,
            user: self.user.as_ref(),
            session: self.session.as_ref(),
            tool: &self.tool,
            classification: &classification,
            targets: &self.given.targets_over(targets),
            arguments: Some(document.root()),
            floors,
        }))
    }
}

impl Given {
    fn applied(&self, mut classification: Classification) -> Classification {
        if let Some(risks) = self.risk {
            classification.risks = risks;
            classification.risk = risks.gravest();
        }
        if let Some(access) = self.access {
            classification.access = access;
        }
        if let Some(capability) = &self.capability {
            classification.capability = Some(capability.clone());
        }
        if let Some(tags) = &self.tags {
            classification.tags.clone_from(tags);
        }
        classification
    }

    fn targets_over(&self, read: Targets) -> Targets {
        let over = |given: &Extent, read: Extent| match given {
            Extent::Known(_) => given.clone(),
            Extent::Unknown => read,
        };
        Targets {
            resources: over(&self.targets.resources, read.resources),
            columns: over(&self.targets.columns, read.columns),
            hosts: over(&self.targets.hosts, read.hosts),
            paths: over(&self.targets.paths, read.paths),
            recipients: over(&self.targets.recipients, read.recipients),
        }
    }
}

impl Expected {
    fn holds(&self, decision: &Decision) -> bool {
        let rule = decision.rule.as_ref();
        self.action.is_none_or(|action| action == decision.action)
            && self
                .policy
                .as_deref()
                .is_none_or(|policy| rule.is_some_and(|rule| rule.policy.as_str() == policy))
            && self
                .index
                .is_none_or(|index| rule.is_some_and(|rule| rule.index == index))
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.action.map_or("any action", Action::as_str))?;
        match (&self.policy, self.index) {
            (Some(policy), Some(index)) => write!(out, " by {policy}#{index}"),
            (Some(policy), None) => write!(out, " by {policy}"),
            (None, _) => Ok(()),
        }
    }
}
