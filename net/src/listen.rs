//! Binding listeners, with errors that say what to do.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({setting}): {}", advice(.source))]
pub struct ListenError {
    /// The address asked for.
    pub address: SocketAddr,
    /// The configuration key that named it.
    pub setting: String,
    /// What the operating system said.
    #[source]
    pub source: io::Error,
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is in use; stop the program that holds it, or choose another port".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted; choose a port above 1023, or give the program the right to bind it".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    }
}

/// Opens a listener. `setting` is the configuration key that names the address, for the error.
pub async fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError {
        address,
        setting: setting.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_is_named_with_what_to_do() {
        let first = bind("127.0.0.1:0".parse().unwrap(), "listen.agent")
            .await
            .unwrap();
        let address = first.local_addr().unwrap();
        let error = bind(address, "listen.agent").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on {address} (listen.agent): the port is in use; stop the program that holds it, \
                 or choose another port"
            )
        );
    }
}
