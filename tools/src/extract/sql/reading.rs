//! What has been found so far.

use std::collections::BTreeSet;

use crate::classify::{Risk, RiskSet};
use crate::extract::{Extraction, MAX_MEMBERS};
use crate::targets::Extent;

/// The most reasons that are kept.
const MAX_REASONS: usize = 16;

/// Sets that only grow, and whether they can still be trusted.
#[derive(Debug, Default)]
pub(super) struct Reading {
    resources: BTreeSet<String>,
    columns: BTreeSet<String>,
    /// Tables by the name that columns are shown with.
    tables: BTreeSet<String>,
    risks: RiskSet,
    uncertain: bool,
    /// Whether every column of every table counts.
    all_columns: bool,
    reasons: Vec<String>,
}

impl Reading {
    pub(super) fn resource(&mut self, uri: String) {
        self.resources.insert(uri);
        self.bound();
    }

    pub(super) fn table(&mut self, table: &str) {
        if !self.tables.contains(table) {
            self.tables.insert(table.to_owned());
        }
    }

    pub(super) fn column(&mut self, table: &str, column: &str) {
        self.columns.insert(format!("{table}.{column}"));
        self.bound();
    }

    fn bound(&mut self) {
        if self.resources.len() > MAX_MEMBERS || self.columns.len() > MAX_MEMBERS {
            self.resources.clear();
            self.columns.clear();
            self.uncertain("the SQL text names more tables and columns than are kept");
        }
    }

    pub(super) fn all_columns(&mut self) {
        self.all_columns = true;
    }

    pub(super) fn risk(&mut self, risk: Risk) {
        self.risks.insert(risk);
    }

    pub(super) fn risks(&mut self, risks: RiskSet) {
        self.risks = self.risks.union(risks);
    }

    /// The sets are not to be trusted from here on.
    pub(super) fn uncertain(&mut self, reason: &str) {
        self.uncertain = true;
        self.reason(reason.to_owned());
    }

    pub(super) fn reason(&mut self, reason: String) {
        if self.reasons.len() < MAX_REASONS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    pub(super) fn finish(mut self) -> Extraction {
        if self.all_columns {
            for table in std::mem::take(&mut self.tables) {
                self.column(&table, "*");
            }
        }
        let known = |members: BTreeSet<String>| Extent::Known(members.into_iter().collect());
        let (resources, columns) = if self.uncertain {
            (Extent::Unknown, Extent::Unknown)
        } else {
            (known(self.resources), known(self.columns))
        };
        let risks = if self.risks.is_empty() {
            RiskSet::of(Risk::Execution)
        } else {
            self.risks
        };
        Extraction {
            resources,
            columns,
            risks: Some(risks),
            complete: !self.uncertain,
            reasons: self.reasons,
        }
    }
}
