//! What operators corrected about tools, as a view says it.

use std::collections::HashMap;
use std::sync::Arc;

use proto::body;
use proto::v1::Resource;
use tools::classify::{Correction, Mapping, Risk, RiskSet, SideEffectKind};
use tools::fingerprint::Fingerprint;
use tools::model::Tool;

use super::Revision;

/// What is said of one tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    tool: String,
    /// Of the declaration that it was said of; `None`: the correction cannot be read.
    fingerprint: Option<Fingerprint>,
    correction: Correction,
}

impl Said {
    /// Decodes a resource.
    ///
    /// # Errors
    /// With the reason, beside what holds then: nothing is known of the tool.
    pub(super) fn decode(resource: &Resource) -> Result<Self, Box<(Self, String)>> {
        let decoded = serde_json::from_slice::<body::Correction>(&resource.body)
            .map_err(|error| error.to_string())
            .and_then(read);
        decoded.map_err(|reason| {
            let (_, tool) = resource.name.split_once('/').unwrap_or(("", &resource.name));
            Box::new((Self::unreadable(tool), reason))
        })
    }

    fn unreadable(tool: &str) -> Self {
        let mapping = Mapping {
            risks: RiskSet::of(Risk::Unknown),
            ..Mapping::default()
        };
        Self {
            tool: tool.to_owned(),
            fingerprint: None,
            correction: Correction {
                mapping: Some(mapping),
                ..Correction::default()
            },
        }
    }

    /// What of it holds for a tool as it is declared now. Of another declaration than the one that was corrected, only what makes the
    /// tool graver is kept.
    fn for_tool(&self, tool: &Tool) -> Correction {
        let is_of_this = self.fingerprint.is_none_or(|said_of| said_of == tool.fingerprint);
        let mut correction = self.correction.clone();
        if is_of_this {
            return correction;
        }
        correction.extractor = None;
        correction.side_effect = correction
            .side_effect
            .filter(|kind| *kind != SideEffectKind::Read);
        let mut plain = tool.clone();
        plain.correct(None);
        let own = plain.classification.risk;
        correction.mapping = correction
            .mapping
            .filter(|mapping| mapping.risks.gravest() >= own);
        correction
    }
}

fn read(body: body::Correction) -> Result<Said, String> {
    let fingerprint = body
        .fingerprint
        .parse()
        .map_err(|_| "the fingerprint is not valid".to_owned())?;
    let correction: Correction =
        serde_json::from_value(body.correction).map_err(|error| error.to_string())?;
    if let Some(extractor) = &correction.extractor {
        extractor.check().map_err(|error| error.to_string())?;
    }
    if let Some(mapping) = &correction.mapping {
        mapping.check().map_err(|error| error.to_string())?;
    }
    Ok(Said {
        tool: body.tool,
        fingerprint: Some(fingerprint),
        correction,
    })
}

/// The corrections of a view.
#[derive(Debug, Default)]
pub struct Corrections {
    /// Of the first view that said so.
    revision: Revision,
    by_tool: HashMap<String, Said>,
}

impl Corrections {
    pub(super) fn new<'a>(revision: Revision, said: impl Iterator<Item = &'a Said>) -> Self {
        Self {
            revision,
            by_tool: said.map(|said| (said.tool.clone(), said.clone())).collect(),
        }
    }

    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.by_tool == other.by_tool
    }

    /// The revision of the first view that said so.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// A tool, judged with what operators say of it.
    #[must_use]
    pub fn applied_to(&self, tool: &Arc<Tool>) -> Arc<Tool> {
        let Some(said) = self.by_tool.get(tool.name.as_str()) else {
            return Arc::clone(tool);
        };
        let mut corrected = Tool::clone(tool);
        corrected.correct(Some(&said.for_tool(tool)));
        Arc::new(corrected)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tools::id::UpstreamName;

    use super::*;

    fn tool(description: &str) -> Arc<Tool> {
        let declared = json!({"name": "query", "description": description, "inputSchema": {"type": "object",
            "properties": {"query": {"type": "string"}}}, "annotations": {"readOnlyHint": true}});
        let raw = serde_json::value::to_raw_value(&declared).unwrap();
        Arc::new(Tool::mcp(&UpstreamName::try_from("db").unwrap(), raw.into()).unwrap())
    }

    fn resource(tool: &Tool, correction: serde_json::Value) -> Resource {
        let body = json!({"namespace": "default", "upstream": "db", "tool": "db.query",
            "fingerprint": tool.fingerprint.to_string(), "correction": correction});
        Resource {
            r#type: body::CORRECTION.to_owned(),
            name: "default/db.query".to_owned(),
            body: body.to_string().into(),
            ..Resource::default()
        }
    }

    fn corrected(tool: &Arc<Tool>, resource: &Resource) -> Arc<Tool> {
        let said = Said::decode(resource).unwrap_or_else(|unread| unread.0);
        Corrections::new(Revision::default(), std::iter::once(&said)).applied_to(tool)
    }

    #[test]
    fn a_correction_holds_for_the_declaration_that_it_was_said_of() {
        let tool = tool("Runs a query.");
        let said = resource(&tool, json!({"side_effect": "delete", "tags": ["pii"]}));
        let judged = &corrected(&tool, &said).classification;
        assert_eq!(judged.side_effect.kind, SideEffectKind::Delete);
        assert!(judged.risks.contains(Risk::Delete) && judged.tags == ["pii"]);
    }

    #[test]
    fn of_another_declaration_only_what_is_graver_is_kept() {
        let (before, after) = (tool("Runs a query."), tool("Runs a query, and mails it."));
        let read = resource(
            &before,
            json!({"side_effect": "read", "mapping": {"risks": ["READ"]}}),
        );
        let plain = &after.classification;
        assert_eq!(corrected(&after, &read).classification.risks, plain.risks);
        let graver = resource(&before, json!({"side_effect": "admin"}));
        assert_eq!(
            corrected(&after, &graver).classification.side_effect.kind,
            SideEffectKind::Admin
        );
    }

    #[test]
    fn nothing_is_known_of_a_tool_whose_correction_cannot_be_read() {
        let tool = tool("Runs a query.");
        for said in [
            json!({"side_effect": "explode"}),
            json!({"newer": true}),
            json!({"extractor": {"mode": "uri_template", "template": "{"}}),
        ] {
            let resource = resource(&tool, said);
            let (_, reason) = *Said::decode(&resource).unwrap_err();
            assert!(!reason.is_empty());
            let judged = &corrected(&tool, &resource).classification;
            assert!(judged.risks.contains(Risk::Unknown) && !judged.plain_read);
        }
    }
}
