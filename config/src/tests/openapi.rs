//! OpenAPI services: what is read, and what each mistake is told.

use std::time::Duration;

use crate::Config;

fn problems(text: &str) -> Vec<String> {
    let environment = crate::Environment::default();
    let found = Config::parse("c.yaml", text, &environment).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_service_is_read_and_only_its_headers_are_expanded() {
    let text = r#"
openapi:
  - url: https://date.nager.at/swagger/v3/swagger.json
  - file: ./specs/internal-api.json
    backend_url: http://localhost:3001
    headers: {Authorization: "Bearer ${TOKEN}"}
    include: ["GET *", "POST /orders"]
    timeout: 5s
  - {url: "http://localhost:3002/openapi.yaml?key=${TOKEN}", name: internal}
"#;
    let environment = [("TOKEN", "hunter2")].into_iter().collect();
    let config = Config::parse("c.yaml", text, &environment).unwrap();
    let [nager, file, named] = config.openapi.as_slice() else {
        panic!("three services")
    };
    let names: Vec<String> = config.upstream_names().map(|name| name.to_string()).collect();
    assert_eq!(names, ["date-nager-at", "internal-api", "internal"]);
    assert_eq!(file.headers["Authorization"].expose(), "Bearer hunter2");
    assert_eq!(file.include.len(), 2);
    assert_eq!(
        (nager.timeout, file.timeout),
        (Duration::from_secs(30), Duration::from_secs(5))
    );
    assert_eq!(
        named.url.as_deref(),
        Some("http://localhost:3002/openapi.yaml?key=${TOKEN}")
    );
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn each_mistake_is_told_with_its_place() {
    for (service, expected) in [
        (
            "{name: a}",
            "an OpenAPI service needs the key \"url\" or \"file\"",
        ),
        (
            "{url: 'http://x/a', file: b, backend_url: 'http://x'}",
            "url and file exclude each other; keep one of them",
        ),
        (
            "{file: b}",
            "an OpenAPI service with file needs the key \"backend_url\": a file does not say where to call",
        ),
        (
            "{url: 'ftp://x/a'}",
            "expected a URL that starts with http:// or https:// and names a host",
        ),
        (
            "{url: 'http://u:p@x/a'}",
            "a URL must not hold a name or password",
        ),
        ("{url: 'http://x/../a'}", "url: expected a URL with a plain path"),
        (
            "{url: 'http://x/a', backend_url: 'http://x/?a=b'}",
            "backend_url: expected a URL with a plain path",
        ),
        ("{url: 'http://x/a', name: a.b}", "may hold only letters, digits"),
        (
            "{url: 'http://x/a', name: mesh}",
            "is reserved; choose another name",
        ),
        (
            "{url: 'http://x/a', include: ['GET']}",
            "is not a method and a path",
        ),
        (
            "{url: 'http://x/a', include: ['FETCH /x']}",
            "methods are GET, PUT",
        ),
        (
            "{url: 'http://x/a', headers: {'a b': c}}",
            "\"a b\" is not a header name",
        ),
        (
            "{url: 'http://x/a', headers: {A: '${NOT_SET}'}}",
            "the environment variable NOT_SET is not set",
        ),
        (
            "{url: 'http://x/a', headers: {A: \"a\\nb\"}}",
            "the value holds characters that no header may hold",
        ),
        (
            "{url: 'http://x/a', timeout: 3}",
            "expected a duration such as 4m30s",
        ),
        (
            "{url: 'http://x/a', prefix: b}",
            "unknown key \"prefix\" in an OpenAPI service",
        ),
    ] {
        let found = problems(&format!("openapi: [{service}]\n"));
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{service}: {found:?}"
        );
        assert!(found[0].starts_with("c.yaml:1:"), "{found:?}");
    }
}

#[test]
fn names_are_unique_among_upstreams_of_all_kinds() {
    let server = "mcp_servers: [{name: x, transport: stdio, command: a}]\n";
    for services in [
        "[{url: 'http://x/a', name: x}]",
        "[{url: 'http://x/a'}]",
        "[{url: 'http://y/a'}, {url: 'http://y/b'}]",
    ] {
        let found = problems(&format!("{server}openapi: {services}\n"));
        assert!(
            found[0].contains("is given to two upstreams; names are unique"),
            "{services}: {found:?}"
        );
    }
    let found = problems(&format!(
        "{server}openapi: [{{url: 'http://y/a'}}]\nexpose: {{prefix: never}}\n"
    ));
    assert!(
        found[0].contains("expose.prefix: never and openapi exclude each other"),
        "{found:?}"
    );
}
