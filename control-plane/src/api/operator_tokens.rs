//! Tokens of operators: roles for people and pipelines that have no identity provider.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::input::{Body, NoParams, Params, Segment, lifetime, namespace};
use super::refusal::internal;
use super::sidecars::by_prefix;
use super::text;
use crate::auth::{OPERATOR_TOKEN, Operator, Reach, Role, is_reserved};
use crate::core::Core;
use crate::keys::hex;
use crate::store::operator_tokens::{OperatorToken, OperatorTokenDraft};

/// The longest that a token opens anything.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3_600);
const MOST_NAMESPACES: usize = 256;

#[derive(Debug, Serialize)]
pub(super) struct TokenItem {
    id: String,
    /// The token itself; shown once, when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    name: String,
    role: String,
    /// Empty: all.
    namespaces: Vec<String>,
    created_at: String,
    created_by: String,
    expires_at: String,
}

impl TokenItem {
    fn new(token: OperatorToken) -> Self {
        Self {
            id: token.id,
            token: None,
            name: token.name,
            role: token.role,
            namespaces: token.namespaces,
            created_at: text::time(token.created_at),
            created_by: token.created_by,
            expires_at: text::time(token.expires_at),
        }
    }
}

/// Those that lie within the operator's own reach.
async fn visible(core: &Core, operator: &Operator) -> Result<Vec<OperatorToken>, Problem> {
    let mut tokens = core.store.operator_tokens().await?;
    tokens.retain(|token| operator.reach().includes(&Reach::of(&token.namespaces)));
    Ok(tokens)
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Vec<TokenItem>>, Problem> {
    let tokens = visible(&core, &operator).await?;
    Ok(Json(tokens.into_iter().map(TokenItem::new).collect()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    name: String,
    role: Role,
    #[serde(default)]
    namespaces: Vec<String>,
    ttl: Option<String>,
}

pub(super) async fn create(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<TokenItem>), Problem> {
    if new.namespaces.len() > MOST_NAMESPACES {
        return Err(Problem::bad_request(format!(
            "namespaces: at most {MOST_NAMESPACES}"
        )));
    }
    let mut namespaces = new
        .namespaces
        .iter()
        .map(|name| namespace(name))
        .collect::<Result<Vec<_>, _>>()?;
    if let (true, Some(own)) = (namespaces.is_empty(), operator.reach().namespaces()) {
        namespaces = own.to_vec();
    }
    if !operator.reach().includes(&Reach::of(&namespaces)) {
        return Err(Problem::forbidden(
            "a token reaches no further than the credential that makes it",
        ));
    }
    let secret = hex::random_secret().map_err(|error| internal(&error))?;
    let secret = format!("{OPERATOR_TOKEN}{secret}");
    let by = operator.by(None)?;
    let draft = OperatorTokenDraft {
        hash: crate::grpc::digest(&secret),
        name: name(&new.name)?,
        role: new.role.name().to_owned(),
        namespaces,
        lifetime: lifetime("ttl", "a token", new.ttl.as_deref().unwrap_or("90d"), LONGEST)?,
        created_by: by.clone(),
    };
    let details = json!({
        "name": draft.name, "role": draft.role, "namespaces": draft.namespaces, "ttl": new.ttl,
    });
    let act = operator.act("mesh.token_create", &by, details);
    let mut item = TokenItem::new(core.store.create_operator_token(draft, act).await?);
    item.token = Some(secret);
    Ok((StatusCode::CREATED, Json(item)))
}

fn name(text: &str) -> Result<String, Problem> {
    let name = text.trim();
    if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
        return Err(Problem::bad_request(
            "name: whose token it is, in 1 to 256 bytes without control characters",
        ));
    }
    if is_reserved(name) {
        return Err(Problem::bad_request(format!(
            "name: {name:?} is taken; choose another"
        )));
    }
    Ok(name.to_owned())
}

pub(super) async fn revoke(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<TokenItem>, Problem> {
    let by = operator.by(None)?;
    let tokens = visible(&core, &operator).await?;
    let token = by_prefix("token", &id, tokens, |token| &token.id)?;
    let details = json!({"token": token.id, "name": token.name, "role": token.role});
    let act = operator.act("mesh.token_revoke", &by, details);
    core.store.revoke_operator_token(&token.id, act).await?;
    Ok(Json(TokenItem::new(token)))
}
