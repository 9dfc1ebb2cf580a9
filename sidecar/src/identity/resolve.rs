//! From the headers of a request to an identity.

use http::{HeaderMap, StatusCode, header};
use tools::id::AgentId;

use super::{ANONYMOUS, AgentScope, Coverage, Identity, LaunchKey, Strength};

/// Why a caller is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// No credential where one is required.
    #[error("this sidecar serves no anonymous callers; send \"Authorization: Bearer agent:<id>\"")]
    Required,
    /// The `Authorization` header cannot be read as one bearer credential.
    #[error(
        "the Authorization header is not one Bearer credential; send \"Authorization: Bearer agent:<id>\""
    )]
    Unreadable,
    /// A token that nothing here can verify.
    #[error("this sidecar has no verifier for tokens; send \"Authorization: Bearer agent:<id>\"")]
    Unverifiable,
    /// The agent id is not a valid name.
    #[error("the agent id of the credential is not valid: {0}")]
    Name(#[from] tools::id::IdError),
    /// The caller is fixed at launch, and the credential names another agent.
    #[error("this entrance belongs to agent {bound:?}; the credential names another agent")]
    Bound {
        /// The agent that the entrance is fixed to.
        bound: AgentId,
    },
    /// The request claims to come from a launched process, and does not prove it.
    #[error(
        "the launch proof is not valid: `toolgate mcp` and `toolgate up` must use the same --data-dir and run as the same user"
    )]
    Launch,
    /// The sidecar may not speak for this agent.
    #[error(
        "agent {agent:?} is outside what this sidecar's credential covers; enrol it with a token that allows this agent"
    )]
    OutOfScope {
        /// The agent.
        agent: AgentId,
    },
    /// The sidecar has no credential yet, so it can speak for nobody.
    #[error("this sidecar has not enrolled with its control plane yet; try again in a moment")]
    NotEnrolled,
}

impl IdentityError {
    /// The status of the answer: 401 for who is not authenticated, 403 for who is and is not served here, 503 while nobody
    /// can be.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::OutOfScope { .. } => StatusCode::FORBIDDEN,
            Self::NotEnrolled => StatusCode::SERVICE_UNAVAILABLE,
            Self::Required
            | Self::Unreadable
            | Self::Unverifiable
            | Self::Name(_)
            | Self::Launch
            | Self::Bound { .. } => StatusCode::UNAUTHORIZED,
        }
    }
}

/// How callers of one entrance are identified.
#[derive(Debug, Clone)]
pub struct Identities {
    bound: Option<AgentId>,
    launch_key: Option<LaunchKey>,
    require_authentication: bool,
}

impl Identities {
    /// `bound` fixes the entrance to one agent. `require_authentication` refuses callers without a credential.
    pub fn new(bound: Option<AgentId>, require_authentication: bool) -> Self {
        Self {
            bound,
            launch_key: None,
            require_authentication,
        }
    }

    /// Also serves processes that prove by this key which agent they were launched for.
    #[must_use]
    pub fn with_launch_key(self, launch_key: Option<LaunchKey>) -> Self {
        Self { launch_key, ..self }
    }

    /// Who calls, by the request's headers.
    ///
    /// # Errors
    /// When there is no acceptable credential, or `scope` does not cover the agent.
    pub fn resolve(&self, headers: &HeaderMap, scope: &AgentScope) -> Result<Identity, IdentityError> {
        let launched = self
            .launch_key
            .as_ref()
            .map(|key| key.agent(headers))
            .transpose()?
            .flatten();
        let bound = launched.as_ref().or(self.bound.as_ref());
        let identity = match (bound, asserted_agent(headers)?) {
            (Some(bound), None) => named(bound.clone(), Strength::Bound),
            (Some(bound), Some(claimed)) if *bound == claimed => named(claimed, Strength::Bound),
            (Some(bound), Some(_)) => {
                return Err(IdentityError::Bound { bound: bound.clone() });
            }
            (None, Some(claimed)) => named(claimed, Strength::Asserted),
            (None, None) if self.require_authentication => return Err(IdentityError::Required),
            (None, None) => named(AgentId::try_from(ANONYMOUS)?, Strength::Anonymous),
        };
        within(identity, scope)
    }

    /// The identity for a request body that names `agent` itself, which plaintext identity may do.
    ///
    /// # Errors
    /// When `scope` does not cover the agent.
    pub fn asserted(agent: AgentId, scope: &AgentScope) -> Result<Identity, IdentityError> {
        within(named(agent, Strength::Asserted), scope)
    }
}

fn named(agent: AgentId, strength: Strength) -> Identity {
    Identity {
        agent,
        strength,
        user: None,
    }
}

fn within(identity: Identity, scope: &AgentScope) -> Result<Identity, IdentityError> {
    match scope.covers(&identity.agent) {
        Coverage::Covered => Ok(identity),
        Coverage::Unknown => Err(IdentityError::NotEnrolled),
        Coverage::Outside => Err(IdentityError::OutOfScope {
            agent: identity.agent,
        }),
    }
}

/// The agent that the credential claims; `None` without a credential.
fn asserted_agent(headers: &HeaderMap) -> Result<Option<AgentId>, IdentityError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let credential = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => one.to_str().map_err(|_| IdentityError::Unreadable)?,
        (Some(_), Some(_)) => return Err(IdentityError::Unreadable),
    };
    let (scheme, token) = credential
        .trim()
        .split_once(' ')
        .ok_or(IdentityError::Unreadable)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(IdentityError::Unreadable);
    }
    let agent = token
        .trim()
        .strip_prefix("agent:")
        .ok_or(IdentityError::Unverifiable)?;
    Ok(Some(AgentId::try_from(agent)?))
}
