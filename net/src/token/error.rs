//! Why a token is not accepted.

use super::jws::MAX_TOKEN_BYTES;

/// Why a token is not accepted. Messages are for the token's bearer: they hold nothing of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is longer than any token that is read.
    #[error("the token is longer than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// It is not a signed JWT in compact form.
    #[error("the token is not a JWT: {0}")]
    Malformed(&'static str),
    /// Its algorithm is not one of those that are accepted.
    #[error(
        "the token's algorithm is not accepted; RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA are"
    )]
    Algorithm,
    /// Its issuer is not one that is trusted here.
    #[error("the token's issuer is not trusted here")]
    Issuer,
    /// It is meant for somebody else.
    #[error("the token is not meant for this audience")]
    Audience,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not begun.
    #[error("the token is not valid yet")]
    NotYet,
    /// No key of the issuer has the token's key id.
    #[error("no key of the issuer has the token's key id and algorithm")]
    UnknownKey,
    /// The signature is not one of the key.
    #[error("the token's signature is not valid")]
    Signature,
    /// A claim that is needed is missing, or is no text.
    #[error("the token has no claim {0:?} that is a text")]
    Claim(String),
    /// The issuer's keys were never fetched.
    #[error("the issuer's keys could not be fetched yet; try again later")]
    NotReady,
}
