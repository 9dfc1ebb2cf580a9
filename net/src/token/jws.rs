//! The parts of a token, before anything is believed of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::error::TokenError;
use super::json;

/// The longest token that is looked at.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// The longest key id.
const MAX_KEY_ID: usize = 512;
/// What a token may say it is. Others (logout tokens, proofs of possession) are no credentials (RFC 8725 section 3.11).
const TYPES: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];

/// A signed token in compact form, taken apart. Nothing of it is proven.
#[derive(Debug)]
pub(super) struct Jws<'t> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// What the signature is over.
    pub(super) signed: &'t [u8],
    pub(super) signature: Vec<u8>,
}

impl<'t> Jws<'t> {
    pub(super) fn read(token: &'t str) -> Result<Self, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        let parts = || TokenError::Malformed("it does not have three parts");
        let (signed, signature) = token.rsplit_once('.').ok_or_else(parts)?;
        let (header, claims) = signed.split_once('.').ok_or_else(parts)?;
        if claims.contains('.') {
            return Err(parts());
        }
        let header = object(header, "its header is not one JSON object")?;
        let (algorithm, key_id) = read_header(&header)?;
        Ok(Self {
            algorithm,
            key_id,
            claims: object(claims, "its claims are not one JSON object")?,
            signed: signed.as_bytes(),
            signature: decoded(signature).ok_or(TokenError::Malformed("its signature is not base64url"))?,
        })
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn object(text: &str, problem: &'static str) -> Result<Map<String, Value>, TokenError> {
    decoded(text)
        .and_then(|bytes| json::object(&bytes))
        .ok_or(TokenError::Malformed(problem))
}

fn read_header(header: &Map<String, Value>) -> Result<(Algorithm, Option<String>), TokenError> {
    let algorithm = match header.get("alg") {
        Some(Value::String(name)) => Algorithm::parse(name).ok_or(TokenError::Algorithm)?,
        Some(_) | None => return Err(TokenError::Algorithm),
    };
    // An extension that must be understood is not.
    if header.contains_key("crit") || header.contains_key("b64") {
        return Err(TokenError::Malformed(
            "its header asks for an extension that is not known",
        ));
    }
    let is_credential = match header.get("typ") {
        None => true,
        Some(Value::String(kind)) => TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)),
        Some(_) => false,
    };
    if !is_credential {
        return Err(TokenError::Malformed("its type is not JWT or at+jwt"));
    }
    let key_id = match header.get("kid") {
        None => None,
        Some(Value::String(id)) if id.len() <= MAX_KEY_ID => Some(id.clone()),
        Some(_) => return Err(TokenError::Malformed("its key id is not a short text")),
    };
    Ok((algorithm, key_id))
}
