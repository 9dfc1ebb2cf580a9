#![allow(
    clippy::disallowed_methods,
    reason = "the test ends its server and its tasks with its runtime"
)]

mod service;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use service::{Service, document};

use super::*;
use crate::upstream::{
    RetryPolicy, Upstream, UpstreamAnswer, UpstreamError, UpstreamLimits, UpstreamRequest, Upstreams,
};

fn spec(name: &str, document: DocumentPlace) -> OpenApiSpec {
    OpenApiSpec {
        name: name.into(),
        is_prefixed: false,
        place: usize::from(name == "second"),
        document,
        backend_url: None,
        headers: vec![("X-Key".to_owned(), "hunter2".to_owned())],
        include: Vec::new(),
        proxy: None,
        timeout: Duration::from_secs(20),
        keep_in: None,
        limits: UpstreamLimits::default(),
        retry: RetryPolicy {
            first: Duration::from_millis(20),
            ..RetryPolicy::default()
        },
    }
}

fn at(url: &str) -> DocumentPlace {
    DocumentPlace::Url(format!("{url}/openapi.json"))
}

async fn read(upstreams: &Upstreams, name: &str) -> Upstream {
    let upstream = upstreams.get(name).unwrap();
    let mut catalogue = upstream.catalogue();
    let waited = tokio::time::timeout(
        Duration::from_secs(30),
        catalogue.wait_for(|catalogue| catalogue.is_read),
    );
    waited
        .await
        .unwrap_or_else(|_| panic!("{:?}", upstream.state()))
        .unwrap();
    upstream
}

async fn started(url: &str) -> (Upstreams, Upstream) {
    let upstreams = Upstreams::start([spec("service", at(url))]);
    let upstream = read(&upstreams, "service").await;
    (upstreams, upstream)
}

fn request(tool: &str, arguments: &str) -> UpstreamRequest {
    UpstreamRequest {
        tool: tool.into(),
        arguments: Some(bytes::Bytes::from(arguments.to_owned())),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ..UpstreamRequest::default()
    }
}

async fn called(upstream: &Upstream, tool: &str) -> Result<UpstreamAnswer, UpstreamError> {
    upstream.call(request(tool, "{}")).await
}

async fn result(upstream: &Upstream, tool: &str) -> Value {
    let answer = called(upstream, tool).await.unwrap();
    serde_json::from_slice(&answer.raw).unwrap()
}

#[tokio::test]
async fn answers_become_results_by_their_status_and_media_type() {
    let paths = [
        "/object", "/list", "/twice", "/missing", "/empty", "/image", "/binary", "/latin",
    ];
    let (_service, url) = Service::start(&document(&paths)).await;
    let (_upstreams, upstream) = started(&url).await;
    let raw = called(&upstream, "get_object").await.unwrap().raw;
    let text = std::str::from_utf8(&raw).unwrap();
    assert!(
        text.contains(r#""structuredContent":{"n": 1.00, "big": 12345678901234567890}"#),
        "{text}"
    );
    assert!(
        text.contains(r#""text":" {\"n\": 1.00"#) && text.contains(r#""isError":false"#),
        "{text}"
    );
    let list = result(&upstream, "get_list").await;
    assert_eq!(
        (&list["content"][0]["text"], &list["structuredContent"]),
        (&json!("[1]"), &Value::Null)
    );
    let twice = result(&upstream, "get_twice").await;
    assert_eq!(
        twice["structuredContent"],
        Value::Null,
        "an object that can be read in two ways is only text"
    );
    let missing = result(&upstream, "get_missing").await;
    assert_eq!(missing["isError"], true);
    assert_eq!(missing["content"][0]["text"], "HTTP 404 Not Found");
    assert_eq!(missing["content"][1]["text"], "{\"title\":\"gone\"}");
    assert_eq!(missing["structuredContent"], json!({"title": "gone"}));
    assert_eq!(missing["_meta"]["art.flux7/status"], 404);
    let empty = result(&upstream, "get_empty").await;
    assert_eq!(
        (&empty["isError"], &empty["content"][0]["text"]),
        (&json!(false), &json!("HTTP 204 No Content"))
    );
    let image = result(&upstream, "get_image").await;
    assert_eq!(
        image["content"][0],
        json!({"type": "image", "data": "iVBOR/8=", "mimeType": "image/png"})
    );
    let binary = result(&upstream, "get_binary").await;
    assert_eq!(
        binary["content"][0]["resource"],
        json!({"uri": format!("{url}/binary"), "mimeType": "application/zip", "blob": "AAEC"})
    );
    assert_eq!(result(&upstream, "get_latin").await["content"][0]["text"], "gün");
}

#[tokio::test]
async fn a_request_carries_what_the_operator_configured_and_the_calls_trace() {
    let (service, url) = Service::start(&document(&["/object"])).await;
    let (_upstreams, upstream) = started(&url).await;
    let answer = upstream
        .call(request("get_object", r#"{"q":"a&b","x-key":"mine"}"#))
        .await;
    assert!(answer.is_ok());
    assert_eq!(
        service.asked(),
        ["GET /object?q=a%26b key=hunter2 trace=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 "]
    );
    assert!(!format!("{upstream:?}").contains("hunter2"));
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_the_call_and_nothing_is_kept_of_it() {
    let (_service, url) = Service::start(&document(&["/huge", "/object"])).await;
    let (_upstreams, upstream) = started(&url).await;
    let error = called(&upstream, "get_huge").await.unwrap_err();
    assert!(matches!(error, UpstreamError::TooLarge { .. }), "{error}");
    assert!(called(&upstream, "get_object").await.is_ok());
}

#[tokio::test]
async fn only_what_may_run_twice_is_sent_again() {
    let (service, url) = Service::start(&document(&["/flaky"])).await;
    let (_upstreams, upstream) = started(&url).await;
    let posted = result(&upstream, "post_flaky").await;
    assert_eq!((&posted["isError"], service.asked().len()), (&json!(true), 1));
    service.failures.store(0, Ordering::SeqCst);
    let got = result(&upstream, "get_flaky").await;
    assert_eq!((&got["isError"], service.asked().len()), (&json!(false), 4));
}

#[tokio::test]
async fn a_call_ends_at_its_bound_and_when_it_is_cancelled() {
    let (service, url) = Service::start(&document(&["/slow"])).await;
    let mut quick = spec("service", at(&url));
    quick.timeout = Duration::from_millis(200);
    let upstreams = Upstreams::start([quick]);
    let upstream = read(&upstreams, "service").await;
    let error = called(&upstream, "get_slow").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Timeout { .. }), "{error}");
    let (_patient, upstream) = started(&url).await;
    let asked = request("get_slow", "{}");
    let cancel = asked.cancel.clone();
    let calling = tokio::spawn(async move { upstream.call(asked).await });
    while service.asked().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert!(matches!(error, UpstreamError::Cancelled { .. }), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    let (_service, url) = Service::start(&document(&["/away"])).await;
    let (_upstreams, upstream) = started(&url).await;
    let error = called(&upstream, "get_away").await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("cannot be sent this call") && said.contains("another origin"),
        "{said}"
    );
}

#[tokio::test]
async fn metadata_addresses_are_never_asked() {
    for place in [
        "http://169.254.169.254",
        "http://metadata.google.internal",
        "http://[fe80::1]",
    ] {
        let upstreams = Upstreams::start([spec("service", at(place))]);
        let upstream = upstreams.get("service").unwrap();
        let error = loop {
            if let Some(error) = upstream.state().last_error {
                break error;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(error.contains("no request may reach"), "{error}");
    }
    let (_service, url) = Service::start(&document(&["/object"])).await;
    let mut elsewhere = spec("service", at(&url));
    elsewhere.backend_url = Some("http://169.254.169.254/latest".to_owned());
    let upstreams = Upstreams::start([elsewhere]);
    let upstream = read(&upstreams, "service").await;
    let error = called(&upstream, "get_object").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn the_last_good_document_is_used_while_none_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let keeping = |place: DocumentPlace| OpenApiSpec {
        keep_in: Some(folder.path().join("openapi")),
        ..spec("service", place)
    };
    let (service, url) = Service::start(&document(&["/object"])).await;
    let upstreams = Upstreams::start([keeping(at(&url))]);
    read(&upstreams, "service").await;
    upstreams.shutdown().await;
    service.stop.cancel();
    let address = url.strip_prefix("http://").unwrap().to_owned();
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let upstreams = Upstreams::start([keeping(at(&url))]);
    let upstream = read(&upstreams, "service").await;
    let state = upstream.state();
    assert_eq!((state.status(), state.tools), ("connected", 2));
    assert!(
        state.last_error.is_some(),
        "and it says that the document is an old one"
    );

    let service = Service::default();
    *service.document.lock().unwrap() = document(&["/object", "/list"]).to_string();
    service.serve(tokio::net::TcpListener::bind(&address).await.unwrap());
    let mut catalogue = upstream.catalogue();
    catalogue
        .wait_for(|catalogue| catalogue.tools.len() == 4)
        .await
        .unwrap();
    assert_eq!(upstream.state().last_error, None);
}

#[tokio::test]
async fn a_document_that_got_worse_changes_nothing_and_one_that_got_better_is_read_when_asked() {
    let (service, url) = Service::start(&document(&["/object"])).await;
    let (_upstreams, upstream) = started(&url).await;
    *service.document.lock().unwrap() = "{\"openapi\":\"9\"}".to_owned();
    upstream.reread();
    let error = loop {
        if let Some(error) = upstream.state().last_error {
            break error;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(error.contains("neither OpenAPI 3.0"), "{error}");
    assert!(called(&upstream, "get_object").await.is_ok());
    *service.document.lock().unwrap() = document(&["/list"]).to_string();
    upstream.reread();
    let mut catalogue = upstream.catalogue();
    let is_new = |name: &str| name == "get_list";
    catalogue
        .wait_for(|catalogue| catalogue.tools.iter().any(|tool| is_new(&tool.name)))
        .await
        .unwrap();
    let gone = called(&upstream, "get_object").await.unwrap_err();
    assert!(
        matches!(gone, UpstreamError::Refused { .. }) && !gone.may_have_run(),
        "{gone}"
    );
}

#[tokio::test]
async fn a_call_that_was_decided_about_another_declaration_is_not_sent() {
    let (service, url) = Service::start(&document(&["/object"])).await;
    let (_upstreams, upstream) = started(&url).await;
    let mut other = request("get_object", "{}");
    other.fingerprint = Some(tools::fingerprint::Fingerprint::from_bytes([7; 32]));
    assert!(matches!(
        upstream.call(other).await,
        Err(UpstreamError::Refused { .. })
    ));
    assert!(service.asked().is_empty());
}

#[tokio::test]
async fn of_two_services_with_one_tool_the_first_of_the_configuration_has_it_and_the_other_says_what_to_do() {
    let (_one, first) = Service::start(&document(&["/object"])).await;
    let (_two, second) = Service::start(&document(&["/object", "/list"])).await;
    let upstreams = Upstreams::start([spec("first", at(&first)), spec("second", at(&second))]);
    let loser = upstreams.get("second").unwrap();
    while loser.state().status() != "failed" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = loser.state().last_error.unwrap();
    assert!(
        error.contains("get_object") && error.contains("first") && error.contains("`name`"),
        "{error}"
    );
    assert_eq!(loser.state().tools, 0);
    let winner = read(&upstreams, "first").await;
    assert!(called(&winner, "get_object").await.is_ok());
    assert!(called(&loser, "get_list").await.is_err());

    let named = OpenApiSpec {
        is_prefixed: true,
        ..spec("second", at(&second))
    };
    let upstreams = Upstreams::start([spec("first", at(&first)), named]);
    assert!(
        called(&read(&upstreams, "second").await, "get_object")
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn documents_in_yaml_and_in_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (_service, url) = Service::start(&json!({})).await;
    let text = "openapi: 3.0.3\ninfo: {title: T, version: '1'}\npaths:\n  /object:\n    get:\n      operationId: get object\n      responses:\n        200: {description: ok}\n";
    let path = folder.path().join("spec.yaml");
    std::fs::write(&path, text).unwrap();
    let mut from_file = spec("service", DocumentPlace::File(path.clone()));
    from_file.backend_url = Some(url);
    let upstreams = Upstreams::start([from_file.clone()]);
    let upstream = read(&upstreams, "service").await;
    assert!(called(&upstream, "get_object").await.is_ok());
    for (broken, says) in [
        ("openapi: [", "not valid YAML"),
        ("", "empty"),
        (
            "openapi: 3.0.0\npaths: {/x: {get: {x: .nan}}}",
            "no number that JSON has",
        ),
        ("openapi: 3.0.0\nopenapi: 3.1.0", "given twice"),
    ] {
        std::fs::write(&path, broken).unwrap();
        let upstreams = Upstreams::start([from_file.clone()]);
        let upstream = upstreams.get("service").unwrap();
        let error = loop {
            if let Some(error) = upstream.state().last_error {
                break error;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(error.contains(says), "{broken}: {error}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_failure_that_names_it_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let (_service, url) = Service::start(&json!({})).await;
    let path = folder.path().join("spec.json");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (place, says) in [
        (path.clone(), "No such file"),
        (folder.path().to_owned(), "not a file"),
        // Both would be read without end.
        (pipe, "not a file"),
        ("/dev/zero".into(), "not a file"),
    ] {
        let upstreams = Upstreams::start([spec("service", DocumentPlace::File(place.clone()))]);
        let upstream = upstreams.get("service").unwrap();
        while upstream.state().status() != "failed" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = upstream.state().last_error.unwrap();
        assert!(
            error.contains(says) && error.contains(&place.display().to_string()),
            "{error}"
        );
    }
    let late = OpenApiSpec {
        backend_url: Some(url),
        ..spec("service", DocumentPlace::File(path.clone()))
    };
    let upstreams = Upstreams::start([late]);
    let upstream = upstreams.get("service").unwrap();
    while upstream.state().status() != "failed" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::write(&path, document(&["/object"]).to_string()).unwrap();
    read(&upstreams, "service").await;
    assert_eq!(upstream.state().status(), "connected");
}

#[tokio::test]
async fn a_service_that_is_removed_answers_nothing_more() {
    let (service, url) = Service::start(&document(&["/slow"])).await;
    let (upstreams, upstream) = started(&url).await;
    let (outcome, ()) = tokio::join!(called(&upstream, "get_slow"), async {
        while service.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let applied = upstreams.apply(Vec::<OpenApiSpec>::new());
        assert_eq!(applied.removed.len(), 1);
    });
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, UpstreamError::Lost { .. }) && error.may_have_run(),
        "{error}"
    );
    let late = called(&upstream, "get_slow").await.unwrap_err();
    assert!(
        matches!(late, UpstreamError::Unavailable { .. }) && !late.may_have_run(),
        "{late}"
    );
    assert_eq!(service.asked().len(), 1);
}

#[tokio::test]
async fn headers_that_cannot_be_sent_end_the_service_and_are_not_shown() {
    let mut broken = spec("service", at("http://127.0.0.1:1"));
    broken.headers = vec![("X-Key".to_owned(), "hunter2\n".to_owned())];
    let upstreams = Upstreams::start([broken]);
    let upstream = upstreams.get("service").unwrap();
    while upstream.state().status() != "failed" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!upstream.state().last_error.unwrap().contains("hunter2"));
}
