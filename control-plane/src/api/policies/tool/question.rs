//! What is asked.

use net::problem::Problem;
use policy::edit::{Change, Note};
use tools::id::{AgentId, IdError, Namespace, ToolName};

/// One tool's action for one agent.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) agent: AgentId,
    pub(super) tool: ToolName,
    pub(super) change: Change,
    /// Only as the tool is there; else wherever it is.
    pub(super) namespace: Option<Namespace>,
    pub(super) by: String,
}

impl Question {
    pub(super) fn new(
        agent: &str,
        tool: &str,
        action: &str,
        namespace: Option<String>,
        by: &str,
    ) -> Result<Self, Problem> {
        let refused = |error: IdError| Problem::bad_request(error.to_string());
        let change = match action {
            "inherit" => Change::Inherit,
            other => Change::Set(other.parse().map_err(|_| {
                Problem::bad_request(format!(
                    "action {other:?} is unknown; it is allow, deny, human_approval or inherit"
                ))
            })?),
        };
        Ok(Self {
            agent: AgentId::try_from(agent).map_err(refused)?,
            tool: ToolName::try_from(tool).map_err(refused)?,
            change,
            namespace: namespace
                .as_deref()
                .map(Namespace::try_from)
                .transpose()
                .map_err(refused)?,
            by: by.to_owned(),
        })
    }

    /// What a rule is headed by, on the day that a time is on.
    pub(super) fn note<'a>(&'a self, date: &'a str) -> Note<'a> {
        Note { by: &self.by, date }
    }
}
