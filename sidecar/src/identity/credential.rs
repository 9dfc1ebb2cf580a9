//! What a request shows of its caller.

use http::{HeaderMap, header};
use tools::id::AgentId;

use super::IdentityError;

/// The credential of an `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credential<'h> {
    /// There is none.
    None,
    /// A plaintext `agent:<id>`.
    Plain(AgentId),
    /// Something that has to be verified.
    Token(&'h str),
}

impl<'h> Credential<'h> {
    /// # Errors
    /// When the header comes twice, or is not one bearer credential.
    pub(super) fn read(headers: &'h HeaderMap) -> Result<Self, IdentityError> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let credential = match (given.next(), given.next()) {
            (None, _) => return Ok(Self::None),
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
        let token = token.trim();
        match token.strip_prefix("agent:") {
            Some(agent) => Ok(Self::Plain(AgentId::try_from(agent)?)),
            None => Ok(Self::Token(token)),
        }
    }
}
