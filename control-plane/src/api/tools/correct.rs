//! Operators correct what is known of a tool.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use net::problem::Problem;
use serde_json::{Map, Value, json};

use super::super::input::{Body, Params, Segment};
use super::super::policies::{Belief, belief};
use super::super::refusal::internal;
use super::catalogue::{Place, shown};
use super::known::{self, Known};
use super::said::Said;
use crate::auth::Operator;
use crate::core::Core;
use crate::keys::hex;
use crate::store::corrections::CorrectionDraft;
use crate::store::desired::Expected;

/// `PATCH /tools/{tool}`: what is left out stays, `null` takes away.
pub(in super::super) async fn correct(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(place): Params<Place>,
    headers: HeaderMap,
    Body(mut changes): Body<Map<String, Value>>,
) -> Result<Response, Problem> {
    let by = operator.by(text(&mut changes, "by")?.as_deref())?;
    let namespace = text(&mut changes, "namespace")?.or(place.namespace);
    if changes.is_empty() {
        return Err(Problem::bad_request(
            "nothing is corrected: give side_effect, mapping, target_extractor, risk_tags, compliance_tags or lifecycle_state",
        ));
    }
    let known = known::one(&core, &name, namespace.as_deref()).await?;
    let said = known.said.changed(changes)?;
    put(&core, &operator, &by, known, said, belief(&headers)?).await
}

/// A text of the body that is no correction.
fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Problem> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::bad_request(format!("{name} is a text"))),
    }
}

/// Stores what is said of a tool, and shows the tool as it then is.
pub(super) async fn put(
    core: &Arc<Core>,
    operator: &Operator,
    by: &str,
    known: Known,
    said: Said,
    belief: Belief,
) -> Result<Response, Problem> {
    operator
        .reach()
        .find(&known.row.namespace, "tool", &known.row.name)?;
    let stored = known.correction.as_ref();
    if let Some(row) = stored
        && Said::stored(&row.correction.said).is_err()
    {
        return Err(Problem::conflict(
            "what is stored of this tool was written by another build and cannot be read here; correct it there",
        ));
    }
    let expected = match (belief, stored) {
        // Merged into this version, so it must be this version still.
        (Belief::Is(Expected::Any) | Belief::Exists, Some(row)) => Expected::Version(row.version),
        (Belief::Is(Expected::Any), None) => Expected::Absent,
        (Belief::Is(expected), _) => expected,
        (Belief::Exists, None) => {
            return Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "nothing is corrected about this tool yet",
            ));
        }
    };
    let newest = known
        .row
        .seen
        .first()
        .map(|seen| seen.fingerprint)
        .unwrap_or_default();
    let as_json = |said: &Said| serde_json::to_value(said).map_err(|error| internal(&error));
    let details = json!({
        "tool": known.row.name,
        "fingerprint": hex::encode(&newest),
        "before": as_json(&known.said)?,
        "after": as_json(&said)?,
    });
    let act = operator
        .act("mesh.tool_correct", by, details)
        .in_namespace(&known.row.namespace);
    let draft = CorrectionDraft {
        namespace: known.row.namespace.clone(),
        tool: known.row.name.clone(),
        upstream: known.row.upstream.clone(),
        fingerprint: newest,
        said: as_json(&said)?,
        sent: serde_json::to_value(said.correction()).map_err(|error| internal(&error))?,
    };
    let row = core.store.put_correction(draft, expected, act).await?;
    let correction = (row.version > 0).then_some(row);
    match Known::new(known.row, correction) {
        Some(known) => shown(core, known).await,
        None => Err(Problem::internal()),
    }
}
