//! What a verified token says.

use serde_json::{Map, Value};

use super::error::TokenError;

/// The claims of a token. The registered ones have been looked at: each has the type that RFC 7519 gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    all: Map<String, Value>,
    issuer: String,
    /// Unix seconds.
    expires: f64,
    not_before: Option<f64>,
}

impl Claims {
    /// Reads claims.
    ///
    /// # Errors
    /// When `iss` or `exp` is missing, or a registered claim has another type than it must have.
    pub(super) fn read(all: &Map<String, Value>) -> Result<Self, TokenError> {
        let wrong = TokenError::Malformed;
        let issuer = match all.get("iss") {
            Some(Value::String(issuer)) => issuer.clone(),
            Some(_) | None => return Err(wrong("its claim \"iss\" is missing, or no text")),
        };
        let expires = number(all.get("exp")).ok_or(wrong("its claim \"exp\" is missing, or no number"))?;
        let not_before = match all.get("nbf") {
            None => None,
            given => Some(number(given).ok_or(wrong("its claim \"nbf\" is no number"))?),
        };
        if all.get("iat").is_some_and(|given| number(Some(given)).is_none()) {
            return Err(wrong("its claim \"iat\" is no number"));
        }
        if all.get("sub").is_some_and(|given| !given.is_string()) {
            return Err(wrong("its claim \"sub\" is no text"));
        }
        Ok(Self {
            all: all.clone(),
            issuer,
            expires,
            not_before,
        })
    }

    /// Who issued the token.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Whether `audience` is `aud`, or one of its elements.
    pub fn is_for(&self, audience: &str) -> bool {
        match self.all.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(several)) => {
                several.iter().all(Value::is_string) && several.iter().any(|one| one == audience)
            }
            Some(_) | None => false,
        }
    }

    /// The value of a claim: `name` as it stands (names of claims may be URLs), else a path of names between dots.
    pub fn get(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.all.get(name) {
            return Some(value);
        }
        let mut names = name.split('.');
        let first = self.all.get(names.next()?)?;
        names.try_fold(first, |value, name| value.as_object()?.get(name))
    }

    /// A claim that is a text and not empty.
    ///
    /// # Errors
    /// When there is none.
    pub fn text(&self, name: &str) -> Result<&str, TokenError> {
        self.get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| TokenError::Claim(name.to_owned()))
    }

    /// Checks the time, with some leeway for clocks that differ.
    pub(super) fn check_time(&self, now: f64, leeway: f64) -> Result<(), TokenError> {
        if now >= self.expires + leeway {
            return Err(TokenError::Expired);
        }
        if self.not_before.is_some_and(|begin| now + leeway < begin) {
            return Err(TokenError::NotYet);
        }
        Ok(())
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|number| number.is_finite())
}
