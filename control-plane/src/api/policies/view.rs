//! What is there.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use net::problem::Problem;
use policy::Policy;
use policy::document::{Mode, PolicyKind, RateLimit, Rule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::input::{NoParams, Params, Segment};
use super::super::{page, text};
use crate::auth::Operator;
use crate::core::Core;
use crate::store::StoreError;
use crate::store::desired::{OriginKind, PolicyOrigin, PolicyRow};

#[derive(Debug, Serialize)]
struct Item<'a> {
    name: &'a str,
    agent: &'a [String],
    namespaces: &'a [String],
    kind: PolicyKind,
    mode: Mode,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_file: Option<&'a str>,
    version: u64,
    revision: String,
    updated_at: String,
    updated_by: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit: Option<RateLimit>,
    rules: Vec<Value>,
}

fn origin(origin: &PolicyOrigin) -> (&'static str, Option<&str>) {
    let file = match origin {
        PolicyOrigin::Directory { file, .. } => Some(file.as_str()),
        PolicyOrigin::Inline { .. } | PolicyOrigin::Api => None,
    };
    let name = match origin.kind() {
        OriginKind::Inline => "inline",
        OriginKind::Directory => "directory",
        OriginKind::Api => "api",
    };
    (name, file)
}

/// A row with what it says; a document that cannot be read denies its agents.
struct Read {
    row: PolicyRow,
    policy: Result<Policy, String>,
}

impl Read {
    fn new(row: PolicyRow) -> Self {
        let policy = Policy::from_sent(&row.document.body).map_err(|error| error.to_string());
        Self { row, policy }
    }

    fn item(&self) -> Item<'_> {
        let document = &self.row.document;
        let (origin, source_file) = origin(&document.origin);
        let policy = self.policy.as_ref().ok();
        let problems: Vec<String> = document
            .problem
            .iter()
            .chain(self.policy.as_ref().err())
            .cloned()
            .collect();
        Item {
            name: &document.name,
            agent: &document.agents,
            namespaces: &document.namespaces,
            kind: policy.map_or(PolicyKind::Standard, |policy| policy.kind),
            mode: policy.map_or(Mode::Enforce, |policy| policy.mode),
            origin,
            source_file,
            version: self.row.version,
            revision: self.row.revision.to_string(),
            updated_at: text::time(self.row.updated_at),
            updated_by: &self.row.updated_by,
            state: if problems.is_empty() { "valid" } else { "invalid" },
            problems,
            rate_limit: policy.and_then(|policy| policy.rate_limit),
            rules: policy.map(|policy| rules(&policy.rules)).unwrap_or_default(),
        }
    }
}

fn rules(rules: &[Rule]) -> Vec<Value> {
    let indexed = rules.iter().enumerate().map(|(index, rule)| {
        let mut value = serde_json::to_value(rule).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("index".to_owned(), json!(index));
        }
        value
    });
    indexed.collect()
}

/// Most specific first, equal ones in load order; what cannot be read comes first, since it denies.
fn in_order(rows: Vec<PolicyRow>) -> Vec<Read> {
    let mut read: Vec<Read> = rows.into_iter().map(Read::new).collect();
    read.sort_by_cached_key(|read| {
        let policy = read.policy.as_ref().ok();
        let best = policy.and_then(|policy| policy.agents.iter().map(policy::glob::Glob::specificity).max());
        let name = read.row.document.name.clone();
        (
            policy.is_some(),
            Reverse(best),
            policy.map(|policy| policy.origin.clone()),
            name,
        )
    });
    read
}

pub(in super::super) async fn list(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response, Problem> {
    let mut rows = core.store.policies().await?;
    rows.retain(|row| operator.reach().meets(&row.document.namespaces));
    let read = in_order(rows);
    let items: Vec<Item<'_>> = read.iter().map(Read::item).collect();
    Ok(Json(items).into_response())
}

pub(in super::super) async fn one(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let row = core.store.policy(&name).await?;
    if !operator.reach().meets(&row.document.namespaces) {
        return Err(not_there(name));
    }
    let read = Read::new(row);
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    let wants_yaml = accepted.is_some_and(|accept| accept.contains("yaml"));
    let mut response = if wants_yaml {
        let kind = [(header::CONTENT_TYPE, "application/yaml; charset=utf-8")];
        (kind, read.row.document.text.clone()).into_response()
    } else {
        let mut item = serde_json::to_value(read.item()).unwrap_or_default();
        if let Some(fields) = item.as_object_mut() {
            fields.insert("text".to_owned(), json!(read.row.document.text));
        }
        Json(item).into_response()
    };
    response
        .headers_mut()
        .insert(header::ETAG, etag(read.row.version));
    Ok(response)
}

/// There is no policy of this name, or none that concerns the operator.
pub(super) fn not_there(id: String) -> Problem {
    StoreError::NotFound { what: "policy", id }.into()
}

/// A version as clients send it back in `If-Match`.
pub(in super::super) fn etag(version: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct HistoryParams {
    limit: Option<u32>,
}

pub(in super::super) async fn versions(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(params): Params<HistoryParams>,
) -> Result<Json<Vec<Value>>, Problem> {
    let mut versions = core
        .store
        .policy_versions(&name, page::size(params.limit)?)
        .await?;
    versions.retain(|version| operator.reach().meets(&version.row.document.namespaces));
    if versions.is_empty() {
        return Err(not_there(name));
    }
    let shown = versions.into_iter().map(|version| {
        let row = version.row;
        json!({
            "version": row.version,
            "revision": row.revision.to_string(),
            "at": text::time(row.updated_at),
            "by": row.updated_by,
            "deleted": version.deleted,
            "text": row.document.text,
        })
    });
    Ok(Json(shown.collect()))
}
