//! What a Kubernetes cluster is to Toolgate: an issuer of projected tokens, whose keys are at an API server that wants TLS and a token.

use std::path::PathBuf;
use std::time::Duration;

use net::clock::Clock;
use net::token::testing::{SigningKey, TestProvider};
use serde_json::{Value, json};

/// What the tokens of the tests' cluster say in `iss`.
pub const ISSUER: &str = "https://cluster.example";
/// What has to be shown at its API server.
const READER: &str = "the-token-of-the-control-planes-pod";

/// A cluster of the tests' own.
pub struct Kubernetes {
    key: SigningKey,
    provider: TestProvider,
    folder: tempfile::TempDir,
    ca_file: PathBuf,
}

impl Kubernetes {
    /// Starts its API server.
    pub async fn start() -> Self {
        let folder = crate::up::folder();
        let certificates = net::tls::self_signed(&["localhost"], Duration::from_secs(3600)).unwrap();
        let (ca_file, files) = certificates.write(folder.path()).unwrap();
        std::fs::write(folder.path().join("reader"), READER).unwrap();
        let key = SigningKey::rsa("cluster");
        let provider = TestProvider::cluster(files, READER, &[&key]).await;
        Self {
            key,
            provider,
            folder,
            ca_file,
        }
    }

    /// A control plane's configuration that lets the sidecars of some accounts enrol.
    #[must_use]
    pub fn enrolling(&self, accounts: &str) -> String {
        format!(
            "auth:\n  sidecar_accounts: {{issuer: '{ISSUER}', jwks_url: '{url}', ca_cert: {ca}, token_file: {reader}, accounts: ['{accounts}']}}\n",
            url = self.provider.url(),
            ca = self.ca_file.display(),
            reader = self.folder.path().join("reader").display(),
        )
    }

    /// A token with these claims.
    #[must_use]
    pub fn token(&self, claims: &Value) -> String {
        self.key.token(claims)
    }

    /// The token that is projected into a pod of the account `<namespace>:agents`.
    #[must_use]
    pub fn pod_token(&self, namespace: &str, uid: &str) -> String {
        self.token(&projected(namespace, uid, 600))
    }

    /// Ends its API server.
    pub async fn stop(self) {
        self.provider.stop().await;
    }
}

/// The claims of the token of a pod, as Kubernetes makes them, which expires in so many seconds.
#[must_use]
pub fn projected(namespace: &str, uid: &str, seconds: i64) -> Value {
    let now = Clock::machine().wall_micros() / 1_000_000;
    json!({
        "iss": ISSUER,
        "aud": ["toolgate"],
        "iat": now,
        "nbf": now,
        "exp": now + seconds,
        "jti": format!("{now}-{}", uuid_like(now + seconds)),
        "sub": format!("system:serviceaccount:{namespace}:agents"),
        "kubernetes.io": {
            "namespace": namespace,
            "node": {"name": "node-1", "uid": uuid_like(1)},
            "pod": {"name": "agents-1", "uid": uid},
            "serviceaccount": {"name": "agents", "uid": uuid_like(2)},
            "warnafter": now + seconds / 2,
        },
    })
}

/// Text of the form of a UID, another for each number.
#[must_use]
pub fn uuid_like(number: i64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}
