//! PEM files into certificates and keys, and whether a certificate's time is now.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::{CertificateError, RootCertStore};

use super::TlsError;
use crate::clock::{Clock, rfc3339};

pub(super) fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let missing = || TlsError::Pem {
        path: path.to_owned(),
        what: "certificate",
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| missing())?;
    if chain.is_empty() {
        Err(missing())
    } else {
        Ok(chain)
    }
}

pub(super) fn private_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| TlsError::Pem {
        path: path.to_owned(),
        what: "private key",
    })
}

pub(super) fn roots(path: &Path, bytes: &[u8]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path, bytes)? {
        store.add(certificate).map_err(|source| TlsError::Unusable {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(Arc::new(store))
}

/// Refuses a leaf certificate whose time is over or has not begun. rustls looks at the time before it
/// looks for an issuer, so an empty set of roots answers exactly this question.
pub(super) fn check_time(path: &Path, leaf: &CertificateDer<'_>, clock: &Clock) -> Result<(), TlsError> {
    let unusable = |source| TlsError::Unusable {
        path: path.to_owned(),
        source,
    };
    let parsed = rustls::server::ParsedCertificate::try_from(leaf).map_err(unusable)?;
    let seconds = u64::try_from(clock.wall_micros().div_euclid(1_000_000)).unwrap_or(0);
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let algorithms = super::provider().signature_verification_algorithms.all;
    let verdict = rustls::client::verify_server_cert_signed_by_trust_anchor(
        &parsed,
        &RootCertStore::empty(),
        &[],
        now,
        algorithms,
    );
    let when = match verdict {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            format!("expired at {}", text(not_after))
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => format!("is not valid before {}", text(not_before)),
        _ => return Ok(()),
    };
    Err(TlsError::Time {
        path: path.to_owned(),
        when,
    })
}

fn text(time: UnixTime) -> String {
    rfc3339(
        i64::try_from(time.as_secs())
            .unwrap_or(i64::MAX / 1_000_000)
            .saturating_mul(1_000_000),
    )
}
