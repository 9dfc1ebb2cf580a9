//! Who comes in.

use http::{HeaderMap, HeaderValue, header};

use super::{Ask, TOKEN, World};

/// Every path that is not public.
pub(super) const ROUTES: [(&str, &str); 52] = [
    ("GET", "/policies"),
    ("POST", "/policies/validate"),
    ("GET", "/policies/a"),
    ("PUT", "/policies/a"),
    ("DELETE", "/policies/a"),
    ("GET", "/policies/a/versions"),
    ("POST", "/policies/a/rollback"),
    ("GET", "/approvals"),
    ("GET", "/approvals/1"),
    ("POST", "/approvals/1/approve"),
    ("POST", "/approvals/1/deny"),
    ("GET", "/grants"),
    ("POST", "/grants"),
    ("DELETE", "/grants/1"),
    ("GET", "/stops"),
    ("POST", "/stops"),
    ("POST", "/stops?wait=applied"),
    ("DELETE", "/stops/1"),
    ("GET", "/traces"),
    ("GET", "/traces/1"),
    ("GET", "/traces/verify"),
    ("GET", "/traces/export"),
    ("GET", "/traces/keys"),
    ("GET", "/traces/checkpoints"),
    ("GET", "/traces/gaps"),
    ("GET", "/sessions"),
    ("GET", "/sessions/1"),
    ("GET", "/sidecars"),
    ("GET", "/sidecars/1"),
    ("DELETE", "/sidecars/1"),
    ("GET", "/sidecars/tokens"),
    ("POST", "/sidecars/tokens"),
    ("DELETE", "/sidecars/tokens/1"),
    ("GET", "/rollouts/latest"),
    ("GET", "/rollouts/1.1"),
    ("GET", "/settings/fleet"),
    ("PUT", "/settings/fleet"),
    ("POST", "/generation"),
    ("GET", "/tools"),
    ("GET", "/tools/decisions?agent=a"),
    ("GET", "/tools/pins"),
    ("POST", "/tools/pins/accept"),
    ("GET", "/tools/notes.read"),
    ("PATCH", "/tools/notes.read"),
    ("PUT", "/tools/notes.read/extractor"),
    ("DELETE", "/tools/notes.read/extractor"),
    ("POST", "/tools/notes.read/extractor/test"),
    ("GET", "/metrics"),
    ("GET", "/health"),
    ("GET", "/nothing/here"),
    ("PATCH", "/policies"),
    ("HEAD", "/traces"),
];

#[tokio::test]
async fn nobody_but_an_operator_opens_any_path() {
    let world = World::new().await;
    let join_token = world.plane.local_join_token().await.unwrap();
    for (method, path) in ROUTES {
        for peer in ["127.0.0.1:4000", "192.0.2.7:4000"] {
            let ask = || Ask::new(method, path).from(peer);
            let anonymous = ask().send(&world).await;
            assert_eq!(anonymous.status, 401, "{method} {path}");
            assert_eq!(anonymous.header(header::WWW_AUTHENTICATE), "Bearer");
            for token in ["agent:x", "agent:", "agent:*"] {
                let agent = ask().bearer(token).send(&world).await;
                assert_eq!(agent.status, 403, "{method} {path} {token}");
            }
            for token in [
                join_token.as_str(),
                "",
                "wrong",
                "the-operators-own-token2",
                "the-operators-own-toke",
            ] {
                let stranger = ask().bearer(token).send(&world).await;
                assert_eq!(stranger.status, 401, "{method} {path}");
            }
            let forwarded = ask().with("x-forwarded-for", "127.0.0.1").send(&world).await;
            assert_eq!(forwarded.status, 401, "{method} {path}");
            let twice = ask().operator().bearer("agent:x").send(&world).await;
            assert_eq!(twice.status, 401, "{method} {path}");
        }
    }
    assert!(
        world
            .acts()
            .await
            .iter()
            .all(|(_, by)| by == "configuration" || by == "system")
    );
}

#[tokio::test]
async fn the_operator_opens_every_path() {
    let world = World::new().await;
    for (method, path) in ROUTES {
        let got = Ask::new(method, path).operator().send(&world).await;
        assert!(
            ![401, 403].contains(&got.status.as_u16()),
            "{method} {path}: {got:?}"
        );
        assert!(!got.status.is_server_error(), "{method} {path}: {got:?}");
    }
}

#[tokio::test]
async fn what_tells_nothing_is_public() {
    let world = World::new().await;
    for path in ["/healthz", "/readyz", "/version"] {
        Ask::new("GET", path).send(&world).await.expect(200);
        Ask::new("POST", path).send(&world).await.problem(405);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let world = World::new().await;
    world.get("/nothing").await.problem(404);
    let got = Ask::new("PATCH", "/policies").operator().send(&world).await;
    assert!(got.header(header::ALLOW).contains("GET"));
    got.problem(405);
}

#[tokio::test]
async fn the_scheme_is_read_without_regard_to_case() {
    let world = World::new().await;
    let ask = Ask::new("GET", "/policies").with("authorization", &format!("bEARER {TOKEN}"));
    ask.send(&world).await.expect(200);
}

#[tokio::test]
async fn a_local_caller_is_an_operator_only_where_the_installation_says_so() {
    let world = World::of(|options| options.loopback_operators = true).await;
    let local = |method, path| {
        Ask::new(method, path)
            .with("host", "localhost:9095")
            .from("127.0.0.1:4000")
    };
    local("GET", "/policies").send(&world).await.expect(200);
    local("GET", "/policies")
        .bearer("agent:x")
        .send(&world)
        .await
        .expect(200);
    local("GET", "/policies")
        .from("[::ffff:127.0.0.1]:4000")
        .send(&world)
        .await
        .expect(200);
    local("GET", "/policies")
        .from("192.0.2.7:4000")
        .send(&world)
        .await
        .problem(401);
    local("GET", "/policies")
        .from("192.0.2.7:4000")
        .bearer("agent:x")
        .send(&world)
        .await
        .problem(403);
    Ask::new("GET", "/policies")
        .operator()
        .send(&world)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_act_through_the_readers_browser() {
    let world = World::of(|options| options.loopback_operators = true).await;
    let stop = |host: &str| {
        Ask::new("POST", "/stops")
            .with("host", host)
            .from("127.0.0.1:4000")
            .body(r#"{"scope":"all"}"#)
    };
    stop("evil.example:9095").send(&world).await.problem(403);
    stop("localhost:9095")
        .with("origin", "https://evil.example")
        .send(&world)
        .await
        .problem(403);
    stop("localhost:9095")
        .with("origin", "http://localhost:3000")
        .send(&world)
        .await
        .problem(403);
    stop("localhost:9095")
        .with("sec-fetch-site", "cross-site")
        .send(&world)
        .await
        .problem(403);
    assert_eq!(world.get("/stops").await.expect(200).as_array().unwrap().len(), 0);
    stop("localhost:9095")
        .with("origin", "http://localhost:9095")
        .send(&world)
        .await
        .expect(201);
}

#[tokio::test]
async fn others_in_this_process_can_ask_who_is_an_operator() {
    let strict = World::new().await;
    let open = World::of(|options| options.loopback_operators = true).await;
    let headers = |token: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:9090"));
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        headers
    };
    let asks = async |world: &World, token: &str, namespace: &str| {
        let asked = world.plane.check_asking(&headers(token), namespace).await;
        asked.map_or_else(|problem| problem.status().as_u16(), |()| 200)
    };
    assert_eq!(asks(&strict, TOKEN, "default").await, 200);
    for world in [&strict, &open] {
        assert_eq!(asks(world, "agent:x", "default").await, 401);
    }
    let made = async |role: &str, namespaces: &str| {
        let body = format!(r#"{{"name": "ci", "role": "{role}", "namespaces": {namespaces}}}"#);
        let made = Ask::new("POST", "/tokens")
            .operator()
            .body(body)
            .send(&strict)
            .await;
        made.expect(201)["token"].as_str().unwrap().to_owned()
    };
    assert_eq!(asks(&strict, &made("viewer", "[]").await, "default").await, 403);
    let confined = made("approver", r#"["team-a"]"#).await;
    assert_eq!(asks(&strict, &confined, "team-a").await, 200);
    assert_eq!(asks(&strict, &confined, "default").await, 403);
}
