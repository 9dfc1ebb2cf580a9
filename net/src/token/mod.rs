//! Tokens of other issuers: JWTs (RFC 7519) verified against a key set (RFC 7517) that is fetched and kept fresh.
//!
//! Signatures are RS, PS and ES with 256 and 384 bits, RS and PS with 512, and EdDSA, all by ring. ES512 is not served: ring
//! has no P-521. `none` and HMAC do not exist here, so no key can be mistaken for a secret.

mod account;
mod algorithm;
mod claims;
mod error;
mod json;
mod jws;
mod key;
mod key_set;
mod keys;
mod setup;
mod verifier;

#[cfg(any(test, feature = "test-tokens"))]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "only tests use it")]
pub mod testing;
#[cfg(test)]
mod tests;

pub use account::ServiceAccount;
pub use algorithm::Algorithm;
pub use claims::Claims;
pub use error::TokenError;
pub use jws::MAX_TOKEN_BYTES;
pub use keys::{Fetcher, KeyOptions, KeyState, Keys};
pub use setup::KeySource;
pub use verifier::{Issuer, Verified, Verifier};
