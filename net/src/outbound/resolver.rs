//! Names into addresses, each looked up once and checked before it is connected to.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use super::destination::Destination;
use super::error::OutboundError;

/// The addresses of a name.
pub type Addresses<'r> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'r>>;

/// Looks up names.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of a name, in the order in which they are tried.
    fn resolve<'r>(&'r self, name: &'r str) -> Addresses<'r>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'r>(&'r self, name: &'r str) -> Addresses<'r> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses to connect to for a host, which is a name or an address: every one of them is admitted. One that is not
/// refuses the host whole, since a name that answers with both is meant to deceive.
///
/// # Errors
/// When the host is refused, or its name has no address.
pub async fn checked_addresses(
    destination: Destination,
    resolver: &dyn Resolver,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, OutboundError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = if let Ok(address) = bare.parse::<IpAddr>() {
        vec![address]
    } else {
        destination.check_name(host)?;
        let unresolved = |problem: String| OutboundError::Resolve {
            host: host.to_owned(),
            problem,
        };
        let found = resolver.resolve(host).await;
        let found = found.map_err(|error| unresolved(error.to_string()))?;
        if found.is_empty() {
            return Err(unresolved("it has no address".to_owned()));
        }
        found
    };
    for address in &found {
        destination.check_address(host, *address)?;
    }
    Ok(found
        .into_iter()
        .map(|address| SocketAddr::new(address, port))
        .collect())
}
