//! A server's certificate, read again when its files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;

use super::{TlsError, pem, provider};
use crate::clock::Clock;

/// Where a server's certificate lies.
#[derive(Clone, Debug)]
pub struct ServerFiles {
    /// The certificate chain in PEM form, leaf first.
    pub cert_file: PathBuf,
    /// Its private key in PEM form.
    pub key_file: PathBuf,
    /// Certificate authorities of client certificates. With it a client may show a certificate, and one
    /// that is shown must be valid; without it none is asked for.
    pub client_ca_file: Option<PathBuf>,
}

/// The TLS side of a server. New connections use the files' latest valid content.
#[derive(Debug)]
pub struct ServerTls {
    files: ServerFiles,
    clock: Clock,
    current: ArcSwap<ServerConfig>,
    seen: Mutex<Content>,
}

#[derive(Debug, PartialEq, Eq)]
struct Content {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl ServerTls {
    /// Reads the files. An unreadable, unusable, expired or not yet valid certificate is an error.
    pub async fn load(files: ServerFiles, clock: Clock) -> Result<Self, TlsError> {
        let content = Content::read(&files).await?;
        let config = content.server_config(&files, &clock)?;
        Ok(Self {
            files,
            clock,
            current: ArcSwap::from_pointee(config),
            seen: Mutex::new(content),
        })
    }

    /// What new connections use now. HTTP/2 and HTTP/1.1 are offered.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.load_full()
    }

    /// Reads the files again: `true` when they changed and were taken over. On an error the former
    /// certificate stays in use, and the same content is not tried again.
    pub async fn reload(&self) -> Result<bool, TlsError> {
        let content = Content::read(&self.files).await?;
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == content {
                return Ok(false);
            }
            let config = content.server_config(&self.files, &self.clock);
            *seen = content;
            self.current.store(Arc::new(config?));
        }
        Ok(true)
    }
}

impl Content {
    async fn read(files: &ServerFiles) -> Result<Self, TlsError> {
        let client_ca = match &files.client_ca_file {
            Some(path) => Some(read(path).await?),
            None => None,
        };
        Ok(Self {
            cert: read(&files.cert_file).await?,
            key: read(&files.key_file).await?,
            client_ca,
        })
    }

    fn server_config(&self, files: &ServerFiles, clock: &Clock) -> Result<ServerConfig, TlsError> {
        let unusable = |source| TlsError::Unusable {
            path: files.cert_file.clone(),
            source,
        };
        let chain = pem::certificates(&files.cert_file, &self.cert)?;
        let key = pem::private_key(&files.key_file, &self.key)?;
        if let Some(leaf) = chain.first() {
            pem::check_time(&files.cert_file, leaf, clock)?;
        }
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match (&files.client_ca_file, &self.client_ca) {
            (Some(path), Some(bytes)) => {
                let roots = pem::roots(path, bytes)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| TlsError::Unusable {
                        path: path.clone(),
                        source: rustls::Error::General(error.to_string()),
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    tokio::fs::read(path).await.map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}
