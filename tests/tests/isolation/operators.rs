//! The paths of operators, and the credentials of everybody else.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use tests::fleet::{Fleet, SidecarOptions, TOKEN};
use tests::operator::Operator;
use tests::process::Process;
use tests::programs::{built, checkout};
use tests::raw::RawSidecar;
use tests::wait;

use super::LASTING;

/// Every guarded route of the operators' API, read from where it is put together, so that a new one is tested too.
fn operator_routes() -> Vec<(Method, String)> {
    let source = std::fs::read_to_string(checkout().join("control-plane/src/api/mod.rs")).unwrap();
    let public = ["/healthz", "/readyz", "/version"];
    let mut routes = Vec::new();
    for (word, method) in [
        (".get(", Method::GET),
        (".post(", Method::POST),
        (".put(", Method::PUT),
        (".patch(", Method::PATCH),
        (".delete(", Method::DELETE),
    ] {
        for route in source.split(word).skip(1) {
            let path = route
                .trim_start()
                .strip_prefix('"')
                .and_then(|rest| rest.split('"').next());
            let Some(path) = path.filter(|path| !public.contains(path)) else {
                continue;
            };
            let path = path.replace("{revision}", "latest").replace(['{', '}'], "");
            routes.push((method.clone(), path));
        }
    }
    let known = [
        "/policies/name",
        "/traces/export",
        "/sidecars/tokens",
        "/generation",
        "/metrics",
    ];
    for path in known {
        assert!(
            routes.iter().any(|(_, route)| route == path),
            "{path} is no route"
        );
    }
    assert!(routes.len() >= 55, "{}", routes.len());
    routes
}

async fn refused(operator: &Operator, credential: Option<&str>, method: &Method, path: &str) -> u16 {
    let request = match credential {
        Some(credential) => operator.with_token(credential).request(method.clone(), path),
        None => operator.anonymous(method.clone(), path),
    };
    let (status, body) = operator.try_send(request.json(&json!({"reason": "mine"}))).await;
    assert!([401, 403].contains(&status), "{method} {path}: {status} {body}");
    assert!(body["error"].is_string(), "{method} {path}: {body}");
    status
}

#[tokio::test]
async fn the_credentials_of_agents_and_sidecars_are_refused_on_every_operator_path() {
    let fleet = Fleet::on_sqlite(LASTING).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let operator = fleet.operator();
    let all = vec!["*".to_owned()];
    let join_token = fleet.join_token("default", &all).await;
    let raw = RawSidecar::enrol(&fleet, &join_token, &all).await.unwrap();
    let before = operator.get("/traces?limit=1").await[0]["seq"].clone();
    let routes = operator_routes();
    for (method, path) in &routes {
        for agent in ["agent:one", "agent:*", "agent:operator"] {
            assert_eq!(
                refused(&operator, Some(agent), method, path).await,
                403,
                "{method} {path}"
            );
        }
        for stranger in [
            raw.credential(),
            &raw.enrolled.renewal_secret,
            &join_token,
            "guessed",
        ] {
            assert_eq!(
                refused(&operator, Some(stranger), method, path).await,
                401,
                "{method} {path}"
            );
        }
        assert_eq!(
            refused(&operator, None, method, path).await,
            401,
            "{method} {path}"
        );
    }
    assert_eq!(
        operator.get("/traces?limit=1").await[0]["seq"],
        before,
        "nothing was done"
    );
    assert_eq!(operator.get("/stops").await, json!([]));

    // On a sidecar there is no operator path, whoever asks.
    let own = BTreeSet::from(["/tools", "/health", "/metrics"]);
    let here = Operator::new(&sidecar.url, TOKEN, None);
    for (method, path) in routes.iter().filter(|(_, path)| !own.contains(path.as_str())) {
        for credential in ["agent:one", TOKEN] {
            let request = here.with_token(credential).request(method.clone(), path);
            let (status, body) = here.try_send(request).await;
            assert_eq!(status, 404, "{method} {path}: {body}");
        }
    }
}

#[tokio::test]
async fn an_agents_credential_is_refused_on_every_operator_path_of_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let port = tests::fleet::free_port();
    let file = folder.path().join("config.yaml");
    std::fs::write(
        &file,
        format!("port: {port}\ndata_dir: {}\n", folder.path().display()),
    )
    .unwrap();
    let mut command = std::process::Command::new(built("toolgate"));
    command
        .args(["up", "--config"])
        .arg(&file)
        .env("TOOLGATE_ADMIN_TOKEN", TOKEN);
    let mut up = Process::spawn(command, &folder.path().join("log"));
    let operator = Operator::new(&format!("http://127.0.0.1:{port}"), TOKEN, None);
    wait::until("both planes are up", || async {
        let ready = operator.try_send(operator.request(Method::GET, "/readyz")).await;
        (ready.0 == 200).then_some(())
    })
    .await;
    // Agents have these paths too, with answers of their own.
    let shared = BTreeSet::from(["/tools", "/health"]);
    let routes = operator_routes();
    for (method, path) in routes.iter().filter(|(_, path)| !shared.contains(path.as_str())) {
        assert_eq!(
            refused(&operator, Some("agent:one"), method, path).await,
            403,
            "{method} {path}"
        );
        assert_eq!(
            refused(&operator, None, method, path).await,
            401,
            "{method} {path}"
        );
    }
    assert!(up.terminate().success());
}
