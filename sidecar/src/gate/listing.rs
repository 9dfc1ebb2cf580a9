//! What is listed is what may be called: both ask the same plans.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use policy::decide::Floor;
use policy::document::Action;
use policy::foresee::ToolQuery;
use tokio::sync::watch;
use tools::model::Tool;

use super::Gate;
use super::checks::floor;
use super::refusal::Refusal;
use super::subject::{Judged, Subject};
use crate::control::Snapshot;
use crate::identity::Identity;
use crate::registry::Listed;

impl Gate {
    /// The tools that are listed to a caller, sorted by name. With hiding on, a tool is missing exactly when no arguments
    /// could get it past policies, guardrails and floors.
    pub fn visible_tools(&self, identity: &Identity) -> Vec<Arc<Tool>> {
        let view = self.view();
        let all = self.registry.tools();
        if !self.hides(&view) {
            return all.to_vec();
        }
        all.iter()
            .filter(|tool| self.could_run(&view, &self.bare_subject(identity, tool)))
            .cloned()
            .collect()
    }

    /// Whether a caller sees the tool in lists.
    pub fn is_visible(&self, identity: &Identity, tool: &Arc<Tool>) -> bool {
        let view = self.control.snapshot();
        !self.hides(&view) || self.could_run(&view, &self.bare_subject(identity, tool))
    }

    /// A denial of a tool that the caller does not see is answered as if there were no such tool.
    pub(super) fn hide(&self, refusal: Refusal, view: &Snapshot, subject: &Subject<'_>) -> Refusal {
        if self.hides(view) && !self.could_run(view, subject) {
            refusal.hidden()
        } else {
            refusal
        }
    }

    /// The resources, templates or prompts that a caller may ask for, sorted by name: those that policies, guardrails and
    /// floors let pass for some arguments, as a call of them would be decided. Tools are listed as [`Gate::visible_tools`] says.
    pub fn visible(&self, identity: &Identity, list: Listed) -> Vec<Arc<Tool>> {
        if list == Listed::Tools {
            return self.visible_tools(identity);
        }
        let view = self.control.snapshot();
        let all = self.registry.entries(list);
        all.iter()
            .filter(|entry| self.could_run(&view, &self.bare_subject(identity, entry)))
            .cloned()
            .collect()
    }

    /// Whether a caller may go on hearing what it asked for: nothing has stopped it, and its request would still pass.
    pub fn may_ask(&self, identity: &Identity, subject: &Arc<Tool>) -> bool {
        let asked = self.bare_subject(identity, subject);
        self.not_stopped(&asked).is_ok() && self.could_run(&self.control.snapshot(), &asked)
    }

    /// What tells the lists of one caller from another state of them.
    pub(super) fn list_digests(&self, identity: &Identity) -> Digests {
        let digest = |lists: &[Listed]| {
            let mut hasher = DefaultHasher::new();
            for list in lists {
                for entry in self.visible(identity, *list) {
                    entry.name.hash(&mut hasher);
                    entry.fingerprint.as_bytes().hash(&mut hasher);
                }
                list_end(&mut hasher);
            }
            hasher.finish()
        };
        Digests {
            tools: digest(&[Listed::Tools]),
            resources: digest(&[Listed::Resources, Listed::Templates]),
            prompts: digest(&[Listed::Prompts]),
        }
    }

    /// Watches the lists of one caller.
    pub fn changes(&self, identity: &Identity) -> Changes {
        Changes {
            tools: self.registry.changed(),
            desired: self.control.changed(),
            shown: self.list_digests(identity),
        }
    }

    /// Whether some arguments could make a call of the tool wait for a person.
    pub fn can_wait(&self, identity: &Identity, tool: &Arc<Tool>) -> bool {
        let view = self.control.snapshot();
        let subject = self.bare_subject(identity, tool);
        let floor = floor(&view, &subject);
        let decided = view.policies.tool_decision(&query(&subject, floor.as_slice()));
        let can_be = |action| decided.conditional.iter().any(|part| part.action == action);
        let is_floored_by = |action| decided.floors.iter().any(|floor| floor.action == action);
        let asks = decided.action == Action::HumanApproval
            || can_be(Action::HumanApproval)
            || (can_be(Action::Allow) && is_floored_by(Action::HumanApproval));
        asks && !is_floored_by(Action::Deny)
    }

    fn hides(&self, view: &Snapshot) -> bool {
        view.settings.hide_denied_tools || self.local.hide_denied_tools
    }

    fn could_run(&self, view: &Snapshot, subject: &Subject<'_>) -> bool {
        let floor = floor(view, subject);
        view.policies.could_run(&query(subject, floor.as_slice()))
    }

    fn bare_subject(&self, identity: &Identity, tool: &Arc<Tool>) -> Subject<'static> {
        Subject {
            namespace: self.namespace(),
            identity: identity.clone(),
            session: None,
            tool: Arc::clone(tool),
            is_served: true,
            arguments: None,
            judged: Judged::AS_TOOL,
            commanded: self.commanded(tool, None),
        }
    }
}

/// What is asked about a tool before any call.
fn query<'s>(subject: &'s Subject<'_>, floors: &'s [Floor]) -> ToolQuery<'s> {
    ToolQuery {
        namespace: &subject.namespace,
        agent: &subject.identity.agent,
        user: subject.identity.user.as_ref(),
        session: None,
        tool: &subject.tool.name,
        classification: &subject.tool.classification,
        targets: None,
        floors,
    }
}

fn list_end(hasher: &mut DefaultHasher) {
    hasher.write_u8(0xff);
}

/// One number for each list that is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digests {
    tools: u64,
    resources: u64,
    prompts: u64,
}

/// The lists that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedLists {
    /// `tools/list`
    pub tools: bool,
    /// `resources/list` or `resources/templates/list`
    pub resources: bool,
    /// `prompts/list`
    pub prompts: bool,
}

/// Waits for the lists of one caller to change.
#[derive(Debug)]
pub struct Changes {
    tools: watch::Receiver<u64>,
    desired: watch::Receiver<u64>,
    shown: Digests,
}

impl Changes {
    /// Returns when a list differs from what it was at the last return, or at the beginning, and says which do.
    pub async fn next(&mut self, gate: &Gate, identity: &Identity) -> ChangedLists {
        loop {
            let changed = tokio::select! {
                changed = self.tools.changed() => changed,
                changed = self.desired.changed() => changed,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
            let now = gate.list_digests(identity);
            let before = std::mem::replace(&mut self.shown, now);
            if now != before {
                return ChangedLists {
                    tools: now.tools != before.tools,
                    resources: now.resources != before.resources,
                    prompts: now.prompts != before.prompts,
                };
            }
        }
    }
}
