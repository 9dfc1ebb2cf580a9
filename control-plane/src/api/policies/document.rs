//! A policy document out of a request.

use std::sync::Arc;

use axum::body::Bytes;
use http::{HeaderMap, StatusCode, header};
use net::problem::Problem;
use policy::Policy;
use policy::document::{Lists, Source};
use policy::yaml;
use serde::Deserialize;

use super::super::input;
use crate::store::desired::Expected;

/// A document as it was sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    pub(super) text: String,
    pub(super) by: Option<String>,
}

/// Reads YAML, or JSON that holds it.
pub(super) fn sent(headers: &HeaderMap, bytes: &Bytes) -> Result<Sent, Problem> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let is_json = match kind {
        Some(kind) => kind.to_ascii_lowercase().contains("json"),
        None => bytes.trim_ascii_start().starts_with(b"{"),
    };
    if is_json {
        return input::read(bytes);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Problem::bad_request(format!("the document is not UTF-8: {error}")))?;
    if text.contains('\0') {
        return Err(Problem::bad_request("the document holds a NUL character"));
    }
    Ok(Sent {
        text: text.to_owned(),
        by: None,
    })
}

/// All policies of a text.
pub(super) fn parse(file: &str, text: &str, lists: &Lists) -> Result<Vec<Policy>, Vec<yaml::Problem>> {
    let policies = Policy::parse_all(file, text, &Source::Api, lists)?;
    if policies.is_empty() {
        return Err(vec![problem(
            file,
            "",
            "there is no policy in the document",
            None,
        )]);
    }
    Ok(policies)
}

/// The one policy of a text, which has to have this name.
pub(super) fn parse_one(name: &str, text: &str, lists: &Lists) -> Result<Policy, Problem> {
    let file = format!("{name}.yaml");
    let mut policies = parse(&file, text, lists).map_err(invalid)?;
    match (policies.pop(), policies.len()) {
        (Some(policy), 0) if policy.name.as_str() == name => Ok(policy),
        (Some(policy), 0) => {
            let message = format!(
                "the document is named {:?}, the path names {name:?}",
                policy.name.as_str()
            );
            let hint = "a policy keeps its name: put the document under it".to_owned();
            Err(invalid(vec![problem(&file, "name", &message, Some(hint))]))
        }
        (_, others) => {
            let message = format!("the text holds {} documents", others + 1);
            let hint = "put each under its own name".to_owned();
            Err(invalid(vec![problem(&file, "", &message, Some(hint))]))
        }
    }
}

fn problem(file: &str, path: &str, message: &str, hint: Option<String>) -> yaml::Problem {
    yaml::Problem {
        file: Arc::from(file),
        line: 0,
        column: 0,
        path: path.to_owned(),
        message: message.to_owned(),
        hint,
    }
}

/// 422 with everything that is wrong.
fn invalid(problems: Vec<yaml::Problem>) -> Problem {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    let detail = match problems.len() {
        0 | 1 => format!("the policy is not valid: {first}"),
        count => format!(
            "the policy is not valid: {first} (and {} more problems)",
            count - 1
        ),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with("problems", problems)
}

/// What the caller believes to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Belief {
    /// As the store takes it.
    Is(Expected),
    /// Some version, whichever.
    Exists,
}

/// Reads `If-Match` and `If-None-Match`.
pub(in super::super) fn belief(headers: &HeaderMap) -> Result<Belief, Problem> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default().trim())
    };
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(Belief::Is(Expected::Any)),
        (None, Some("*")) => Ok(Belief::Is(Expected::Absent)),
        (Some("*"), None) => Ok(Belief::Exists),
        (Some(tag), None) => tag
            .trim_start_matches("W/")
            .trim_matches('"')
            .parse::<u64>()
            .ok()
            .filter(|version| (1..=input::MAX_NUMBER).contains(version))
            .map(|version| Belief::Is(Expected::Version(version)))
            .ok_or_else(|| {
                Problem::bad_request("If-Match is the version as the ETag showed it, such as \"3\"")
            }),
        (None, Some(_)) | (Some(_), Some(_)) => Err(Problem::bad_request(
            "send If-Match: \"<version>\" to change a version, or If-None-Match: * to create",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: http::HeaderName, value: &'static str) -> Result<Belief, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        belief(&headers).map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn a_condition_is_a_version_or_absence() {
        assert_eq!(
            of(header::IF_MATCH, "\"3\""),
            Ok(Belief::Is(Expected::Version(3)))
        );
        assert_eq!(of(header::IF_MATCH, "3"), Ok(Belief::Is(Expected::Version(3))));
        assert_eq!(of(header::IF_NONE_MATCH, "*"), Ok(Belief::Is(Expected::Absent)));
        assert_eq!(of(header::IF_MATCH, "*"), Ok(Belief::Exists));
        for wrong in ["\"x\"", "\"0\"", "-1", "18446744073709551615", "\"1\", \"2\""] {
            assert_eq!(of(header::IF_MATCH, wrong), Err(400), "{wrong}");
        }
        assert_eq!(of(header::IF_NONE_MATCH, "\"1\""), Err(400));
    }
}
