//! An identity provider for tests: keys that sign tokens, right ones and wrong ones, and a server that publishes them.

mod key;
mod provider;

pub use key::{SigningKey, hmac, unsigned};
pub use provider::TestProvider;
