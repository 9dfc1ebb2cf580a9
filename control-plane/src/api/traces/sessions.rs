//! Sessions: the calls of one agent conversation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::Uri;
use net::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::input::{Params, Segment, revision};
use super::super::{page, text};
use super::TraceItem;
use crate::core::Core;
use crate::store::StoreError;
use crate::store::records::{ChainPosition, RecordFilter};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Filter {
    namespace: Option<String>,
    limit: Option<u32>,
}

pub(in super::super) async fn sessions(
    State(core): State<Arc<Core>>,
    Params(filter): Params<Filter>,
) -> Result<Json<Vec<Value>>, Problem> {
    let limit = page::size(filter.limit)?;
    let rows = core.store.sessions(filter.namespace.as_deref(), limit).await?;
    let shown = rows.into_iter().map(|row| {
        json!({
            "session_id": row.session,
            "agent_id": row.agent,
            "user_id": text::filled(&row.user),
            "namespace": row.namespace,
            "event_count": row.records,
            "first_seen": text::time(row.first_seen),
            "last_seen": text::time(row.last_seen),
            "tools": row.tools,
        })
    });
    Ok(Json(shown.collect()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Part {
    namespace: Option<String>,
    agent: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

/// The records of one session, newest first.
pub(in super::super) async fn session(
    State(core): State<Arc<Core>>,
    uri: Uri,
    Segment(id): Segment,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let size = page::size(part.limit)?;
    let before = part.cursor.as_deref().map(revision).transpose()?;
    let mut records = core
        .store
        .records(RecordFilter {
            namespace: part.namespace,
            agent: part.agent,
            session: Some(id.clone()),
            before: before.map(|place| ChainPosition {
                generation: place.generation,
                seq: place.number,
            }),
            limit: size + 1,
            ..RecordFilter::default()
        })
        .await?;
    if records.is_empty() && before.is_none() {
        return Err(StoreError::NotFound { what: "session", id }.into());
    }
    let next = page::page(&uri, size, &mut records, |record| {
        format!("{}.{}", record.at.generation, record.at.seq)
    });
    let items: Vec<TraceItem> = records.iter().map(TraceItem::new).collect();
    Ok(page::answer(&items, next))
}
