//! The guarded outbound client: every request that is not the hot path of a call goes through it.
//!
//! A URL comes from somebody, and [`Destination`] says from whom: that decides which addresses may be connected to. A name
//! is resolved once per connection, every address it has is checked in every form that carries another, and the connection
//! goes to a checked address: a second answer of a resolver (DNS rebinding) is never asked for. Redirects are checked like
//! the first URL. Proxies named by the environment are not used; one of the configuration opens tunnels to checked addresses.

mod address;
mod client;
mod destination;
mod dial;
mod error;
mod proxy;
mod request;
mod resolver;
#[cfg(any(test, feature = "test-proxies"))]
#[allow(clippy::unwrap_used, reason = "only tests use it")]
pub mod testing;
#[cfg(test)]
mod tests;

pub use address::AddressClass;
pub use client::Outbound;
pub use destination::Destination;
pub use dial::{Dialed, Dialer, Options, Scheme};
pub use error::OutboundError;
pub use proxy::{Proxy, ProxyOptions};
pub use request::{Bounds, OutboundAnswer, OutboundRequest, Redirects};
pub use resolver::{Addresses, Resolver, SystemResolver, checked_addresses};
pub use url::Url;
