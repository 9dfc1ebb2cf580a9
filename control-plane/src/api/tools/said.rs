//! What an operator says of a tool: as it is stored, and as sidecars apply it.

use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::classify::{Correction, Mapping, SideEffectKind};
use tools::extract::Extractor;

/// Tags of one kind, at most.
const MAX_TAGS: usize = 64;
/// The longest tag, in bytes.
const MAX_TAG: usize = 128;

/// Where a tool is in its life. It informs; it does not govern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Lifecycle {
    Draft,
    #[default]
    Active,
    Deprecated,
    Archived,
}

impl Lifecycle {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Archived => "archived",
        }
    }
}

/// What an operator says of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) side_effect: Option<SideEffectKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mapping: Option<Mapping>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_extractor: Option<Extractor>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) risk_tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) compliance_tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lifecycle_state: Option<Lifecycle>,
}

impl Said {
    /// What was stored. What an older or newer build wrote and this one cannot read is an error that names the field.
    pub(super) fn stored(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }

    /// With some fields changed: `null` takes one away, those left out stay.
    pub(super) fn changed(&self, changes: Map<String, Value>) -> Result<Self, Problem> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else {
            return Err(Problem::internal());
        };
        for (name, value) in changes {
            let name = match name.as_str() {
                "side_effect_type" => "side_effect".to_owned(),
                "extractor" => "target_extractor".to_owned(),
                _ => name,
            };
            match value {
                Value::Null => {
                    if !FIELDS.contains(&name.as_str()) {
                        return Err(unknown(&name));
                    }
                    fields.remove(&name);
                }
                value => {
                    fields.insert(name, value);
                }
            }
        }
        let said: Self = serde_json::from_value(Value::Object(fields))
            .map_err(|error| Problem::bad_request(format!("the correction is not as expected: {error}")))?;
        said.check()?;
        Ok(said)
    }

    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(mapping) = &self.mapping {
            mapping
                .check()
                .map_err(|error| Problem::bad_request(error.to_string()))?;
        }
        if let Some(extractor) = &self.target_extractor {
            extractor
                .check()
                .map_err(|error| Problem::bad_request(error.to_string()))?;
        }
        for (what, tags) in [
            ("risk_tags", &self.risk_tags),
            ("compliance_tags", &self.compliance_tags),
        ] {
            let bad = |tag: &&String| {
                tag.trim().is_empty() || tag.len() > MAX_TAG || tag.chars().any(char::is_control)
            };
            if tags.len() > MAX_TAGS || tags.iter().any(|tag| bad(&tag)) {
                return Err(Problem::bad_request(format!(
                    "{what} are at most {MAX_TAGS} texts of at most {MAX_TAG} bytes without control characters"
                )));
            }
        }
        Ok(())
    }

    /// What sidecars apply.
    pub(super) fn correction(&self) -> Correction {
        let mut tags = self.risk_tags.clone();
        for tag in &self.compliance_tags {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        Correction {
            side_effect: self.side_effect,
            mapping: self.mapping.clone(),
            extractor: self.target_extractor.clone(),
            tags,
        }
    }
}

const FIELDS: [&str; 6] = [
    "side_effect",
    "mapping",
    "target_extractor",
    "risk_tags",
    "compliance_tags",
    "lifecycle_state",
];

fn unknown(name: &str) -> Problem {
    Problem::bad_request(format!(
        "`{name}` cannot be corrected; what can be are {}",
        FIELDS.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(said: &Said, changes: Value) -> Result<Said, Problem> {
        said.changed(changes.as_object().unwrap().clone())
    }

    #[test]
    fn fields_are_set_kept_and_taken_away() {
        let said = changed(
            &Said::default(),
            json!({"side_effect": "delete", "risk_tags": ["pii"]}),
        )
        .unwrap();
        let more = changed(
            &said,
            json!({"compliance_tags": ["gdpr", "pii"], "side_effect": null}),
        )
        .unwrap();
        assert_eq!((more.side_effect, more.risk_tags.len()), (None, 1));
        assert_eq!(more.correction().tags, ["pii", "gdpr"]);
        let none = changed(&more, json!({"risk_tags": null, "compliance_tags": null})).unwrap();
        assert_eq!(none, Said::default());
    }

    #[test]
    fn what_is_no_correction_is_refused() {
        for changes in [
            json!({"side_effect": "explode"}),
            json!({"sideeffect": "read"}),
            json!({"nothing": null}),
            json!({"mapping": {"risks": []}}),
            json!({"target_extractor": {"mode": "uri_template", "template": "{"}}),
            json!({"risk_tags": ["a\nb"]}),
            json!({"risk_tags": "pii"}),
            json!({"lifecycle_state": "gone"}),
        ] {
            assert_eq!(
                changed(&Said::default(), changes.clone()).unwrap_err().status(),
                400,
                "{changes}"
            );
        }
    }
}
