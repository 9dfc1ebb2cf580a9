//! What a Kubernetes service-account token says.

use serde_json::Value;

use super::claims::Claims;

/// How Kubernetes begins the subject of a service account's token.
const SUBJECT: &str = "system:serviceaccount:";

/// A service account, and the pod that its token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccount {
    /// The account's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pod's UID; tokens that were not projected into a pod have none.
    pub pod: Option<String>,
}

impl ServiceAccount {
    /// The account of verified claims. `None`: they are of nobody like that.
    pub fn of(claims: &Claims) -> Option<Self> {
        let (namespace, name) = claims.text("sub").ok()?.strip_prefix(SUBJECT)?.split_once(':')?;
        if namespace.is_empty() || name.is_empty() || name.contains(':') {
            return None;
        }
        let pod = claims
            .get("kubernetes.io")
            .and_then(|bound| bound.get("pod")?.get("uid"))
            .and_then(Value::as_str)
            .filter(|uid| is_uid(uid));
        Some(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            pod: pod.map(str::to_owned),
        })
    }
}

fn is_uid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
