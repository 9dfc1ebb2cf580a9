use std::path::Path;
use std::time::Duration;

use super::*;
use crate::clock::Clock;

const DAY: Duration = Duration::from_secs(86_400);

async fn load(files: &ServerFiles) -> Result<ServerTls, TlsError> {
    ServerTls::load(files.clone(), Clock::machine()).await
}

#[tokio::test]
async fn an_expired_certificate_is_an_error_that_says_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let (_, files) = self_signed_between(&["localhost"], 1_000_000_000_000_000, 1_100_000_000_000_000)
        .unwrap()
        .write(folder.path())
        .unwrap();
    let error = load(&files).await.unwrap_err().to_string();
    assert!(
        error.contains("cert.pem expired at 2004-11-09T11:33:20.000000Z; replace it"),
        "{error}"
    );
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_yet_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let from = 4_000_000_000_000_000;
    let (_, files) = self_signed_between(&["localhost"], from, from + 1_000_000_000)
        .unwrap()
        .write(folder.path())
        .unwrap();
    let error = load(&files).await.unwrap_err().to_string();
    assert!(
        error.contains("is not valid before 2096-10-02T07:06:40"),
        "{error}"
    );
}

#[tokio::test]
async fn a_key_of_another_certificate_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (_, files) = self_signed(&["localhost"], DAY)
        .unwrap()
        .write(folder.path())
        .unwrap();
    std::fs::write(&files.key_file, self_signed(&["localhost"], DAY).unwrap().key).unwrap();
    assert!(matches!(load(&files).await, Err(TlsError::Unusable { .. })));
}

#[tokio::test]
async fn missing_and_empty_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, files) = self_signed(&["localhost"], DAY)
        .unwrap()
        .write(folder.path())
        .unwrap();
    std::fs::write(&files.key_file, "nothing").unwrap();
    let error = load(&files).await.unwrap_err().to_string();
    assert!(
        error.ends_with("key.pem holds no private key in PEM form"),
        "{error}"
    );
    std::fs::remove_file(&files.cert_file).unwrap();
    let error = load(&files).await.unwrap_err().to_string();
    assert!(
        error.contains("cannot read the TLS file") && error.contains("cert.pem"),
        "{error}"
    );
}

#[tokio::test]
async fn changed_files_are_taken_over_and_bad_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (_, files) = self_signed(&["localhost"], DAY)
        .unwrap()
        .write(folder.path())
        .unwrap();
    let tls = load(&files).await.unwrap();
    let first = tls.current();
    assert!(!tls.reload().await.unwrap());

    std::fs::write(&files.cert_file, "broken").unwrap();
    assert!(tls.reload().await.is_err());
    assert!(std::sync::Arc::ptr_eq(&tls.current(), &first));
    assert!(!tls.reload().await.unwrap());

    self_signed(&["localhost"], DAY)
        .unwrap()
        .write(folder.path())
        .unwrap();
    assert!(tls.reload().await.unwrap());
    assert!(!std::sync::Arc::ptr_eq(&tls.current(), &first));
}

#[test]
fn a_client_without_an_authority_trusts_the_public_roots() {
    assert!(client_config(None).is_ok());
    assert!(matches!(
        client_config(Some(Path::new("/nowhere/ca.pem"))),
        Err(TlsError::Read { .. })
    ));
}
