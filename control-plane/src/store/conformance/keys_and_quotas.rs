use super::{Fixture, act};
use crate::store::{
    keys::SealedKey,
    quotas::{QuotaKey, QuotaKind, QuotaLot, QuotaRequest},
};

fn key(id: &str) -> SealedKey {
    SealedKey {
        id: id.to_owned(),
        purpose: "checkpoint".to_owned(),
        sealed: vec![1, 2],
        public: vec![3],
    }
}

pub(super) async fn replicas_agree_on_one_key(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let (one, two) = tokio::join!(store.ensure_key(key("a")), other.ensure_key(key("b")));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one, two);
    let next = store.rotate_key(key("c"), act("mesh.key_rotate")).await.unwrap();
    assert_eq!(store.ensure_key(key("d")).await.unwrap(), next);
    let keys = store.keys(Some("checkpoint")).await.unwrap();
    assert_eq!(keys.iter().filter(|row| row.retired_at.is_none()).count(), 1);
    assert_eq!(keys.len(), 2);
    assert!(store.keys(Some("other")).await.unwrap().is_empty());
    other.close().await;
}

fn limit(kind: QuotaKind) -> QuotaKey {
    QuotaKey {
        policy: "support".to_owned(),
        agent: "claude".to_owned(),
        kind,
    }
}

fn request(kind: QuotaKind, lease_id: &str, want: u32) -> QuotaRequest {
    QuotaRequest {
        key: limit(kind),
        lease_id: lease_id.to_owned(),
        want,
        limit: 10,
    }
}

fn granted(lot: QuotaLot) -> u32 {
    lot.granted
}

pub(super) async fn a_lease_takes_nothing_twice(fixture: &Fixture) {
    let store = &fixture.store;
    let kind = QuotaKind::PerMinute;
    let take = async |id: &str, want| store.lease_quota(request(kind, id, want)).await.unwrap();
    assert_eq!(granted(take("a", 4).await), 4);
    assert_eq!(granted(take("a", 4).await), 4);
    assert_eq!(granted(take("b", 9).await), 6);
    let none = take("c", 1).await;
    assert_eq!(none.granted, 0);
    assert!(none.retry_after.unwrap().as_secs() <= 60);
    store.return_quota(limit(kind), "b", 5).await.unwrap();
    store.return_quota(limit(kind), "b", 5).await.unwrap();
    assert_eq!(store.quota_uses(Some("claude")).await.unwrap()[0].used, 5);
    assert_eq!(granted(take("d", 9).await), 5);
    assert!(store.quota_uses(Some("other")).await.unwrap().is_empty());
    let other = fixture.replica().await;
    store
        .reset_quotas(Some("support"), None, act("mesh.limits_reset"))
        .await
        .unwrap();
    let (one, two) = tokio::join!(
        store.lease_quota(request(kind, "e", 8)),
        other.lease_quota(request(kind, "f", 8))
    );
    assert_eq!(granted(one.unwrap()) + granted(two.unwrap()), 10);
    other.close().await;
}

pub(super) async fn a_total_never_comes_back_by_itself(fixture: &Fixture) {
    let store = &fixture.store;
    let kind = QuotaKind::Total;
    let take = async |id: &str, want| store.lease_quota(request(kind, id, want)).await.unwrap();
    assert_eq!(granted(take("a", 10).await), 10);
    let none = take("b", 1).await;
    assert_eq!((none.granted, none.retry_after), (0, None));
    store.return_quota(limit(kind), "a", 3).await.unwrap();
    assert_eq!(granted(take("c", 9).await), 3);
    assert_eq!(
        store
            .reset_quotas(None, Some("claude"), act("mesh.limits_reset"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(granted(take("d", 9).await), 9);
}
