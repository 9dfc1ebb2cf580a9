//! Field paths of conditions.

use policy::PolicySet;
use policy::document::{Action, Field, Lists, Policy, Source, Step};
use tools::json::{Document, Limits};

use crate::grammar::{Asked, ask, asked};

/// The first line is a path, the rest are arguments.
///
/// # Panics
/// When a promise about paths does not hold.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (path, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let field: Field = match path.parse() {
        Ok(field) => field,
        Err(error) => {
            let error: policy::document::FieldError = error;
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(field.as_str(), path, "a path is written as it was read");
    let again: Field = field.as_str().parse().expect("a path that was read can be read again");
    assert_eq!(again, field);
    let sent = serde_json::to_string(&field).expect("a path can be sent");
    assert_eq!(serde_json::from_str::<Field>(&sent).expect("a sent path is read"), field);
    if let Field::Argument(path) = &field {
        assert!(!path.steps().is_empty() && path.steps().len() <= 32);
        let some = path.steps().iter().any(|step| matches!(step, Step::Some));
        assert_eq!(some, field.has_some());
    }
    decides(path, arguments);
}

/// A test and its negation are never both true, and what is missing is decided as `exists` says.
fn decides(path: &str, arguments: &str) {
    if Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).is_err() {
        return;
    }
    let mut call: Asked = asked();
    call.arguments = arguments.as_bytes().to_vec();
    let quoted = serde_json::to_string(path).expect("a text is JSON");
    let action = |operator: &str| {
        let text = format!(
            "name: p\nagent: \"*\"\nrules:\n  - action: deny\n    condition: {{\"field\": {quoted}, \"operator\": {operator}}}\n  - action: allow\n"
        );
        let policies = Policy::parse_all("fuzz.yaml", &text, &Source::Api, &Lists::none()).ok()?;
        let set = PolicySet::compile(policies.into_iter().map(Into::into));
        Some(ask(&call, &set).action)
    };
    let (Some(exists), Some(missing)) = (action("exists"), action("not_exists")) else {
        // YAML refuses some characters that a path may have.
        return;
    };
    assert!(
        [exists, missing].contains(&Action::Deny) || path.contains('['),
        "{path} neither exists nor does not in {arguments}"
    );
}
