//! Who is calling: sidecars by their credential, operators by their token.

mod admin;
pub mod credential;
mod operators;
mod sidecars;

pub use admin::{AdminToken, AdminTokenError};
pub use credential::{Claims, CredentialError};
pub use operators::Operator;
pub(crate) use operators::authenticate;
pub use sidecars::{LiveStream, Sidecars, StreamKind};
