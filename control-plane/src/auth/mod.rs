//! Who is calling: sidecars by their credential, operators by a token, and what operators may do.

mod accounts;
mod admin;
pub mod credential;
mod issuer;
mod operators;
mod role;
mod sidecars;

pub use accounts::{AccountError, AccountOptions, Accounts, Pod};
pub use admin::{AdminToken, AdminTokenError};
pub use credential::{Claims, CredentialError};
pub use issuer::{IssuerError, IssuerOptions, OperatorIssuer};
pub use operators::Operator;
pub(crate) use operators::{OPERATOR_TOKEN, authenticate, is_reserved};
pub use role::{Reach, Right, Role};
pub use sidecars::{LiveStream, Sidecars, StreamKind};
