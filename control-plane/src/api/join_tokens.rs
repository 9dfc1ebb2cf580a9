//! Join tokens, by which sidecars enrol.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::input::{Body, NoParams, Params, Segment, glob, lifetime, namespace, prose};
use super::refusal::internal;
use super::sidecars::by_prefix;
use super::text;
use crate::auth::Operator;
use crate::core::Core;
use crate::keys::hex;
use crate::store::sidecars::{JoinToken, JoinTokenDraft};

/// The longest that a join token can be used.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);
const MOST_PATTERNS: usize = 256;

#[derive(Debug, Serialize)]
pub(super) struct TokenItem {
    id: String,
    /// The token itself; shown once, when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    label: String,
    namespace: String,
    agents: Vec<String>,
    upstreams: Vec<String>,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    uses: Option<u32>,
}

impl TokenItem {
    fn new(token: JoinToken) -> Self {
        Self {
            id: token.id,
            token: None,
            label: token.label,
            namespace: token.namespace,
            agents: token.agents,
            upstreams: token.upstreams,
            created_at: text::time(token.created_at),
            created_by: token.created_by,
            expires_at: token.expires_at.map(text::time),
            uses: token.uses_left,
        }
    }
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Vec<TokenItem>>, Problem> {
    let mut tokens = core.store.join_tokens().await?;
    tokens.retain(|token| operator.reach().covers(&token.namespace));
    Ok(Json(tokens.into_iter().map(TokenItem::new).collect()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    namespace: Option<String>,
    agents: Option<Vec<String>>,
    upstreams: Option<Vec<String>>,
    ttl: Option<String>,
    uses: Option<u32>,
    label: Option<String>,
    by: Option<String>,
}

pub(super) async fn create(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<TokenItem>), Problem> {
    let secret = hex::random_secret().map_err(|error| internal(&error))?;
    let ttl = new.ttl.as_deref().unwrap_or("1h");
    let draft = JoinTokenDraft {
        hash: crate::grpc::digest(&secret),
        label: prose("label", new.label)?,
        namespace: namespace(&operator.reach().choose(new.namespace, "default")?)?,
        agents: patterns("agents", new.agents)?,
        upstreams: patterns("upstreams", new.upstreams)?,
        lifetime: Some(lifetime("ttl", "a join token", ttl, LONGEST)?),
        uses: match new.uses {
            Some(0) => return Err(Problem::bad_request("uses must be at least 1")),
            other => Some(other.unwrap_or(1)),
        },
        created_by: operator.by(new.by.as_deref())?,
    };
    let details = json!({
        "label": draft.label, "agents": draft.agents, "upstreams": draft.upstreams, "uses": draft.uses,
        "ttl": new.ttl,
    });
    let act = operator
        .act("mesh.join_token_create", &draft.created_by, details)
        .in_namespace(&draft.namespace);
    let mut item = TokenItem::new(core.store.create_join_token(draft, act).await?);
    item.token = Some(secret);
    Ok((StatusCode::CREATED, Json(item)))
}

fn patterns(what: &str, given: Option<Vec<String>>) -> Result<Vec<String>, Problem> {
    let patterns = given.unwrap_or_else(|| vec!["*".to_owned()]);
    if patterns.len() > MOST_PATTERNS {
        return Err(Problem::bad_request(format!(
            "{what}: at most {MOST_PATTERNS} patterns"
        )));
    }
    for pattern in &patterns {
        glob(what, pattern)?;
    }
    Ok(patterns)
}

pub(super) async fn revoke(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<TokenItem>, Problem> {
    let by = operator.by(None)?;
    let mut tokens = core.store.join_tokens().await?;
    tokens.retain(|token| operator.reach().covers(&token.namespace));
    let token = by_prefix("join token", &id, tokens, |token| &token.id)?;
    let act = operator
        .act(
            "mesh.join_token_revoke",
            &by,
            json!({"token": token.id, "label": token.label}),
        )
        .in_namespace(&token.namespace);
    core.store.revoke_join_token(&token.id, act).await?;
    Ok(Json(TokenItem::new(token)))
}
