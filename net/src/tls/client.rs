//! What clients trust.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, client::WantsClientCert};

use super::{TlsError, pem, provider};

/// A client that trusts the certificates in `ca_file`, and nothing else; without a file, the public roots
/// of the web. No application protocols are set.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    Ok(builder(roots(ca_file)?)?.with_no_client_auth())
}

/// A client as [`client_config`] makes it that also shows a certificate of its own.
pub fn client_config_with_identity(
    ca_file: Option<&Path>,
    cert_file: &Path,
    key_file: &Path,
) -> Result<ClientConfig, TlsError> {
    let chain = pem::certificates(cert_file, &read(cert_file)?)?;
    let key = pem::private_key(key_file, &read(key_file)?)?;
    builder(roots(ca_file)?)?
        .with_client_auth_cert(chain, key)
        .map_err(|source| TlsError::Unusable {
            path: cert_file.to_owned(),
            source,
        })
}

/// What a client trusts that lives long: the file of its authority is read again when it has changed.
#[derive(Debug)]
pub struct ClientTls {
    ca_file: Option<PathBuf>,
    protocols: Vec<Vec<u8>>,
    current: ArcSwap<ClientConfig>,
    /// What the file held when it was last looked at; `None`: it could not be read.
    seen: Mutex<Option<Vec<u8>>>,
}

impl ClientTls {
    /// Trusts what [`client_config`] does.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn load(ca_file: Option<&Path>) -> Result<Self, TlsError> {
        Self::speaking(ca_file, &[])
    }

    /// As [`ClientTls::load`], offering these application protocols (ALPN).
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn speaking(ca_file: Option<&Path>, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let seen = ca_file.map(read).transpose()?;
        let protocols: Vec<Vec<u8>> = protocols.iter().map(|name| name.to_vec()).collect();
        let roots = match (ca_file, &seen) {
            (Some(path), Some(bytes)) => pem::roots(path, bytes)?,
            _ => public_roots(),
        };
        Ok(Self {
            ca_file: ca_file.map(Path::to_owned),
            current: ArcSwap::from_pointee(speaking(roots, &protocols)?),
            protocols,
            seen: Mutex::new(seen),
        })
    }

    /// What was in force when it was last looked.
    pub fn current(&self) -> Arc<ClientConfig> {
        self.current.load_full()
    }

    /// What the next connection trusts: the latest usable content of the file. It is looked at now. What cannot be used changes
    /// nothing, and is told once.
    pub async fn latest(&self) -> Arc<ClientConfig> {
        if let Some(path) = &self.ca_file {
            let content = tokio::fs::read(path).await;
            self.take(path, content);
        }
        self.current()
    }

    fn take(&self, path: &Path, content: std::io::Result<Vec<u8>>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = match content {
            Ok(bytes) if seen.as_ref() == Some(&bytes) => return,
            Ok(bytes) => {
                let config = pem::roots(path, &bytes).and_then(|roots| speaking(roots, &self.protocols));
                *seen = Some(bytes);
                config
            }
            Err(_) if seen.is_none() => return,
            Err(source) => {
                *seen = None;
                Err(TlsError::Read {
                    path: path.to_owned(),
                    source,
                })
            }
        };
        match taken {
            Ok(config) => {
                tracing::info!(file = %path.display(), "the certificate authority was read again");
                self.current.store(Arc::new(config));
            }
            Err(error) => tracing::error!(%error, "the former certificate authority stays in use"),
        }
    }
}

fn speaking(roots: Arc<RootCertStore>, protocols: &[Vec<u8>]) -> Result<ClientConfig, TlsError> {
    let mut config = builder(roots)?.with_no_client_auth();
    config.alpn_protocols = protocols.to_vec();
    Ok(config)
}

fn roots(ca_file: Option<&Path>) -> Result<Arc<RootCertStore>, TlsError> {
    match ca_file {
        Some(path) => pem::roots(path, &read(path)?),
        None => Ok(public_roots()),
    }
}

fn public_roots() -> Arc<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Arc::new(store)
}

fn builder(roots: Arc<RootCertStore>) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
    let versions = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Unusable {
            path: "roots".into(),
            source,
        })?;
    Ok(versions.with_root_certificates(roots))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}
