//! One rule.

use std::sync::Arc;

use super::super::{Action, PolicyKind, Rule};
use super::{Lists, condition, selector};
use crate::nearest;
use crate::yaml::{MapReader, Problems, Value};

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 2048;

/// Reads a rule; `None` when something in it is wrong, which was reported.
pub(super) fn read(value: &Value, kind: PolicyKind, lists: &Lists, problems: &Problems) -> Option<Rule> {
    let before = problems.len();
    let reader = MapReader::new(value, "a rule", problems)?;
    let tools = reader
        .optional("tools")
        .map(|value| selector::tool_globs(value, lists, problems));
    let except = reader
        .optional("except")
        .map(|value| selector::tool_globs(value, lists, problems));
    let has_tools = tools.is_some();
    let selectors = selector::read(&reader, has_tools, lists, problems);
    let action = reader
        .required("action")
        .and_then(|value| read_action(value, kind, problems));
    let message = reader.string("message").map(|text| {
        if text.len() > MAX_MESSAGE {
            problems.at(
                value,
                format!("message has {} bytes; at most {MAX_MESSAGE} are kept", text.len()),
            );
        }
        Arc::from(text)
    });
    let allows = action == Some(Action::Allow);
    let condition = reader
        .optional("condition")
        .and_then(|value| condition::read(value, allows, 1, problems));
    for key in ["tools", "except", "message", "condition"] {
        refuse_null(&reader, key, problems);
    }
    reader.finish();
    if problems.len() > before {
        return None;
    }
    Some(Rule {
        line: value.line(),
        tools,
        except: except.unwrap_or_default(),
        selectors,
        action: action?,
        message,
        condition,
    })
}

/// A key that is written with nothing behind it widens the rule silently, so it is an error.
pub(super) fn refuse_null(reader: &MapReader<'_, '_>, key: &str, problems: &Problems) {
    if let Some(value) = reader.value().get(key).filter(|value| value.is_null()) {
        problems.at(
            value,
            format!("{key} is written but empty; give it a value or remove the key"),
        );
    }
}

fn read_action(value: &Value, kind: PolicyKind, problems: &Problems) -> Option<Action> {
    let text = problems.string(value)?;
    match text.parse() {
        Ok(Action::Allow) if kind == PolicyKind::Guardrail => {
            let hint = "guardrails only tighten: use deny or human_approval".to_owned();
            problems.at_with_hint(value, "a guardrail cannot allow", hint);
            None
        }
        Ok(action) => Some(action),
        Err(error) => {
            let error: super::super::UnknownAction = error;
            let hint = nearest::hint(text, Action::ALL.iter().map(|action| action.as_str()));
            problems.at_with_hint(value, error.to_string(), hint);
            None
        }
    }
}
