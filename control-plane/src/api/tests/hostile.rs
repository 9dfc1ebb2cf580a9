//! What strangers send.

use super::door::ROUTES;
use super::{Ask, World};

fn bodies() -> Vec<Vec<u8>> {
    let mut deep = b"{\"reason\":".to_vec();
    deep.extend(std::iter::repeat_n(b'[', 100_000));
    let mut bodies: Vec<Vec<u8>> = vec![
        b"{".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"\"text\"".to_vec(),
        b"{\"a\":1}{\"a\":1}".to_vec(),
        b"{\"by\":\"a\",\"by\":\"b\"}".to_vec(),
        b"{\"no_such_field\":1}".to_vec(),
        b"{\"by\":{\"a\":1},\"reason\":[],\"version\":\"x\",\"text\":1,\"resolved_by\":3}".to_vec(),
        b"{\"by\":\"\\u0000\",\"reason\":\"\\u0000\",\"text\":\"\\u0000\"}".to_vec(),
        b"{\"by\":\"\\ud800\"}".to_vec(),
        b"{\"by\":\"\xff\xfe\"}".to_vec(),
        b"{\"version\":1e999999999,\"confidence\":1e999}".to_vec(),
        b"{\"version\":-1,\"uses\":99999999999999999999}".to_vec(),
        b"\xff\xfe\x00\x01".to_vec(),
        b"a: &a [*a, *a]\n".to_vec(),
        deep,
    ];
    bodies.push(vec![b' '; 5 << 20]);
    bodies
}

#[tokio::test]
async fn a_hostile_body_is_refused_and_changes_nothing() {
    let world = World::new().await;
    for (method, path) in ROUTES
        .into_iter()
        .filter(|(method, _)| ["POST", "PUT"].contains(method))
    {
        for body in bodies() {
            for kind in [None, Some("application/json"), Some("text/plain")] {
                let mut ask = Ask::new(method, path).operator().body(body.clone());
                if let Some(kind) = kind {
                    ask = ask.with("content-type", kind);
                }
                let got = ask.send(&world).await;
                let start = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
                // Checking a text is what this path is for, and says so.
                if path == "/policies/validate" && got.status == 200 {
                    assert_eq!(got.json()["valid"], false, "{start}");
                    continue;
                }
                assert!(got.status.is_client_error(), "{method} {path} {start}: {got:?}");
                let status = got.status.as_u16();
                got.problem(status);
            }
        }
    }
    assert!(world.acts().await.iter().all(|(_, by)| by == "configuration"));
}

#[tokio::test]
async fn a_hostile_path_or_query_is_refused() {
    let world = World::new().await;
    let long = "x".repeat(3_000);
    for path in [
        "/policies/%FF".to_owned(),
        "/policies/%00".to_owned(),
        "/policies/a%00b/versions".to_owned(),
        "/approvals/%C3%28".to_owned(),
        format!("/approvals/{long}"),
        "/traces?agent=%00".to_owned(),
        "/traces?limit=-1".to_owned(),
        "/traces?limit=99999999999".to_owned(),
        "/traces?limit=1&limit=2".to_owned(),
        "/traces?cursor=1.18446744073709551615".to_owned(),
        "/traces?what=ever".to_owned(),
        "/approvals?status=%27%3B%20DROP%20TABLE".to_owned(),
        "/stops?all=perhaps".to_owned(),
        "/rollouts/%20".to_owned(),
    ] {
        world.get(&path).await.problem(400);
    }
    for path in [
        "/approvals/%25",
        "/approvals/_",
        "/grants/%27",
        "/traces/%25",
        "/sidecars/%2e%2e%2fx",
    ] {
        let got = world.get(path).await;
        assert!(got.status.is_client_error(), "{path}: {got:?}");
    }
    // A fragment of a pattern is no pattern in an id.
    world.asks("a", "x.y").await;
    world.get("/approvals/%25").await.problem(404);
    world.get("/approvals/_").await.problem(404);
}
