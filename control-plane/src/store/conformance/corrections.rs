use serde_json::json;

use super::{Fixture, act};
use crate::store::{StoreError, corrections::CorrectionDraft, desired::Expected};

fn draft(namespace: &str, side_effect: Option<&str>) -> CorrectionDraft {
    let said = side_effect.map_or(json!({}), |kind| json!({ "side_effect": kind }));
    CorrectionDraft {
        namespace: namespace.to_owned(),
        tool: "notes.read".to_owned(),
        upstream: "notes".to_owned(),
        fingerprint: [7; 32],
        sent: said.clone(),
        said,
    }
}

pub(super) async fn a_correction_is_desired_state_under_a_revision(fixture: &Fixture) {
    let store = &fixture.store;
    let before = store.head().await.unwrap().revision;
    let correct = |draft, expected| store.put_correction(draft, expected, act("mesh.tool_correct"));
    let row = correct(draft("default", Some("delete")), Expected::Absent)
        .await
        .unwrap();
    assert_eq!((row.version, row.revision.number), (1, before.number + 1));
    let again = correct(draft("default", Some("delete")), Expected::Any)
        .await
        .unwrap();
    assert_eq!(again, row, "an equal one takes no revision");
    let other = correct(draft("prod", Some("admin")), Expected::Any)
        .await
        .unwrap();
    assert_eq!(
        store.corrections(Some("default")).await.unwrap(),
        std::slice::from_ref(&row)
    );
    assert_eq!(store.corrections(None).await.unwrap(), [row, other]);

    let view = store.desired_state().await.unwrap();
    let resource = &view.resources[0];
    assert_eq!(
        (resource.r#type.as_str(), resource.name.as_str()),
        ("correction", "default/notes.read")
    );
    assert_eq!(resource.namespaces, ["default"]);
    let changes = store.changes_after(before, 10).await.unwrap();
    assert_eq!(changes[0].resources[0].resource.as_ref(), Some(resource));
    assert!(changes[0].resources[0].namespaces_before.is_empty());
}

pub(super) async fn a_lost_update_of_a_correction_is_refused(fixture: &Fixture) {
    let store = &fixture.store;
    let correct = |draft, expected| store.put_correction(draft, expected, act("mesh.tool_correct"));
    correct(draft("default", Some("delete")), Expected::Absent)
        .await
        .unwrap();
    let late = correct(draft("default", Some("write")), Expected::Absent).await;
    assert!(matches!(late, Err(StoreError::Precondition { found: 1, .. })));
    let next = correct(draft("default", Some("write")), Expected::Version(1))
        .await
        .unwrap();
    assert_eq!(next.version, 2);
}

pub(super) async fn a_correction_that_says_nothing_is_taken_away(fixture: &Fixture) {
    let store = &fixture.store;
    let correct = |draft| store.put_correction(draft, Expected::Any, act("mesh.tool_correct"));
    let none = correct(draft("default", None)).await.unwrap();
    assert_eq!(none.version, 0);
    assert!(store.desired_state().await.unwrap().resources.is_empty());
    let made = correct(draft("default", Some("delete"))).await.unwrap();
    let gone = correct(draft("default", None)).await.unwrap();
    assert_eq!(
        (gone.version, gone.revision.number),
        (0, made.revision.number + 1)
    );
    assert!(store.corrections(None).await.unwrap().is_empty());
    let changes = store.changes_after(made.revision, 10).await.unwrap();
    assert_eq!(changes[0].resources[0].resource, None);
    assert_eq!(changes[0].resources[0].namespaces_before, ["default"]);
    let replica = fixture.replica().await;
    assert_eq!(replica.desired_state().await.unwrap().revision, gone.revision);
    replica.close().await;
}
