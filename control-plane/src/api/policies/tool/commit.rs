//! Storing what was planned, with its record.

use net::problem::Problem;
use serde_json::json;

use super::plan::{Plan, Step};
use super::{Failed, Question, name_of};
use crate::auth::Operator;
use crate::core::Core;
use crate::documents::EditFailed;
use crate::store::desired::PolicyRow;
use crate::store::{Act, Revision, StoreError};

/// What is there now.
pub(super) struct Stored {
    /// Of the policy; none when it is gone.
    pub(super) version: Option<u64>,
    pub(super) revision: Revision,
}

impl From<PolicyRow> for Stored {
    fn from(row: PolicyRow) -> Self {
        Self {
            version: Some(row.version),
            revision: row.revision,
        }
    }
}

pub(super) async fn commit(
    core: &Core,
    operator: &Operator,
    question: &Question,
    plan: &Plan,
) -> Result<Option<Stored>, Failed> {
    let act = || act(operator, question, plan);
    match &plan.step {
        Step::Nothing => Ok(present(core, plan).await?.map(Stored::from)),
        Step::Put(draft, expected) => {
            let put = core
                .store
                .put_policy(draft.as_ref().clone(), *expected, act())
                .await;
            put.map(|row| Some(row.into())).map_err(stale)
        }
        Step::Remove(name, expected) => {
            let revision = core
                .store
                .delete_policy(name, *expected, act())
                .await
                .map_err(stale)?;
            Ok(Some(Stored {
                version: None,
                revision,
            }))
        }
        Step::File(wanted) => {
            let Some(directory) = &core.directory else {
                return Err(Failed::Refused(Problem::internal()));
            };
            let applied = directory.edit(wanted.clone(), act()).await.map_err(failed)?;
            Ok(Some(Stored {
                version: present(core, plan).await?.map(|row| row.version),
                revision: applied.revision,
            }))
        }
    }
}

async fn present(core: &Core, plan: &Plan) -> Result<Option<PolicyRow>, Failed> {
    let Some(name) = &plan.policy else { return Ok(None) };
    match core.store.policy(name).await {
        Ok(row) => Ok(Some(row)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Another version is there than the one that was planned with.
fn stale(error: StoreError) -> Failed {
    match error {
        StoreError::Precondition { .. } => Failed::Stale(Problem::conflict(format!(
            "{error}: others are changing it too; try again"
        ))),
        error => error.into(),
    }
}

fn failed(error: EditFailed) -> Failed {
    match error {
        EditFailed::File(refused) => refused.into(),
        EditFailed::Store(error) => stale(error),
        EditFailed::Ended => Failed::Refused(Problem::unavailable(error.to_string())),
    }
}

fn act(operator: &Operator, question: &Question, plan: &Plan) -> Act {
    let details = json!({
        "policy": plan.policy,
        "change": "tool",
        "agent": question.agent.as_str(),
        "tool": question.tool.as_str(),
        "asked": name_of(question.change),
        "action_before": plan.before,
        "action_after": plan.after,
        "rule_index": plan.rule,
        "source_file": plan.file(),
        "version_before": plan.version_before,
        "before": plan.text_before,
        "after": plan.text_after,
    });
    operator.act("mesh.policy_edit", &question.by, details)
}
