//! TLS on both sides, by rustls with the ring provider, which is always passed by hand: never the
//! process' default.

mod client;
mod names;
mod pem;
#[cfg(any(test, feature = "test-certificates"))]
mod self_signed;
mod server;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::{ClientTls, client_config, client_config_with_identity};
pub use names::{NameError, holder};
#[cfg(any(test, feature = "test-certificates"))]
pub use self_signed::{TestCertificates, self_signed, self_signed_between};
pub use server::{ServerFiles, ServerTls};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read the TLS file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} holds no {what} in PEM form", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// The certificate's time is over, or has not begun.
    #[error("the certificate {} {when}; replace it, or set this machine's clock", path.display())]
    Time {
        /// The file.
        path: PathBuf,
        /// Since when, or until when.
        when: String,
    },
    /// rustls refuses the certificate or key.
    #[error("the certificate or key in {} cannot be used: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What rustls said.
        #[source]
        source: rustls::Error,
    },
}

/// The crypto provider of the whole program.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
