//! What the tests of decisions share.
#![allow(dead_code, reason = "every test file uses its part")]
#![allow(unreachable_pub, reason = "the module is private to each test")]

use std::sync::Arc;

use policy::document::{Lists, Source};
use policy::{Call, Decision, Floor, Policy, PolicySet};
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, ToolName, UserId};
use tools::json::{Document, Limits};
use tools::targets::Targets;

/// The policies of a YAML text.
pub fn policies(text: &str) -> Vec<Arc<Policy>> {
    match Policy::parse_all("t.yaml", text, &Source::Inline, &Lists::none()) {
        Ok(policies) => policies.into_iter().map(Arc::new).collect(),
        Err(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("{text}\n{}", lines.join("\n"));
        }
    }
}

/// One policy for every agent, from rules in flow style.
pub fn rules(rules: &str) -> PolicySet {
    PolicySet::compile(policies(&format!("name: p\nagent: \"*\"\nrules: [{rules}]\n")))
}

/// What a call is, with everything about it overridable.
pub struct Asked {
    pub namespace: Namespace,
    pub agent: AgentId,
    pub user: Option<UserId>,
    pub tool: ToolName,
    pub classification: Classification,
    pub targets: Targets,
    pub floors: Vec<Floor>,
    pub arguments: String,
}

pub fn ask(tool: &str, arguments: &str) -> Asked {
    let tool: ToolName = tool.parse().unwrap();
    Asked {
        namespace: Namespace::default(),
        agent: "claude".parse().unwrap(),
        user: None,
        classification: Classification::unknown(tool.clone()),
        tool,
        targets: Targets::UNKNOWN,
        floors: Vec::new(),
        arguments: arguments.to_owned(),
    }
}

impl Asked {
    pub fn with<T>(&self, use_call: impl FnOnce(&Call<'_>) -> T) -> T {
        let document = Document::parse(self.arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
        use_call(&Call {
            namespace: &self.namespace,
            agent: &self.agent,
            user: self.user.as_ref(),
            session: None,
            tool: &self.tool,
            classification: &self.classification,
            targets: &self.targets,
            arguments: Some(document.root()),
            floors: &self.floors,
        })
    }

    pub fn decide(&self, set: &PolicySet) -> Decision {
        self.with(|call| set.decide(call))
    }
}
