//! From what a token or a certificate proves to an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use net::token::{Claims, KeyState, ServiceAccount, TokenError, Verified, Verifier};
use tools::id::{AgentId, UserId};

use super::{ANONYMOUS, Identity, IdentityError, Strength};

/// How an issuer's tokens name agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// By claims, found by name or path.
    Claims {
        /// The claim with the agent.
        agent: String,
        /// The claim with the human it acts for.
        user: Option<String>,
    },
    /// By the service account of a pod.
    ServiceAccount,
}

/// The issuers whose tokens prove agents, and the agents that proven names stand for.
#[derive(Debug, Clone, Default)]
pub struct Proofs {
    verifier: Option<Arc<Verifier>>,
    namings: Vec<Naming>,
    agents: BTreeMap<String, AgentId>,
}

impl Proofs {
    /// The issuers of `verifier` name agents as `namings` says, in the same order. `agents` renames what is proven.
    pub fn new(
        verifier: Option<Arc<Verifier>>,
        namings: Vec<Naming>,
        agents: BTreeMap<String, AgentId>,
    ) -> Self {
        Self {
            verifier,
            namings,
            agents,
        }
    }

    /// Whether there are issuers of tokens.
    pub(super) fn has_issuers(&self) -> bool {
        self.verifier.is_some()
    }

    /// The issuers whose keys are not there yet, and why.
    pub fn missing_keys(&self) -> Vec<(&str, KeyState)> {
        self.verifier
            .as_ref()
            .map(|verifier| verifier.missing_keys())
            .unwrap_or_default()
    }

    /// Whom a token proves. One that was seen before costs no signature.
    pub(super) async fn of_token(&self, token: &str) -> Result<Identity, IdentityError> {
        let verifier = self.verifier.as_ref().ok_or(IdentityError::Unverifiable)?;
        let verified = match verifier.recall(token) {
            Some(recalled) => recalled?,
            // Boxed: what happens once per token must not make the state of every request larger.
            None => Box::pin(verifier.verify(token)).await?,
        };
        self.named(&verified)
    }

    fn named(&self, verified: &Verified) -> Result<Identity, IdentityError> {
        let claims: &Claims = &verified.claims;
        let (name, user) = match self.namings.get(verified.issuer) {
            Some(Naming::Claims { agent, user }) => {
                // An agent may act for nobody; a claim that is there must name somebody.
                let claim = user.as_deref().filter(|claim| claims.get(claim).is_some());
                (
                    claims.text(agent)?,
                    claim.map(|claim| claims.text(claim)).transpose()?,
                )
            }
            Some(Naming::ServiceAccount) => {
                let subject = claims.text("sub")?;
                if ServiceAccount::of(claims).is_none() {
                    return Err(IdentityError::NotAServiceAccount);
                }
                (subject, None)
            }
            // INVARIANT: there is a naming for every issuer.
            None => return Err(TokenError::Issuer.into()),
        };
        Ok(Identity {
            agent: self.agent(name)?,
            strength: Strength::Verified,
            user: user.map(UserId::try_from).transpose()?,
        })
    }

    /// The agent that a proven name stands for.
    pub(super) fn agent(&self, name: &str) -> Result<AgentId, IdentityError> {
        if let Some(agent) = self.agents.get(name) {
            return Ok(agent.clone());
        }
        if name == ANONYMOUS {
            return Err(IdentityError::Reserved);
        }
        Ok(AgentId::try_from(name)?)
    }
}
