//! The round trip of every parameter style.

use serde_json::json;
use tests::rest::{Asked, Rest};
use tests::up::Up;

use super::{POLICIES, service};

/// What a parameter's value becomes: a style, and how `"a b"`, `["x y","z"]` and `{"k":"v w","n":1}` are written.
struct Style {
    name: &'static str,
    place: &'static str,
    /// Members of the parameter in OpenAPI 3.
    open: &'static str,
    /// In Swagger 2.0, where it has the style for lists.
    swagger: Option<&'static str>,
    written: [&'static str; 3],
}

const fn style(
    name: &'static str,
    place: &'static str,
    open: &'static str,
    swagger: Option<&'static str>,
    written: [&'static str; 3],
) -> Style {
    Style {
        name,
        place,
        open,
        swagger,
        written,
    }
}

const STYLES: [Style; 19] = [
    style(
        "simple",
        "path",
        r#""style":"simple""#,
        Some("csv"),
        ["a%20b", "x%20y,z", "k,v%20w,n,1"],
    ),
    style(
        "simple_explode",
        "path",
        r#""style":"simple","explode":true"#,
        None,
        ["a%20b", "x%20y,z", "k=v%20w,n=1"],
    ),
    style(
        "label",
        "path",
        r#""style":"label""#,
        None,
        [".a%20b", ".x%20y,z", ".k,v%20w,n,1"],
    ),
    style(
        "label_explode",
        "path",
        r#""style":"label","explode":true"#,
        None,
        [".a%20b", ".x%20y.z", ".k=v%20w.n=1"],
    ),
    style(
        "matrix",
        "path",
        r#""style":"matrix""#,
        None,
        [";p=a%20b", ";p=x%20y,z", ";p=k,v%20w,n,1"],
    ),
    style(
        "matrix_explode",
        "path",
        r#""style":"matrix","explode":true"#,
        None,
        [";p=a%20b", ";p=x%20y;p=z", ";k=v%20w;n=1"],
    ),
    style(
        "form",
        "query",
        r#""style":"form","explode":true"#,
        Some("multi"),
        ["p=a%20b", "p=x%20y&p=z", "k=v%20w&n=1"],
    ),
    style(
        "form_joined",
        "query",
        r#""style":"form","explode":false"#,
        Some("csv"),
        ["p=a%20b", "p=x%20y,z", "p=k,v%20w,n,1"],
    ),
    style(
        "space",
        "query",
        r#""style":"spaceDelimited""#,
        Some("ssv"),
        ["p=a%20b", "p=x%20y%20z", "p=k%20v%20w%20n%201"],
    ),
    style(
        "pipe",
        "query",
        r#""style":"pipeDelimited""#,
        Some("pipes"),
        ["p=a%20b", "p=x%20y%7Cz", "p=k%7Cv%20w%7Cn%7C1"],
    ),
    style(
        "tab",
        "query",
        r#""style":"form""#,
        Some("tsv"),
        ["p=a%20b", "p=x%20y%09z", ""],
    ),
    style(
        "deep",
        "query",
        r#""style":"deepObject","explode":true"#,
        None,
        [
            "p=a%20b",
            "p%5B0%5D=x%20y&p%5B1%5D=z",
            "p%5Bk%5D=v%20w&p%5Bn%5D=1",
        ],
    ),
    style(
        "reserved",
        "query",
        r#""allowReserved":true"#,
        None,
        ["p=a%20b", "p=x%20y&p=z", "k=v%20w&n=1"],
    ),
    style(
        "json",
        "query",
        r#""content":{"application/json":{"schema":{}}}"#,
        None,
        [
            "p=%22a%20b%22",
            "p=%5B%22x%20y%22%2C%22z%22%5D",
            "p=%7B%22k%22%3A%22v%20w%22%2C%22n%22%3A1%7D",
        ],
    ),
    style(
        "header",
        "header",
        r#""style":"simple""#,
        Some("csv"),
        ["a b", "x y,z", "k,v w,n,1"],
    ),
    style(
        "header_explode",
        "header",
        r#""explode":true"#,
        None,
        ["a b", "x y,z", "k=v w,n=1"],
    ),
    style(
        "cookie",
        "cookie",
        r#""style":"form","explode":false"#,
        None,
        ["p=a%20b", "p=x%20y,z", "p=k,v%20w,n,1"],
    ),
    style(
        "cookie_explode",
        "cookie",
        r#""style":"form""#,
        None,
        ["p=a%20b", "p=x%20y; p=z", "k=v%20w; n=1"],
    ),
    style(
        "undeclared",
        "path",
        "",
        None,
        ["a%20b", "x%20y,z", "k,v%20w,n,1"],
    ),
];

/// A document of one version with an operation for each style that the version has.
fn styles(version: &str) -> String {
    let operations = STYLES.iter().filter_map(|style| {
        let path = if style.place == "path" { format!("/{}/{{p}}", style.name) } else { format!("/{}", style.name) };
        let required = style.place == "path";
        let parameter = match (version, style.swagger) {
            ("2.0", None) => return None,
            ("2.0", Some(format)) => format!(
                r#"{{"name":"p","in":"{}","required":{required},"type":"array","items":{{"type":"string"}},"collectionFormat":"{format}"}}"#,
                style.place
            ),
            (_, Some("tsv")) => return None,
            _ if style.open.is_empty() => String::new(),
            _ => {
                let schema = if style.open.contains("content") { "" } else { r#","schema":{}"# };
                format!(r#"{{"name":"p","in":"{}","required":{required},{}{schema}}}"#, style.place, style.open)
            }
        };
        Some(format!(r#""{path}":{{"get":{{"operationId":"{}","parameters":[{parameter}]}}}}"#, style.name))
    });
    let operations: Vec<String> = operations.collect();
    format!(
        "{{{},\"info\":{{\"title\":\"styles\",\"version\":\"1\"}},\"paths\":{{{}}}}}",
        head(version),
        operations.join(",")
    )
}

fn head(version: &str) -> String {
    match version {
        "2.0" => r#""swagger":"2.0""#.to_owned(),
        version => format!(r#""openapi":"{version}.0""#),
    }
}

/// What of a request carries the parameter.
fn received(style: &Style, asked: &Asked) -> String {
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    match style.place {
        "path" => path.rsplit('/').next().unwrap_or_default().to_owned(),
        "query" => query.to_owned(),
        "header" => asked.header("p").unwrap_or_default().to_owned(),
        _ => asked.header("cookie").unwrap_or_default().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_parameter_style_of_all_three_versions_arrives_as_it_was_asked_for() {
    let values = [json!("a b"), json!(["x y", "z"]), json!({"k": "v w", "n": 1})];
    for version in ["2.0", "3.0", "3.1"] {
        let rest = Rest::start(&styles(version)).await;
        let up = Up::start(&service(&rest, POLICIES)).await;
        let agent = up.agent("ada").await;
        let listed = agent.tools().await;
        let mut compared = 0;
        for style in STYLES
            .iter()
            .filter(|style| listed.iter().any(|name| name == style.name))
        {
            for (value, written) in values.iter().zip(style.written) {
                // Swagger 2.0 knows only lists here.
                if (version == "2.0" && !value.is_array()) || written.is_empty() {
                    continue;
                }
                let called = agent.call(style.name, json!({"p": value})).await;
                assert!(
                    called.is_ok(),
                    "{version} {} {value}: {}",
                    style.name,
                    called.answer
                );
                let asked = rest.last();
                assert_eq!(
                    received(style, &asked),
                    written,
                    "{version} {} {value}",
                    style.name
                );
                assert_eq!(asked.header("x-key"), Some("hunter2"));
                compared += 1;
            }
        }
        let expected = if version == "2.0" { 7 } else { 54 };
        assert_eq!(compared, expected, "{version}: {listed:?}");
    }
}
