//! From what a request shows to an identity.

use http::{HeaderMap, StatusCode};
use net::serve::PeerCertificates;
use net::tls::{NameError, holder};
use net::token::TokenError;
use tools::id::AgentId;

use super::credential::Credential;
use super::{ANONYMOUS, AgentScope, Coverage, Identity, LaunchKey, Proofs, Strength};

/// Why a caller is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// No credential where one is required.
    #[error("this sidecar serves no anonymous callers; send a credential as \"Authorization: Bearer …\"")]
    Required,
    /// The `Authorization` header cannot be read as one bearer credential.
    #[error("the Authorization header is not one Bearer credential; send \"Authorization: Bearer …\" once")]
    Unreadable,
    /// A token that nothing here can verify.
    #[error("this sidecar has no verifier for tokens; send \"Authorization: Bearer agent:<id>\"")]
    Unverifiable,
    /// A token that proves nothing.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// The token is of the cluster, and not of a service account.
    #[error("the token's subject is not a service account (system:serviceaccount:<namespace>:<name>)")]
    NotAServiceAccount,
    /// The token or certificate names what callers without a credential are called.
    #[error("the credential names the agent \"anonymous\", which is who shows none")]
    Reserved,
    /// A plaintext agent where agents prove who they are.
    #[error("a plain agent:<id> is not accepted here; send a token of the identity provider")]
    Plain,
    /// The client certificate names nobody.
    #[error("{0}")]
    Certificate(#[from] NameError),
    /// The client certificate names another agent than the plaintext credential.
    #[error("the client certificate names another agent than the Authorization header; leave that out")]
    OtherCertificate,
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
            Self::NotEnrolled | Self::Token(TokenError::NotReady) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Required
            | Self::Unreadable
            | Self::Unverifiable
            | Self::Token(_)
            | Self::NotAServiceAccount
            | Self::Reserved
            | Self::Plain
            | Self::Certificate(_)
            | Self::OtherCertificate
            | Self::Name(_)
            | Self::Launch
            | Self::Bound { .. } => StatusCode::UNAUTHORIZED,
        }
    }

    /// Whether a credential was shown and refused: not where none was, and not while none can be judged.
    pub fn refuses_a_credential(&self) -> bool {
        *self != Self::Required && self.status() != StatusCode::SERVICE_UNAVAILABLE
    }
}

/// How callers of one entrance are identified.
#[derive(Debug, Clone)]
pub struct Identities {
    bound: Option<AgentId>,
    launch_key: Option<LaunchKey>,
    proofs: Proofs,
    allow_plain: bool,
    require_authentication: bool,
}

impl Identities {
    /// `bound` fixes the entrance to one agent. `require_authentication` refuses callers without a credential.
    pub fn new(bound: Option<AgentId>, require_authentication: bool) -> Self {
        Self {
            bound,
            launch_key: None,
            proofs: Proofs::default(),
            allow_plain: true,
            require_authentication,
        }
    }

    /// Also serves processes that prove by this key which agent they were launched for.
    #[must_use]
    pub fn with_launch_key(self, launch_key: Option<LaunchKey>) -> Self {
        Self { launch_key, ..self }
    }

    /// Verifies tokens by `proofs`; a plaintext agent is then only taken where `allow_plain` says so.
    #[must_use]
    pub fn with_proofs(self, proofs: Proofs, allow_plain: bool) -> Self {
        Self {
            allow_plain: allow_plain || !proofs.has_issuers(),
            proofs,
            ..self
        }
    }

    /// What tokens are verified by.
    pub fn proofs(&self) -> &Proofs {
        &self.proofs
    }

    /// Who calls, by the request's headers and the certificates of its connection.
    ///
    /// # Errors
    /// When there is no acceptable credential, or `scope` does not cover the agent.
    pub async fn resolve(
        &self,
        headers: &HeaderMap,
        certificates: Option<&PeerCertificates>,
        scope: &AgentScope,
    ) -> Result<Identity, IdentityError> {
        let launched = self
            .launch_key
            .as_ref()
            .map(|key| key.agent(headers))
            .transpose()?
            .flatten();
        let bound = launched.as_ref().or(self.bound.as_ref());
        let shown = self.shown(headers, certificates).await?;
        let identity = match (bound, shown) {
            (Some(bound), None) => named(bound.clone(), Strength::Bound),
            (Some(bound), Some(shown)) if *bound != shown.agent => {
                return Err(IdentityError::Bound { bound: bound.clone() });
            }
            (Some(bound), Some(shown)) if shown.strength < Strength::Bound => {
                named(bound.clone(), Strength::Bound)
            }
            (None, Some(shown)) if shown.strength == Strength::Asserted && !self.allow_plain => {
                return Err(IdentityError::Plain);
            }
            (_, Some(shown)) => shown,
            (None, None) if self.require_authentication => return Err(IdentityError::Required),
            (None, None) => named(AgentId::try_from(ANONYMOUS)?, Strength::Anonymous),
        };
        within(identity, scope)
    }

    /// Whom the credentials of a request name. A token counts before the connection's certificate, which may be that of a proxy
    /// between; a plaintext agent must be the certificate's.
    async fn shown(
        &self,
        headers: &HeaderMap,
        certificates: Option<&PeerCertificates>,
    ) -> Result<Option<Identity>, IdentityError> {
        let credential = Credential::read(headers)?;
        if let Credential::Token(token) = credential {
            return self.proofs.of_token(token).await.map(Some);
        }
        let certified = match certificates.and_then(|shown| shown.0.first()) {
            Some(leaf) => Some(self.proofs.agent(&holder(leaf)?)?),
            None => None,
        };
        match (credential, certified) {
            (Credential::Plain(agent), Some(certified)) if agent != certified => {
                Err(IdentityError::OtherCertificate)
            }
            (_, Some(certified)) => Ok(Some(named(certified, Strength::Verified))),
            (Credential::Plain(agent), None) => Ok(Some(named(agent, Strength::Asserted))),
            (Credential::None | Credential::Token(_), None) => Ok(None),
        }
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
