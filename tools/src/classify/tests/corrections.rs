//! What operators say.

use serde_json::json;

use super::super::*;
use super::{call, declared, names, risks_of};
use crate::extract::{Dialect, Extractor};

fn corrected(declaration: serde_json::Value, correction: serde_json::Value) -> crate::model::Tool {
    let mut tool = declared(declaration);
    let correction: Correction = serde_json::from_value(correction).unwrap();
    tool.correct(Some(&correction));
    tool
}

#[test]
fn a_corrected_side_effect_is_shown_as_such_and_never_makes_a_tool_milder() {
    let tool = corrected(
        json!({"name": "get_x"}),
        json!({"side_effect": "delete", "tags": ["pii"]}),
    );
    let judged = &tool.classification;
    assert_eq!(judged.side_effect.source, SideEffectSource::Correction);
    assert_eq!((judged.access, judged.plain_read), (Access::Write, false));
    assert_eq!(names(judged.risks), "READ+DELETE");
    assert_eq!(judged.tags, ["pii"]);
    assert!(
        judged
            .reasons
            .contains(&"side effect corrected to delete".to_owned())
    );
    let milder = corrected(json!({"name": "delete_x"}), json!({"side_effect": "read"}));
    assert_eq!(names(milder.classification.risks), "DELETE");
    assert!(!milder.classification.plain_read);
}

#[test]
fn a_correction_can_be_taken_back() {
    let mut tool = corrected(json!({"name": "get_x"}), json!({"side_effect": "write"}));
    tool.correct(None);
    assert_eq!(
        tool.classification,
        declared(json!({"name": "get_x"})).classification
    );
}

#[test]
fn an_operators_mapping_wins_over_claims_and_the_generic_family() {
    let declaration = json!({"name": "ask", "annotations": {"destructiveHint": true},
        "inputSchema": {"properties": {"sql": {"type": "string"}, "action": {"type": "string"}}}});
    let mapping = json!({"mapping": {"capability": "crm.read", "risks": ["READ"],
        "actions": {"action": {"wipe": {"risks": ["DELETE"]}, "look": {"risks": ["READ"]}}}}});
    let tool = corrected(declaration, mapping);
    assert_eq!(tool.classification.source, RiskSource::Mapped);
    assert_eq!(tool.classification.reasons[0], "mapped by an operator");
    assert_eq!(risks_of(&tool, &json!({"sql": "x", "action": "look"})), "READ");
    assert_eq!(risks_of(&tool, &json!({"action": "wipe"})), "DELETE");
    assert_eq!(risks_of(&tool, &json!({"action": "frobnicate"})), "UNKNOWN");
    assert!(
        !call(&tool, &json!({"action": "look"})).0.plain_read,
        "generic, and no text was read"
    );
}

#[test]
fn an_extractor_says_what_the_text_of_a_generic_tool_does() {
    let mut tool = declared(
        json!({"name": "execute_sql", "annotations": {"destructiveHint": true},
        "inputSchema": {"properties": {"sql": {"type": "string"}}}}),
    );
    assert_eq!(risks_of(&tool, &json!({"sql": "SELECT 1"})), "EXECUTION");
    tool.correct(Some(&Correction {
        extractor: Some(Extractor::Sql {
            argument: "sql".to_owned(),
            dialect: Dialect::Postgres,
            schema: Some("public".to_owned()),
            functions: Vec::new(),
        }),
        ..Correction::default()
    }));
    let (select, targets) = call(&tool, &json!({"sql": "SELECT name FROM users"}));
    assert_eq!((names(select.risks).as_str(), select.plain_read), ("READ", true));
    assert_eq!(targets.resources.known().unwrap(), ["table://public.users"]);
    assert!(risks_of(&tool, &json!({"sql": "DROP TABLE users"})).contains("DELETE"));
    assert!(risks_of(&tool, &json!({"sql": "not sql"})).contains("EXECUTION"));
    assert!(risks_of(&tool, &json!({})).contains("EXECUTION"));
}

#[test]
fn an_extractor_of_uris_changes_no_risk() {
    let mut tool = declared(json!({"name": "get_file"}));
    tool.correct(Some(&Correction {
        extractor: Some(Extractor::UriTemplate {
            template: "github://{owner}/{repo}".to_owned(),
        }),
        ..Correction::default()
    }));
    let (judged, targets) = call(&tool, &json!({"owner": "a", "repo": "b"}));
    assert!(judged.plain_read);
    assert_eq!(targets.resources.known().unwrap(), ["github://a/b"]);
}

#[test]
fn a_mapping_without_risks_is_refused() {
    let check = |value| serde_json::from_value::<Mapping>(value).unwrap().check();
    assert!(check(json!({"risks": ["READ"]})).is_ok());
    let error = check(json!({"risks": []})).unwrap_err();
    assert!(error.to_string().contains("name at least one class"), "{error}");
    assert!(check(json!({"risks": ["READ"], "presence": {"x": {"risks": []}}})).is_err());
    assert!(check(json!({"risks": ["READ"], "actions": {"a": {"b": {"risks": []}}}})).is_err());
    assert!(serde_json::from_value::<Mapping>(json!({"risks": ["MILD"]})).is_err());
    assert!(serde_json::from_value::<Mapping>(json!({"risk": ["READ"]})).is_err());
}
