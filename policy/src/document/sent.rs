//! The form in which a policy travels between the planes.

use serde::Deserialize;
use tools::id::PolicyName;

use super::{Action, MAX_CONDITION_DEPTH, Policy, PolicyKind, Rule};

/// The version of the sent form that this build writes and reads.
pub const FORMAT: u32 = 1;

/// Why a sent policy cannot be used. Its agents are to be denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a build that knows more.
    #[error("the policy is in format {found}; this build reads format {FORMAT}: upgrade it")]
    Format {
        /// The format it is in.
        found: u32,
    },
    /// Not the JSON of a policy.
    #[error("the policy cannot be decoded: {0}")]
    Json(String),
    /// Decoded, but not a policy that could have been accepted.
    #[error("the policy \"{name}\" is not valid: {reason}")]
    Invalid {
        /// Which one.
        name: PolicyName,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

impl Policy {
    /// The sent form: JSON.
    ///
    /// # Errors
    /// Never for a policy that was parsed or decoded; the type is serde_json's.
    pub fn to_sent(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads the sent form.
    ///
    /// # Errors
    /// When it is of another format, is not a policy, or breaks a rule that parsing enforces.
    pub fn from_sent(bytes: &[u8]) -> Result<Self, DecodeError> {
        let json = |error: serde_json::Error| DecodeError::Json(error.to_string());
        let Versioned { format } = serde_json::from_slice(bytes).map_err(json)?;
        if format != FORMAT {
            return Err(DecodeError::Format { found: format });
        }
        let policy: Policy = serde_json::from_slice(bytes).map_err(json)?;
        match policy.check() {
            Ok(()) => Ok(policy),
            Err(reason) => Err(DecodeError::Invalid {
                name: policy.name,
                reason,
            }),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.agents.is_empty() || self.namespaces.is_empty() || self.rules.is_empty() {
            return Err("agents, namespaces and rules must not be empty".to_owned());
        }
        self.rules.iter().enumerate().try_for_each(|(index, rule)| {
            rule.check(self.kind)
                .map_err(|reason| format!("rule {index}: {reason}"))
        })
    }
}

impl Rule {
    fn check(&self, kind: PolicyKind) -> Result<(), String> {
        if kind == PolicyKind::Guardrail && self.action == Action::Allow {
            return Err("a guardrail cannot allow".to_owned());
        }
        let Some(condition) = &self.condition else {
            return Ok(());
        };
        if condition.depth() > MAX_CONDITION_DEPTH {
            return Err(format!(
                "the condition is nested deeper than {MAX_CONDITION_DEPTH}"
            ));
        }
        if condition.has_empty_part() {
            return Err("all and any must not be empty".to_owned());
        }
        for test in condition.tests() {
            let is_list = test.operator.base == super::Base::In || test.values.len() > 1;
            test.operator.accepts(&test.values, is_list)?;
            if self.action == Action::Allow && test.field.has_some() {
                return Err(format!("{} cannot be used to allow", test.field));
            }
        }
        Ok(())
    }
}

impl super::Condition {
    fn has_empty_part(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.is_empty() || parts.iter().any(Self::has_empty_part),
            Self::Not(part) => part.has_empty_part(),
            Self::Test(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lists, Source, duplicate_names};
    use super::*;

    fn policy(text: &str) -> Policy {
        Policy::parse_all("a.yaml", text, &Source::Api, &Lists::none())
            .unwrap()
            .remove(0)
    }

    /// Sidecars of the neighbouring versions read this: a change of it is a change of [`FORMAT`].
    #[test]
    fn the_sent_form_is_this_json() {
        let policy = policy(
            "name: p\nagent: a*\nrate_limit: {max_total: 5}\nrules:\n  - tools: [x.*]\n    risk: [READ]\n    \
             paths: [/d*]\n    action: deny\n    condition: {not: {field: 'a[*].b', operator: in, value: [1e2, x, true]}}\n",
        );
        let sent = String::from_utf8(policy.to_sent().unwrap()).unwrap();
        let expected = concat!(
            r#"{"format":1,"name":"p","agents":["a*"],"namespaces":["*"],"kind":"standard","mode":"enforce","#,
            r#""rate_limit":{"max_total":5},"rules":[{"line":5,"tools":["x.*"],"#,
            r#""selectors":[{"risk":["READ"]},{"targets":["paths",["/d*"]]}],"action":"deny","#,
            r#""condition":{"not":{"test":{"field":"a[*].b","operator":"in","#,
            r#""values":[{"number":"100"},{"string":"x"},{"boolean":true}]}}}}],"origin":"api","source_file":"a.yaml"}"#,
        );
        assert_eq!(sent, expected);
    }

    #[test]
    fn names_defined_twice_are_reported_across_files() {
        let one = policy("name: p\nagent: a\nrules: [{action: deny}]");
        let other = Policy {
            source_file: Some("b.yaml".into()),
            ..one.clone()
        };
        let problems = duplicate_names([&one, &other]);
        assert_eq!(
            problems[0].to_string(),
            "b.yaml policy \"p\" is also defined in a.yaml; names are unique in the installation: rename one"
        );
    }

    #[test]
    fn a_policy_belongs_into_a_snapshot_when_it_can_touch_one_of_its_agents() {
        let policy = policy("name: p\nagent: ['a*', z]\nnamespace: prod\nrules: [{action: deny}]");
        let agents = |patterns: &[&str]| {
            patterns
                .iter()
                .map(|text| text.parse().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(policy.may_cover("prod", &agents(&["*b"])));
        assert!(!policy.may_cover("prod", &agents(&["b*", "y"])));
        assert!(!policy.may_cover("dev", &agents(&["*"])));
    }
}
