//! A classification as commands and APIs show it.

use serde::Serialize;

use super::{Assessment, Classification};
use crate::model::Tool;
use crate::targets::{Extent, Targets};

/// A classification, and what a call reaches.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    #[serde(flatten)]
    classification: &'a Classification,
    /// Absent for a tool before any call.
    #[serde(skip_serializing_if = "Option::is_none")]
    targets: Option<Reached<'a>>,
}

/// Sets of targets; `null` is a set that could not be read with certainty.
#[derive(Debug, Serialize)]
struct Reached<'a> {
    resources: Option<&'a [String]>,
    columns: Option<&'a [String]>,
    hosts: Option<&'a [String]>,
    paths: Option<&'a [String]>,
    recipients: Option<&'a [String]>,
}

impl<'a> Report<'a> {
    /// Of a tool, before any call.
    pub fn of_tool(tool: &'a Tool) -> Self {
        Self {
            classification: &tool.classification,
            targets: None,
        }
    }

    /// Of one call.
    pub fn of_call(assessment: &'a Assessment<'_>) -> Self {
        let Targets {
            resources,
            columns,
            hosts,
            paths,
            recipients,
        } = &assessment.targets;
        Self {
            classification: &assessment.classification,
            targets: Some(Reached {
                resources: Extent::known(resources),
                columns: Extent::known(columns),
                hosts: Extent::known(hosts),
                paths: Extent::known(paths),
                recipients: Extent::known(recipients),
            }),
        }
    }
}
