use super::{Fixture, act};
use crate::store::{
    StoreError,
    catalogue::{Acceptance, DeclaredTool, PinStatus, Pinning, Publication},
};

fn tool(name: &str, version: u8) -> DeclaredTool {
    DeclaredTool {
        name: format!("notes.{name}"),
        kind: "mcp".to_owned(),
        fingerprint: [version; 32],
        declared: format!("{{\"version\":{version}}}").into(),
    }
}

fn publication(sidecar: &str, pinning: Pinning, tools: Vec<DeclaredTool>) -> Publication {
    Publication {
        namespace: "default".to_owned(),
        upstream: "notes".to_owned(),
        sidecar: sidecar.to_owned(),
        pinning,
        tools,
    }
}

/// What a service without a name declares: one tool without a prefix.
pub(super) fn unprefixed(upstream: &str, name: &str) -> Publication {
    let declared = DeclaredTool {
        name: name.to_owned(),
        kind: "openapi".to_owned(),
        ..tool("", 1)
    };
    Publication {
        upstream: upstream.to_owned(),
        ..publication("s1", Pinning::Trust, vec![declared])
    }
}

pub(super) async fn the_first_use_pins_an_upstream_whole(fixture: &Fixture) {
    let store = &fixture.store;
    let before = store.head().await.unwrap().revision;
    let seen = publication("s1", Pinning::Trust, vec![tool("list", 1), tool("read", 1)]);
    let published = store.publish_catalogue(seen.clone()).await.unwrap();
    assert!(published.pinned_now);
    assert!(
        published
            .pins
            .iter()
            .all(|(_, status)| *status == PinStatus::Pinned)
    );
    assert_eq!(published.revision.number, before.number + 1);
    let again = store.publish_catalogue(seen).await.unwrap();
    assert_eq!((again.revision, again.pinned_now), (published.revision, false));
    let view = store.desired_state().await.unwrap();
    assert_eq!(view.resources[0].name, "default/notes.list");
    assert_eq!(view.resources[0].namespaces, ["default"]);
    let off = store
        .publish_catalogue(publication("s1", Pinning::Off, vec![tool("list", 9)]))
        .await
        .unwrap();
    assert!(off.pins.is_empty());
}

pub(super) async fn a_tool_without_a_prefix_is_one_upstreams(fixture: &Fixture) {
    let store = &fixture.store;
    let of = |upstream: &str, sidecar: &str| Publication {
        sidecar: sidecar.to_owned(),
        ..unprefixed(upstream, "get_pets")
    };
    store.publish_catalogue(of("pets", "s1")).await.unwrap();
    store.publish_catalogue(of("pets", "s2")).await.unwrap();
    let foreign = store.publish_catalogue(of("evil", "s3")).await.unwrap_err();
    assert!(matches!(foreign, StoreError::Invalid { .. }), "{foreign}");
    assert!(
        foreign
            .to_string()
            .contains("`get_pets` is one of the upstream `pets` too"),
        "{foreign}"
    );
    let elsewhere = Publication {
        namespace: "other".to_owned(),
        ..of("evil", "s4")
    };
    store.publish_catalogue(elsewhere).await.unwrap();
}

pub(super) async fn a_later_tool_is_new_and_a_different_one_changed(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![tool("list", 1)]))
        .await
        .unwrap();
    let next = publication("s1", Pinning::Trust, vec![tool("list", 2), tool("delete", 1)]);
    let published = store.publish_catalogue(next).await.unwrap();
    assert_eq!(
        published.pins,
        [
            ("notes.list".to_owned(), PinStatus::Changed),
            ("notes.delete".to_owned(), PinStatus::New)
        ]
    );
    // Removed and added again: the pin is kept.
    store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![]))
        .await
        .unwrap();
    let back = store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![tool("list", 1)]))
        .await
        .unwrap();
    assert_eq!(back.pins[0].1, PinStatus::Pinned);
    // Under review nothing is trusted by itself.
    let other = Publication {
        upstream: "other".into(),
        ..publication("s1", Pinning::Review, vec![tool("x", 1)])
    };
    assert_eq!(
        store.publish_catalogue(other).await.unwrap().pins[0].1,
        PinStatus::New
    );
}

pub(super) async fn exactly_what_was_shown_is_accepted(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![tool("list", 1)]))
        .await
        .unwrap();
    store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![tool("list", 2)]))
        .await
        .unwrap();
    let shown = Acceptance {
        tool: "notes.list".to_owned(),
        fingerprint: [2; 32],
    };
    store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![tool("list", 3)]))
        .await
        .unwrap();
    let late = store
        .accept_pins("default", vec![shown], act("mesh.pin_accept"))
        .await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    let held = store.tools(Some("default")).await.unwrap();
    assert_eq!(held[0].status(), PinStatus::Changed);
    assert_eq!(held[0].pin.as_ref().unwrap().declared, r#"{"version":1}"#);
    let shown = Acceptance {
        tool: "notes.list".to_owned(),
        fingerprint: held[0].seen[0].fingerprint,
    };
    let before = store.head().await.unwrap().revision;
    let revision = store
        .accept_pins("default", vec![shown.clone()], act("mesh.pin_accept"))
        .await
        .unwrap();
    assert_eq!(revision.number, before.number + 1);
    assert_eq!(
        store
            .accept_pins("default", vec![shown], act("mesh.pin_accept"))
            .await
            .unwrap(),
        revision
    );
    assert_eq!(store.tools(None).await.unwrap()[0].status(), PinStatus::Pinned);
    let missing = Acceptance {
        tool: "notes.none".to_owned(),
        fingerprint: [2; 32],
    };
    let missing = store
        .accept_pins("default", vec![missing], act("mesh.pin_accept"))
        .await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}

pub(super) async fn each_sidecar_is_seen_with_its_version(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .publish_catalogue(publication("s1", Pinning::Trust, vec![tool("list", 1)]))
        .await
        .unwrap();
    store
        .publish_catalogue(publication("s2", Pinning::Trust, vec![tool("list", 1)]))
        .await
        .unwrap();
    store
        .publish_catalogue(publication("s3", Pinning::Trust, vec![tool("list", 2)]))
        .await
        .unwrap();
    let tools = store.tools(Some("default")).await.unwrap();
    assert_eq!(tools.len(), 1);
    let seen = |version: u8| {
        tools[0]
            .seen
            .iter()
            .find(|seen| seen.fingerprint == [version; 32])
            .unwrap()
            .sidecars
            .clone()
    };
    assert_eq!(seen(1), ["s1", "s2"]);
    assert_eq!(seen(2), ["s3"]);
    assert!(store.tools(Some("elsewhere")).await.unwrap().is_empty());
}
