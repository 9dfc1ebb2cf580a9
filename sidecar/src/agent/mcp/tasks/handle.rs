//! Ids of tasks that modern upstreams run, as agents know them: sealed under the namespace's key, so that nothing has to be kept for
//! them. They mean the same at every sidecar of the namespace and after a restart, and nothing to anybody but their owner.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tools::id::UpstreamName;

use super::own::Owner;
use crate::control::DigestKey;

/// Bytes of an upstream's own id; one that is longer cannot be followed.
const MAX_THEIRS: usize = 1024;
/// What tells a seal from the digest of arguments, which begin with a brace.
const PURPOSE: &str = "task";

/// The id of a task for its owner.
pub(super) fn sealed(
    key: &DigestKey,
    owner: &Owner,
    upstream: &UpstreamName,
    theirs: &str,
) -> Option<String> {
    if theirs.len() > MAX_THEIRS {
        return None;
    }
    let named = serde_json::to_vec(&(upstream.as_str(), theirs)).ok()?;
    let named = URL_SAFE_NO_PAD.encode(named);
    let seal = URL_SAFE_NO_PAD.encode(key.digest(&sealed_text(owner, &named)?));
    Some(format!("{named}.{seal}"))
}

/// The upstream that runs the task with this id, and its own id there; nothing for anybody but the owner.
pub(super) fn opened(key: &DigestKey, owner: &Owner, id: &str) -> Option<(UpstreamName, String)> {
    if id.len() > MAX_THEIRS * 3 {
        return None;
    }
    let (named, seal) = id.split_once('.')?;
    let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
    if !key.verifies(&sealed_text(owner, named)?, &seal) {
        return None;
    }
    let named = URL_SAFE_NO_PAD.decode(named).ok()?;
    let (upstream, theirs): (String, String) = serde_json::from_slice(&named).ok()?;
    Some((UpstreamName::try_from(upstream.as_str()).ok()?, theirs))
}

fn sealed_text(owner: &Owner, named: &str) -> Option<Vec<u8>> {
    serde_json::to_vec(&(PURPOSE, owner.names(), named)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(agent: &str, user: Option<&str>, session: Option<&str>) -> Owner {
        Owner::new(
            agent.parse().unwrap(),
            user.map(|user| user.parse().unwrap()),
            session.map(str::to_owned),
        )
    }

    #[test]
    fn a_sealed_id_means_its_task_to_its_owner_alone() {
        let key = DigestKey::new("k", [7; 32]);
        let upstream: UpstreamName = "notes".parse().unwrap();
        let me = owner("a", Some("u"), Some("s"));
        let id = sealed(&key, &me, &upstream, "theirs/\u{e4}").unwrap();
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert_eq!(
            opened(&key, &me, &id),
            Some((upstream.clone(), "theirs/\u{e4}".to_owned()))
        );
        for other in [
            owner("b", Some("u"), Some("s")),
            owner("a", None, Some("s")),
            owner("a", Some("u"), None),
            owner("a", Some("s"), Some("u")),
        ] {
            assert_eq!(opened(&key, &other, &id), None);
        }
        assert_eq!(opened(&DigestKey::new("k", [8; 32]), &me, &id), None);
        let other = sealed(&key, &me, &upstream, "other").unwrap();
        let (named, seal) = (id.split_once('.').unwrap().0, other.split_once('.').unwrap().1);
        for forged in [
            format!("{named}.{seal}"),
            named.to_owned(),
            format!("{id}x"),
            ".".to_owned(),
            String::new(),
        ] {
            assert_eq!(opened(&key, &me, &forged), None, "{forged}");
        }
        assert_eq!(sealed(&key, &me, &upstream, &"x".repeat(MAX_THEIRS + 1)), None);
    }
}
