use serde_json::{Value, json};

use super::{extract, shown};
use crate::extract::Extractor;
use crate::json::{Document, Limits};
use crate::targets::Extent;

fn template(text: &str) -> Extractor {
    Extractor::UriTemplate {
        template: text.to_owned(),
    }
}

fn filled(text: &str, arguments: &Value) -> String {
    let extractor = template(text);
    extractor.check().unwrap();
    shown(&extract(&extractor, arguments).resources)
}

#[test]
fn a_template_is_filled_with_the_calls_arguments() {
    let rows = [
        (
            "github://{owner}/{repo}",
            json!({"owner": "acme", "repo": "site"}),
            "github://acme/site",
        ),
        (
            "x://{a.b}/{a.c.d}",
            json!({"a": {"b": 1, "c": {"d": true}}}),
            "x://1/true",
        ),
        ("x://{n}", json!({"n": 1.50}), "x://1.5"),
        ("x://fixed", json!({}), "x://fixed"),
        ("x://{a}", json!({"a": "ä"}), "x://%C3%A4"),
    ];
    for (text, arguments, uri) in rows {
        assert_eq!(filled(text, &arguments), uri, "{text} {arguments}");
    }
}

#[test]
fn a_value_cannot_forge_a_segment() {
    let rows = [
        (
            "github://{owner}/{repo}",
            json!({"owner": "acme/site", "repo": "x"}),
            "github://acme%2Fsite/x",
        ),
        (
            "github://{owner}/{repo}",
            json!({"owner": "..", "repo": "."}),
            "github://%2E%2E/%2E",
        ),
        (
            "github://{owner}/{repo}",
            json!({"owner": "a%2Fb", "repo": "*?#"}),
            "github://a%252Fb/%2A%3F%23",
        ),
        ("x://{a}-{b}", json!({"a": "1-2", "b": "3"}), "x://1%2D2-3"),
        ("x://{a}-{b}", json!({"a": "1", "b": "2-3"}), "x://1-2%2D3"),
        ("x://{a}", json!({"a": "\u{0}\n\u{202e}"}), "x://%00%0A%E2%80%AE"),
    ];
    for (text, arguments, uri) in rows {
        assert_eq!(filled(text, &arguments), uri, "{text} {arguments}");
    }
}

#[test]
fn a_missing_empty_or_structured_value_leaves_the_set_unknown() {
    for arguments in [
        json!({}),
        json!({"a": null}),
        json!({"a": ""}),
        json!({"a": []}),
        json!({"a": {}}),
        json!([1]),
        json!({"a": "x", "A": "y"}),
        json!({"a": "x".repeat(5000)}),
    ] {
        let extraction = extract(&template("x://{a}"), &arguments);
        assert_eq!(extraction.resources, Extent::Unknown, "{arguments}");
        assert!(
            !extraction.complete && !extraction.reasons.is_empty(),
            "{arguments}"
        );
    }
    assert_eq!(template("x://{a}").extract(None).resources, Extent::Unknown);
}

#[test]
fn keys_that_differ_in_unicode_case_only_are_doubtful() {
    let text = "{\"kind\": \"x\", \"\u{212a}ind\": \"y\"}";
    let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS).unwrap();
    let extraction = template("x://{kind}").extract(Some(document.root()));
    assert_eq!(extraction.resources, Extent::Unknown);
}

#[test]
fn a_template_that_cannot_be_used_is_refused_with_a_hint() {
    for (text, hint) in [
        ("", "it is empty"),
        ("owner/{repo}", "scheme"),
        ("{a}://x", "scheme"),
        ("x://{a", "byte 4"),
        ("x://a}", "byte 5"),
        ("x://{}", "not the name"),
        ("x://{+a}", "not the name"),
        ("x://{a b}", "not the name"),
        ("x://{a..b}", "not the name"),
        ("x://{a}{b}", "keeps their values apart"),
        ("x://{a}and{b}", "keeps their values apart"),
        ("x://ä", "percent-encoded"),
        ("x://a b", "percent-encoded"),
        ("x://a*", "percent-encoded"),
    ] {
        let error = template(text).check().unwrap_err().to_string();
        assert!(error.contains(hint), "{text:?}: {error}");
    }
    assert!(template(&format!("x://{}", "a".repeat(2000))).check().is_err());
    let many: String = (0..40).map(|n| format!("{{a{n}}}/")).collect();
    assert!(template(&format!("x://{many}")).check().is_err());
}

#[test]
fn extractors_are_written_as_the_api_says() {
    for text in [
        r#"{"mode":"uri_template","template":"x://{a}"}"#,
        r#"{"mode":"sql","argument":"query","dialect":"postgres","schema":"public"}"#,
        r#"{"mode":"sql","argument":"a.b","dialect":"mysql"}"#,
        r#"{"mode":"sql","argument":"q","dialect":"sqlite","functions":["my.fn"]}"#,
    ] {
        let extractor: Extractor = serde_json::from_str(text).unwrap();
        extractor.check().unwrap();
        assert_eq!(serde_json::to_string(&extractor).unwrap(), text);
    }
    for text in [
        r#"{"mode":"sql","argument":"query","dialect":"oracle"}"#,
        r#"{"mode":"regex"}"#,
        r#"{"mode":"uri_template","template":"x://a","more":1}"#,
        r#"{"mode":"sql","argument":"query","dialect":"mysql","templat":"x"}"#,
    ] {
        assert!(serde_json::from_str::<Extractor>(text).is_err(), "{text}");
    }
    for text in [
        r#"{"mode":"sql","argument":"","dialect":"mysql"}"#,
        r#"{"mode":"sql","argument":"q","dialect":"mysql","schema":"a.b"}"#,
        r#"{"mode":"sql","argument":"q","dialect":"mysql","functions":["a b"]}"#,
    ] {
        let extractor: Extractor = serde_json::from_str(text).unwrap();
        assert!(extractor.check().is_err(), "{text}");
    }
}
