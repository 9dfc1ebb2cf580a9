//! Who is an operator, and how that was proved.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, Method, Uri, header};
use net::host;
use net::problem::Problem;
use serde_json::{Value, json};
use tools::id::AgentId;

use super::role::{Reach, Right, Role};
use crate::core::Core;
use crate::store::Act;

/// What the tokens of operators begin with.
pub(crate) const OPERATOR_TOKEN: &str = "tgo_";
/// No honest token of an operator is longer, but for those of identity providers.
const MAX_TOKEN: usize = 256;

/// Names under which the control plane acts itself, or whoever has the token of the installation: nobody else bears them.
const RESERVED: [&str; 3] = ["system", "configuration", "operator"];
/// What the names of those begin with who enrol sidecars.
const RESERVED_BEGINNINGS: [&str; 2] = ["join token ", "serviceaccount:"];

/// Whether an operator must not be called so.
pub(crate) fn is_reserved(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    RESERVED.contains(&name.as_str())
        || RESERVED_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// How a caller proved to be an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Proof {
    /// It presented the installation's token.
    Token,
    /// It calls from this machine, and the installation takes every such caller for an operator.
    Loopback {
        /// The agent that it names itself after, if it does.
        agent: Option<AgentId>,
    },
    /// It presented a token that an admin made.
    Personal {
        /// The token's id.
        id: String,
        /// Whose it is.
        name: String,
    },
    /// It presented a token of the identity provider.
    Identity {
        /// Whose it is.
        name: String,
        /// The provider.
        issuer: String,
    },
}

/// A caller that may use the operators' API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    proof: Proof,
    rights: Arc<[Right]>,
    /// Where it may do what is being asked for.
    reach: Reach,
}

impl Operator {
    fn new(proof: Proof, rights: Arc<[Right]>) -> Self {
        let reach = Right::reach_of(&rights, Role::Viewer);
        Self {
            proof,
            rights,
            // INVARIANT: nobody without any right becomes an operator; within nothing is all that such a one would see.
            reach: reach.unwrap_or_else(|| Reach::Within(Arc::default())),
        }
    }

    /// One who may do everything everywhere.
    fn unbounded(proof: Proof) -> Self {
        let right = Right {
            role: Role::Admin,
            reach: Reach::Everywhere,
        };
        Self::new(proof, Arc::new([right]))
    }

    /// The same operator, with the reach that it has in a role.
    ///
    /// # Errors
    /// 403 when it does not have the role anywhere.
    pub fn acting_as(&self, role: Role) -> Result<Self, Problem> {
        let reach = Right::reach_of(&self.rights, role).ok_or_else(|| {
            let most = self.rights.iter().map(|right| right.role).max();
            let most = most.map_or("no role", Role::name);
            Problem::forbidden(format!("this needs the role {role}; the credential has {most}"))
        })?;
        Ok(Self {
            reach,
            ..self.clone()
        })
    }

    /// Where it may do what is being asked for.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The agent that the caller names itself after; only under `auth.loopback_operators`.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match &self.proof {
            Proof::Loopback { agent } => agent.as_ref(),
            Proof::Token | Proof::Personal { .. } | Proof::Identity { .. } => None,
        }
    }

    /// What is proven of the caller.
    #[must_use]
    pub fn credential(&self) -> String {
        match &self.proof {
            Proof::Token => "operator token".to_owned(),
            Proof::Loopback { agent: None } => "loopback".to_owned(),
            Proof::Loopback { agent: Some(agent) } => format!("loopback as agent:{agent}"),
            Proof::Personal { id, name } => format!("token {id} of {name}"),
            Proof::Identity { name, issuer } => format!("{name} by {issuer}"),
        }
    }

    /// The name that an act is kept under: the proven one. The installation's token and an address are nobody's in particular, so a
    /// name that such a caller gives is taken.
    ///
    /// # Errors
    /// 403 when another name is given than the proven one, 400 when it is none.
    pub fn by(&self, given: Option<&str>) -> Result<String, Problem> {
        let given = given.map(str::trim).filter(|name| !name.is_empty());
        if let Proof::Personal { name, .. } | Proof::Identity { name, .. } = &self.proof {
            return match given {
                Some(other) if other != name => Err(Problem::forbidden(format!(
                    "the credential is that of {name:?}: nothing is done with it in the name of another"
                ))),
                Some(_) | None => Ok(name.clone()),
            };
        }
        match given {
            Some(name) if name != "operator" && is_reserved(name) => Err(Problem::bad_request(format!(
                "{name:?} is a name that nobody acts under; give your own"
            ))),
            Some(name) if name.len() <= 256 && !name.chars().any(char::is_control) => Ok(name.to_owned()),
            Some(_) => Err(Problem::bad_request(
                "the name of who acts is longer than 256 bytes or holds control characters",
            )),
            None => Ok(match self.agent() {
                Some(agent) => agent.as_str().to_owned(),
                None => "operator".to_owned(),
            }),
        }
    }

    /// An act of this operator; its record also says what was proven.
    #[must_use]
    pub fn act(&self, name: &str, by: &str, mut details: Value) -> Act {
        if let Some(fields) = details.as_object_mut() {
            fields.insert("credential".to_owned(), json!(self.credential()));
        }
        Act::new(name, by, details)
    }
}

/// What a caller presents, as far as it can be told without asking anybody.
enum Presented<'h> {
    /// An operator, by the installation's token or its address.
    Operator(Operator),
    /// An agent's plaintext name.
    Agent,
    /// Something that has to be looked up.
    Token(&'h str),
    /// Nothing.
    Nothing,
}

fn presented<'h>(
    core: &Core,
    method: &Method,
    uri: &Uri,
    headers: &'h HeaderMap,
    peer: Option<SocketAddr>,
) -> Result<Presented<'h>, Problem> {
    let presented = bearer(headers)?;
    if presented.is_some_and(|token| core.admin_token.matches(token)) {
        return Ok(Presented::Operator(Operator::unbounded(Proof::Token)));
    }
    let agent = presented.and_then(|token| token.strip_prefix("agent:"));
    let is_local = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    // A token that says whose it is counts for more than an address.
    let is_personal = presented.is_some_and(|token| token.starts_with(OPERATOR_TOKEN));
    if core.loopback_operators && is_local && !is_personal {
        check_browser(core, method, uri, headers)?;
        let agent = agent
            .map(AgentId::try_from)
            .transpose()
            .map_err(|error| Problem::unauthenticated(error.to_string()))?;
        return Ok(Presented::Operator(Operator::unbounded(Proof::Loopback {
            agent,
        })));
    }
    Ok(match (presented, agent) {
        (_, Some(_)) => Presented::Agent,
        (Some(token), None) => Presented::Token(token),
        (None, None) => Presented::Nothing,
    })
}

/// Takes a caller for an operator, or refuses it. `peer` is the address of the connection; headers that speak of another are not read.
///
/// # Errors
/// 401 without a valid credential, 403 for an agent's, or for a page of another site in a browser.
pub(crate) async fn authenticate(
    core: &Core,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    peer: Option<SocketAddr>,
) -> Result<Operator, Problem> {
    let unknown = || Problem::unauthenticated("the credential is not that of an operator");
    match presented(core, method, uri, headers, peer)? {
        Presented::Operator(operator) => Ok(operator),
        Presented::Agent => Err(Problem::forbidden("an agent's credential opens no operator path")),
        Presented::Token(token) if token.starts_with(OPERATOR_TOKEN) && token.len() <= MAX_TOKEN => {
            personal(core, token).await?.ok_or_else(unknown)
        }
        Presented::Token(token) => match &core.issuer {
            Some(issuer) if token.contains('.') => {
                let proven = issuer.prove(token).await?;
                let proof = Proof::Identity {
                    name: proven.name,
                    issuer: issuer.name().to_owned(),
                };
                Ok(Operator::new(proof, proven.rights))
            }
            Some(_) | None => Err(unknown()),
        },
        Presented::Nothing => Err(Problem::unauthenticated(
            "this path is for operators: send the operator token as `Authorization: Bearer <token>`",
        )),
    }
}

/// The operator whose token it is. A role of a later version that is not known here gives nothing.
async fn personal(core: &Core, token: &str) -> Result<Option<Operator>, Problem> {
    let found = core.store.operator_token(crate::grpc::digest(token)).await?;
    Ok(found.and_then(|found| {
        let right = Right {
            role: Role::from_name(&found.role)?,
            reach: Reach::of(&found.namespaces),
        };
        let proof = Proof::Personal {
            id: found.id,
            name: found.name,
        };
        Some(Operator::new(proof, Arc::new([right])))
    }))
}

/// The one bearer token of a request.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(Problem::unauthenticated("the request has several credentials"));
    }
    let text = first.and_then(|value| value.to_str().ok());
    Ok(text.and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    }))
}

/// Without a token, a page in a browser on this machine must not pass for its reader.
fn check_browser(core: &Core, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    core.hosts.check(uri, headers)?;
    let is_foreign = headers.contains_key(header::ORIGIN) && !host::is_same_origin(uri, headers);
    let is_cross_site = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site != "same-origin" && site != "none");
    if (is_foreign || is_cross_site) && !method.is_safe() {
        return Err(Problem::forbidden(
            "a page of another origin cannot act as an operator; use the operator token",
        ));
    }
    Ok(())
}
