//! The installation's keys: made at first start, kept encrypted under the master key, named by id wherever they were used.

pub mod hex;
mod master;
mod ring;
mod signer;

pub use master::{MasterKey, MasterKeyError};
pub(crate) use ring::keep_fresh;
pub use ring::{KeyError, KeyRing};
pub use signer::{Secret, Signer};
