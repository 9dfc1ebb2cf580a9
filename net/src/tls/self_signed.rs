//! A throw-away certificate authority and one certificate of it, for tests.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;

use super::ServerFiles;
use crate::clock::Clock;

/// An authority's certificate, and a leaf that it signed, in PEM form.
#[derive(Clone, Debug)]
pub struct TestCertificates {
    /// The authority: what clients trust.
    pub ca: String,
    /// The leaf, for servers and clients alike.
    pub cert: String,
    /// The leaf's private key.
    pub key: String,
}

impl TestCertificates {
    /// Writes `ca.pem`, `cert.pem` and `key.pem` into a folder and names them.
    pub fn write(&self, folder: &Path) -> io::Result<(PathBuf, ServerFiles)> {
        let paths = ["ca.pem", "cert.pem", "key.pem"].map(|name| folder.join(name));
        for (path, text) in paths.iter().zip([&self.ca, &self.cert, &self.key]) {
            std::fs::write(path, text)?;
        }
        let [ca_file, cert_file, key_file] = paths;
        Ok((
            ca_file,
            ServerFiles {
                cert_file,
                key_file,
                client_ca_file: None,
            },
        ))
    }
}

/// A new authority and a leaf for `names` (DNS names and addresses), valid from now on.
pub fn self_signed(names: &[&str], valid_for: Duration) -> Result<TestCertificates, rcgen::Error> {
    let now = Clock::machine().wall_micros();
    self_signed_between(names, now, now.saturating_add(crate::clock::micros(valid_for)))
}

/// As [`self_signed`], the leaf valid between two Unix times in microseconds.
pub fn self_signed_between(names: &[&str], from: i64, until: i64) -> Result<TestCertificates, rcgen::Error> {
    let ca_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority
        .distinguished_name
        .push(rcgen::DnType::CommonName, "Toolgate test authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca = authority.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(authority, ca_key);

    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(names)?;
    leaf.distinguished_name
        .push(rcgen::DnType::CommonName, "Toolgate test certificate");
    leaf.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    leaf.not_before = moment(from);
    leaf.not_after = moment(until);
    let cert = leaf.signed_by(&key, &issuer)?.pem();
    Ok(TestCertificates {
        ca,
        cert,
        key: key.serialize_pem(),
    })
}

/// Certificates count whole seconds.
fn moment(micros: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(micros.div_euclid(1_000_000)).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
