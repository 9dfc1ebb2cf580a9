//! What an operator corrected.

use serde::{Deserialize, Serialize};

use super::mapping::Mapping;
use super::plan::CallPlan;
use super::{Access, Classification, Risk, SideEffect, SideEffectKind, SideEffectSource};
use crate::extract::Extractor;

/// What an operator says about a tool, against or beyond what the tool declares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Correction {
    /// Its effect. It never makes a tool milder than its risks: that takes a mapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_effect: Option<SideEffectKind>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Mapping>,
    /// How the targets of its calls are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extractor: Option<Extractor>,
    /// Tags for policies to select on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl Correction {
    /// Whether nothing is corrected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn apply(&self, classification: &mut Classification, plan: &mut CallPlan, is_local: bool) {
        for tag in &self.tags {
            if !classification.tags.contains(tag) {
                classification.tags.push(tag.clone());
            }
        }
        if let Some(extractor) = &self.extractor {
            plan.extractor = Some(extractor.clone());
            // The operator says that the text is all that is run: what it was found to do is what the tool claims.
            if matches!(extractor, Extractor::Sql { .. }) {
                plan.claim = None;
            }
        }
        let Some(kind) = self.side_effect else {
            return;
        };
        plan.corrected = Some(kind);
        let writes = !plan
            .own()
            .is_subset_of([Risk::Read, Risk::Unknown].into_iter().collect());
        plan.correction = match kind {
            SideEffectKind::Read => None,
            SideEffectKind::Write if writes => None,
            SideEffectKind::Write if is_local => Some(Risk::LocalWrite),
            SideEffectKind::Write => Some(Risk::ExternalWrite),
            SideEffectKind::Delete => Some(Risk::Delete),
            SideEffectKind::Admin => Some(Risk::PermissionChange),
        };
        if kind != SideEffectKind::Read {
            classification.access = Access::Write;
        }
        classification.side_effect = SideEffect {
            kind,
            source: SideEffectSource::Correction,
        };
        classification
            .reasons
            .push(format!("side effect corrected to {}", kind.name()));
    }
}
