//! What clients trust.

use std::path::Path;

use rustls::{ClientConfig, ConfigBuilder, RootCertStore, client::WantsClientCert};

use super::{TlsError, pem, provider};

/// A client that trusts the certificates in `ca_file`, and nothing else; without a file, the public roots
/// of the web. No application protocols are set.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    Ok(builder(ca_file)?.with_no_client_auth())
}

/// A client as [`client_config`] makes it that also shows a certificate of its own.
pub fn client_config_with_identity(
    ca_file: Option<&Path>,
    cert_file: &Path,
    key_file: &Path,
) -> Result<ClientConfig, TlsError> {
    let chain = pem::certificates(cert_file, &read(cert_file)?)?;
    let key = pem::private_key(key_file, &read(key_file)?)?;
    builder(ca_file)?
        .with_client_auth_cert(chain, key)
        .map_err(|source| TlsError::Unusable {
            path: cert_file.to_owned(),
            source,
        })
}

fn builder(ca_file: Option<&Path>) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
    let roots = match ca_file {
        Some(path) => pem::roots(path, &read(path)?)?,
        None => {
            let mut store = RootCertStore::empty();
            store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            std::sync::Arc::new(store)
        }
    };
    let versions = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Unusable {
            path: ca_file.unwrap_or(Path::new("roots")).to_owned(),
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
