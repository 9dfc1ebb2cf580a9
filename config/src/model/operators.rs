//! Operators by an identity provider.

use std::path::PathBuf;

use tools::id::Namespace;

use super::auth::authority_has_a_use;
use crate::schema::{HttpUrl, Keys, choice, section};

section! {
    /// Operators by tokens of an identity provider (OpenID Connect), beside the operator token and `toolgate token`.
    Operators as "auth.operators" {
        /// Where the provider's keys are.
        jwks_url: String as HttpUrl,
        /// What the tokens' `iss` is.
        issuer: String,
        /// What the tokens' `aud` is, or holds. It must not be that of agents' tokens.
        audience: String,
        /// Certificate authority of `jwks_url` in PEM form. Default: the public roots.
        ca_cert: Option<PathBuf>,
        /// The claim under whose text acts are kept.
        name_claim: String = "sub",
        /// The claim whose value, or whose list of values, gives roles. Names between dots lead into nested claims.
        role_claim: String = "roles",
        /// What each value gives. A token with several has all that they give.
        roles: Vec<OperatorRole>,
    }
    check somebody_has_a_role
}

section! {
    /// What one value of the claim gives.
    OperatorRole as "a role of auth.operators" {
        /// The value.
        value: String,
        /// The role.
        role: RoleName,
        /// The namespaces that it is for. Default: all.
        namespaces: Vec<Namespace>,
    }
}

choice! {
    /// What operators may do.
    RoleName {
        /// Read.
        Viewer = "viewer",
        /// Also answer approvals, give grants, press stops.
        Approver = "approver",
        /// Also change policies, pins and tools, set limits back.
        Editor = "editor",
        /// Also change guardrails and settings, lift stops, enrol sidecars, give tokens.
        Admin = "admin",
    }
}

fn somebody_has_a_role(operators: &Operators, keys: &Keys<'_, '_>) {
    let authority = operators.ca_cert.as_ref();
    authority_has_a_use("auth.operators", &operators.jwks_url, authority, keys);
    if operators.roles.is_empty() {
        let message = "auth.operators needs roles, such as {value: platform, role: admin}; without one no token opens anything";
        keys.problem(None, message.to_owned());
    }
}
