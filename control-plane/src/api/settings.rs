//! What the fleet decides for every sidecar, and new generations.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use net::problem::Problem;
use proto::body::{FLEET, FleetSettings};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::input::{Body, NoParams, Params, prose};
use super::policies::{Belief, belief, etag};
use super::refusal::internal;
use crate::auth::Operator;
use crate::core::Core;
use crate::store::desired::{Expected, SettingRow};

/// The longest time that a setting may name: a year.
const LONGEST_MS: u64 = 365 * 24 * 3_600 * 1_000;
/// Agents' clients give up when an MCP call waits longer.
const LONGEST_WAIT_MS: u64 = 10_000;

pub(super) async fn fleet(
    State(core): State<Arc<Core>>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response, Problem> {
    answer(core.store.setting(FLEET).await?)
}

fn answer(row: Option<SettingRow>) -> Result<Response, Problem> {
    let settings = read(row.as_ref())?;
    let mut response = Json(settings).into_response();
    if let Some(row) = row {
        response.headers_mut().insert(header::ETAG, etag(row.version));
    }
    Ok(response)
}

fn read(row: Option<&SettingRow>) -> Result<FleetSettings, Problem> {
    row.map_or_else(
        || Ok(FleetSettings::default()),
        |row| serde_json::from_value(row.body.clone()).map_err(|error| internal(&error)),
    )
}

/// What is left out of the body stays as it is.
pub(super) async fn put_fleet(
    State(core): State<Arc<Core>>,
    operator: Operator,
    headers: HeaderMap,
    Body(changes): Body<Map<String, Value>>,
) -> Result<Response, Problem> {
    let row = core.store.setting(FLEET).await?;
    let before = serde_json::to_value(read(row.as_ref())?).map_err(|error| internal(&error))?;
    let after = changed(&before, changes)?;
    let expected = match (belief(&headers)?, &row) {
        // Merged into this version, so it must be this version still.
        (Belief::Is(Expected::Any) | Belief::Exists, Some(row)) => Expected::Version(row.version),
        (Belief::Is(Expected::Any), None) => Expected::Absent,
        (Belief::Is(expected), _) => expected,
        (Belief::Exists, None) => {
            return Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "there are no settings yet",
            ));
        }
    };
    let by = operator.by(None)?;
    let details = json!({"key": FLEET, "before": before, "value": after});
    let act = operator.act("mesh.settings", &by, details);
    let row = core.store.put_setting(FLEET, after, expected, act).await?;
    answer(Some(row))
}

fn changed(before: &Value, changes: Map<String, Value>) -> Result<Value, Problem> {
    let mut fields = before.as_object().cloned().unwrap_or_default();
    for (name, value) in changes {
        if !fields.contains_key(&name) {
            let known: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(Problem::bad_request(format!(
                "`{name}` is no setting; the settings are {}",
                known.join(", ")
            )));
        }
        fields.insert(name, value);
    }
    let settings: FleetSettings = serde_json::from_value(Value::Object(fields))
        .map_err(|error| Problem::bad_request(format!("the settings are not as expected: {error}")))?;
    check(&settings)?;
    serde_json::to_value(settings).map_err(|error| internal(&error))
}

fn check(settings: &FleetSettings) -> Result<(), Problem> {
    let times = [
        ("staleness_write_ms", settings.staleness_write_ms),
        ("staleness_read_ms", settings.staleness_read_ms),
        ("approval_timeout_ms", settings.approval_timeout_ms),
        ("approval_ttl_ms", settings.approval_ttl_ms),
    ];
    let wrong = times
        .iter()
        .find(|(_, millis)| !(1_000..=LONGEST_MS).contains(millis));
    let problem = if let Some((name, _)) = wrong {
        format!("{name}: from 1000 (a second) to {LONGEST_MS} (a year)")
    } else if settings.staleness_write_ms > settings.staleness_read_ms {
        "staleness_write_ms must not be longer than staleness_read_ms: what writes ends first".to_owned()
    } else if settings.approval_wait_ms > LONGEST_WAIT_MS {
        format!("approval_wait_ms: at most {LONGEST_WAIT_MS}")
    } else if settings.approval_rest_hold_ms > LONGEST_MS {
        format!("approval_rest_hold_ms: at most {LONGEST_MS}")
    } else if settings.approval_max_pending == 0 {
        "approval_max_pending must be at least 1".to_owned()
    } else if settings.loop_plain_reads == 0 || settings.loop_others == 0 {
        "loop_plain_reads and loop_others must be at least 1".to_owned()
    } else if !["full", "redacted", "digest"].contains(&settings.params.as_str()) {
        "params is full, redacted or digest".to_owned()
    } else {
        return Ok(());
    };
    Err(Problem::bad_request(problem))
}

/// How long the view here may take to follow; the answer is as true without it.
const FOLLOWS: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begin {
    reason: String,
    by: Option<String>,
}

/// The operator's word that commits may have been lost: everybody syncs in full.
pub(super) async fn begin_generation(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Body(begin): Body<Begin>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let reason = prose("reason", Some(begin.reason))?;
    if reason.trim().is_empty() {
        return Err(Problem::bad_request("reason: say why; it stays in the chain"));
    }
    let by = operator.by(begin.by.as_deref())?;
    let seen = core.store.head().await?.revision.generation;
    let revision = core.store.begin_generation(seen, &reason, &by).await?;
    tracing::warn!(%reason, %by, generation = revision.generation, "an operator began a new generation");
    core.hub.reaches(revision, FOLLOWS).await;
    Ok((
        StatusCode::CREATED,
        Json(json!({"revision": revision.to_string()})),
    ))
}
