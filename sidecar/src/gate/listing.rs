//! What is listed is what may be called: both ask the same plans.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use policy::foresee::ToolQuery;
use tokio::sync::watch;
use tools::model::Tool;

use super::Gate;
use super::checks::pin_floor;
use super::refusal::Refusal;
use super::subject::{Judged, Subject};
use crate::control::Snapshot;
use crate::identity::Identity;

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

    /// What tells the list of one caller from another state of it.
    pub(super) fn list_digest(&self, identity: &Identity) -> u64 {
        let mut hasher = DefaultHasher::new();
        for tool in self.visible_tools(identity) {
            tool.name.hash(&mut hasher);
            tool.fingerprint.as_bytes().hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Watches the list of one caller.
    pub fn changes(&self, identity: &Identity) -> Changes {
        Changes {
            tools: self.registry.changed(),
            desired: self.control.changed(),
            shown: self.list_digest(identity),
        }
    }

    fn hides(&self, view: &Snapshot) -> bool {
        view.settings.hide_denied_tools || self.local.hide_denied_tools
    }

    fn could_run(&self, view: &Snapshot, subject: &Subject<'_>) -> bool {
        let floor = pin_floor(view, subject);
        view.policies.could_run(&ToolQuery {
            namespace: &subject.namespace,
            agent: &subject.identity.agent,
            user: subject.identity.user.as_ref(),
            session: None,
            tool: &subject.tool.name,
            classification: &subject.tool.classification,
            targets: None,
            floors: floor.as_slice(),
        })
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
        }
    }
}

/// Waits for the list of one caller to change.
#[derive(Debug)]
pub struct Changes {
    tools: watch::Receiver<u64>,
    desired: watch::Receiver<u64>,
    shown: u64,
}

impl Changes {
    /// Returns when the list differs from what it was at the last return, or at the beginning.
    pub async fn next(&mut self, gate: &Gate, identity: &Identity) {
        loop {
            let changed = tokio::select! {
                changed = self.tools.changed() => changed,
                changed = self.desired.changed() => changed,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
            let now = gate.list_digest(identity);
            if now != self.shown {
                self.shown = now;
                return;
            }
        }
    }
}
