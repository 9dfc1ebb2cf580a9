//! Records, newest first, the calls that still wait before them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Uri};
use net::problem::Problem;
use serde::Deserialize;

use super::super::input::{NoParams, Params, Segment, glob, revision, time};
use super::super::page;
use super::TraceItem;
use super::item::namespace_of;
use crate::auth::Operator;
use crate::core::Core;
use crate::store::StoreError;
use crate::store::approvals::{Approval, ApprovalFilter, ApprovalStatus};
use crate::store::records::{ChainPosition, RecordFilter};

/// Calls that wait and are looked through.
const PENDING: u32 = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Filter {
    limit: Option<u32>,
    cursor: Option<String>,
    namespace: Option<String>,
    agent: Option<String>,
    user: Option<String>,
    session: Option<String>,
    tool: Option<String>,
    upstream: Option<String>,
    action: Option<String>,
    outcome: Option<String>,
    risk: Option<String>,
    kind: Option<String>,
    since: Option<String>,
    until: Option<String>,
    text: Option<String>,
}

impl Filter {
    fn records(&self, limit: u32) -> Result<RecordFilter, Problem> {
        let at = |what, text: &Option<String>| text.as_deref().map(|text| time(what, text)).transpose();
        if let Some(tool) = &self.tool {
            glob("tool", tool)?;
        }
        let (since, until) = (at("since", &self.since)?, at("until", &self.until)?);
        if self.text.is_some() && since.is_none() {
            return Err(Problem::bad_request(
                "text is searched within a range of time: give `since` too",
            ));
        }
        Ok(RecordFilter {
            namespace: self.namespace.clone(),
            agent: self.agent.clone(),
            user: self.user.clone(),
            session: self.session.clone(),
            tool: self.tool.clone(),
            upstream: self.upstream.clone(),
            action: self.action.clone(),
            outcome: self.outcome.clone(),
            risk: self.risk.clone(),
            kind: self.kind.clone(),
            since,
            until,
            text: self.text.clone(),
            before: self.cursor.as_deref().map(position).transpose()?,
            limit,
        })
    }

    /// Whether calls that wait can be among what is asked for.
    fn wants_pending(&self) -> bool {
        let is_or_none =
            |asked: &Option<String>, value: &str| asked.as_deref().is_none_or(|asked| asked == value);
        self.cursor.is_none()
            && self.risk.is_none()
            && self.text.is_none()
            && is_or_none(&self.outcome, "pending")
            && is_or_none(&self.action, "human_approval")
            && is_or_none(&self.kind, "call")
    }

    fn fits(&self, approval: &Approval, records: &RecordFilter) -> bool {
        let binding = &approval.asked.binding;
        let is = |asked: &Option<String>, value: &str| asked.as_deref().is_none_or(|asked| asked == value);
        is(&self.agent, &binding.agent)
            && is(&self.user, &binding.user)
            && is(&self.session, &binding.session)
            && records.since.is_none_or(|since| approval.created_at >= since)
            && records.until.is_none_or(|until| approval.created_at < until)
    }
}

/// A place in the chain as cursors write it.
fn position(text: &str) -> Result<ChainPosition, Problem> {
    let place = revision(text).map_err(|_| Problem::bad_request("the cursor is not one that a page gave"))?;
    Ok(ChainPosition {
        generation: place.generation,
        seq: place.number,
    })
}

async fn pending(core: &Core, wanted: ApprovalFilter) -> Result<Vec<Approval>, Problem> {
    let filter = ApprovalFilter {
        status: Some(ApprovalStatus::Pending),
        limit: PENDING,
        ..wanted
    };
    Ok(core.store.approvals(filter).await?)
}

pub(in super::super) async fn list(
    State(core): State<Arc<Core>>,
    uri: Uri,
    Params(filter): Params<Filter>,
) -> Result<Response, Problem> {
    let size = page::size(filter.limit)?;
    let wanted = filter.records(size + 1)?;
    // First what waits: a call that ends in between is then seen twice rather than never.
    let mut items = Vec::new();
    if filter.wants_pending() {
        let now = core.primary.database_now();
        let waiting = pending(
            &core,
            ApprovalFilter {
                namespace: filter.namespace.clone(),
                tool: filter.tool.clone(),
                upstream: filter.upstream.clone(),
                ..ApprovalFilter::default()
            },
        )
        .await?;
        let fitting = waiting.iter().filter(|approval| filter.fits(approval, &wanted));
        let shown = usize::try_from(size).unwrap_or(usize::MAX);
        items.extend(
            fitting
                .take(shown)
                .map(|approval| TraceItem::pending(approval, now)),
        );
    }
    let mut next: Option<HeaderValue> = None;
    let left = size.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
    if filter.outcome.as_deref() != Some("pending") && left > 0 {
        let limit = left + 1;
        let mut records = core.store.records(RecordFilter { limit, ..wanted }).await?;
        next = page::page(&uri, left, &mut records, |record| {
            format!("{}.{}", record.at.generation, record.at.seq)
        });
        items.extend(records.iter().map(TraceItem::new));
    }
    Ok(page::answer(&items, next))
}

pub(in super::super) async fn one(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response, Problem> {
    match core.store.record(&id).await {
        Ok(record) => {
            operator.reach().find(&namespace_of(&record), "record", &id)?;
            Ok(Json(TraceItem::new(&record)).into_response())
        }
        Err(StoreError::NotFound { what, id }) => {
            let waiting = pending(&core, ApprovalFilter::default()).await?;
            let found = waiting.iter().find(|approval| {
                approval.asked.call_id == id && operator.reach().covers(&approval.asked.namespace)
            });
            match found {
                Some(approval) => {
                    Ok(Json(TraceItem::pending(approval, core.primary.database_now())).into_response())
                }
                None => Err(StoreError::NotFound { what, id }.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}
