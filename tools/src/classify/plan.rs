//! What the arguments of a call are looked at for.

use super::SideEffectKind;
use super::action::Action;
use super::mapping::Role;
use super::program::ProgramSign;
use super::risk::{Risk, RiskSet};
use crate::extract::Extractor;

/// How one tool's calls are judged; made once per tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallPlan {
    /// The risks where no argument decides; empty: nothing is known.
    pub(super) base: RiskSet,
    /// What stays of them when a text says what is done.
    pub(super) residue: RiskSet,
    /// What a claim of writing adds where everything else is milder.
    pub(super) claim: Option<Risk>,
    /// What an operator's correction adds.
    pub(super) correction: Option<Risk>,
    pub(super) actions: Vec<Action>,
    /// Arguments that count when they are there.
    pub(super) presence: Vec<Presence>,
    /// Arguments with a role.
    pub(super) roles: Vec<Placed>,
    pub(super) extractor: Option<Extractor>,
    /// The keys of the arguments that hold something to run.
    pub(super) generic_texts: Vec<String>,
    /// Whether the tool is generic by something that no parser reads.
    pub(super) is_opaque: bool,
    pub(super) corrected: Option<SideEffectKind>,
    /// The program that the tool is of.
    pub(super) program: Option<ProgramSign>,
}

/// An argument with a role.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) key: String,
    /// As the mapping writes it.
    pub(super) name: String,
    pub(super) role: Role,
}

/// An argument that counts when it is there.
#[derive(Debug, Clone)]
pub(super) struct Presence {
    pub(super) key: String,
    pub(super) risks: RiskSet,
    pub(super) capability: Option<String>,
    pub(super) reason: String,
}

impl CallPlan {
    /// Whether every call is what the tool is.
    pub(super) fn is_fixed(&self) -> bool {
        self.actions.is_empty()
            && self.presence.is_empty()
            && self.roles.is_empty()
            && self.extractor.is_none()
            && self.generic_texts.is_empty()
            && self.program.is_none()
    }

    /// Whether the tool is generic.
    pub(super) fn is_generic(&self) -> bool {
        self.is_opaque || !self.generic_texts.is_empty()
    }

    /// What the tool does by itself.
    pub(super) fn own(&self) -> RiskSet {
        if self.base.is_empty() {
            RiskSet::of(Risk::Unknown)
        } else {
            self.base
        }
    }

    /// The risks that calls can have.
    pub(super) fn possible(&self) -> RiskSet {
        let is_replaced = self.actions.iter().any(Action::is_mapped);
        let mut all = if is_replaced { RiskSet::EMPTY } else { self.own() };
        for action in &self.actions {
            all = all.union(action.possible());
        }
        for presence in &self.presence {
            all = all.union(presence.risks);
        }
        for placed in &self.roles {
            all = all.union(super::text::possible(placed.role));
        }
        if matches!(self.extractor, Some(Extractor::Sql { .. })) {
            all = RiskSet::KNOWN.union(all);
        }
        if self.is_generic() {
            all.insert(Risk::Execution);
        }
        if let Some(program) = &self.program {
            all = all.union(program.possible());
        }
        all.extend(self.claim.into_iter().chain(self.correction));
        all
    }
}
