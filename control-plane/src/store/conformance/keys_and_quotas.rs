use super::{Fixture, act};
use crate::store::{
    keys::SealedKey,
    quotas::{QuotaFilter, QuotaKey, QuotaKind, QuotaLot, QuotaRequest, TakenLot},
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
        namespace: "default".to_owned(),
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

fn of(agent: &str) -> QuotaFilter {
    QuotaFilter {
        agent: Some(agent.to_owned()),
        ..QuotaFilter::default()
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
    assert_eq!(store.quota_uses(&of("claude")).await.unwrap()[0].used, 5);
    assert_eq!(granted(take("d", 9).await), 5);
    assert!(store.quota_uses(&of("other")).await.unwrap().is_empty());
    let elsewhere = QuotaFilter {
        namespace: Some("other".to_owned()),
        ..QuotaFilter::default()
    };
    assert_eq!(
        store
            .reset_quotas(&elsewhere, act("mesh.limits_reset"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(store.quota_uses(&of("claude")).await.unwrap()[0].used, 10);
    let other = fixture.replica().await;
    let policy = QuotaFilter {
        policy: Some("support".to_owned()),
        ..QuotaFilter::default()
    };
    store
        .reset_quotas(&policy, act("mesh.limits_reset"))
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
            .reset_quotas(&of("claude"), act("mesh.limits_reset"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(granted(take("d", 9).await), 9);
}

pub(super) async fn lots_given_out_elsewhere_count_once_and_for_what_is_left_of_their_minute(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let kind = QuotaKind::PerMinute;
    let take = async |id: &str, want| store.lease_quota(request(kind, id, want)).await.unwrap();
    assert_eq!(granted(take("a", 2).await), 2);
    let lot = |id: &str, seconds, granted| TakenLot {
        lease_id: id.to_owned(),
        age: std::time::Duration::from_secs(seconds),
        granted,
    };
    let elsewhere = [lot("a", 5, 9), lot("b", 30, 3), lot("c", 61, 4)];
    store.carry_lots(&limit(kind), &elsewhere).await.unwrap();
    store.carry_lots(&limit(kind), &elsewhere).await.unwrap();
    let taken = store.taken_lots(&limit(kind)).await.unwrap();
    let known: Vec<_> = taken
        .iter()
        .map(|lot| (lot.lease_id.as_str(), lot.granted))
        .collect();
    assert_eq!(known, [("b", 3), ("a", 2)]);
    assert!(taken[0].age.as_secs() >= 30 && taken[0].age.as_secs() < 60);
    assert_eq!(granted(take("d", 9).await), 5);
}
