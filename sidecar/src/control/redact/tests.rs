use tools::json::{Document, Limits};

use super::*;

fn redacted(redactor: &Redactor, json: &str) -> String {
    let document = Document::parse(json.as_bytes(), Limits::ARGUMENTS).unwrap();
    let out = redactor.redacted(document.root()).into_owned();
    assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
    out
}

fn by_default(json: &str) -> String {
    redacted(&Redactor::new(ParamsMode::Redacted, []).unwrap(), json)
}

#[test]
fn the_patterns_compile() {
    assert!(Patterns::shared().is_compiled());
}

#[test]
fn values_of_secret_keys_are_masked_in_any_spelling() {
    for key in [
        "password",
        "PASSWORD",
        "db_password",
        "Api-Key",
        "apiKey",
        "client_secret",
        "Authorization",
        "access_token",
        "privateKey",
        "X-Auth-Token",
        "cookie",
    ] {
        let out = by_default(&format!(r#"{{"{key}":"hunter2-hunter2"}}"#));
        assert!(!out.contains("hunter2"), "{key}: {out}");
        assert!(out.contains("[redacted, 15 bytes]"), "{key}: {out}");
    }
}

#[test]
fn everything_under_a_secret_key_goes() {
    let out = by_default(r#"{"credentials":{"user":"ann","list":["p1","p2"]},"x":1}"#);
    assert!(!out.contains("ann") && !out.contains("p2"));
    assert!(out.ends_with(r#","x":1}"#));
}

#[test]
fn texts_that_look_like_secrets_are_masked_where_they_stand() {
    let github = format!("ghp_{}", "a1".repeat(18));
    for secret in [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "AKIAIOSFODNN7EXAMPLE",
        github.as_str(),
        "Bearer abcdefgh12345678",
        "-----BEGIN RSA PRIVATE KEY-----\\nMIIEow\\n-----END RSA PRIVATE KEY-----",
    ] {
        let out = by_default(&format!(
            r#"{{"text":"before {secret} after","list":["{secret}"]}}"#
        ));
        let first = secret.split("\\n").nth(1).unwrap_or(secret);
        assert!(!out.contains(first), "{out}");
        assert!(out.contains("before [redacted"), "{out}");
        assert!(out.contains("] after"), "{out}");
    }
}

#[test]
fn escapes_do_not_hide_a_secret() {
    let out = by_default(r#"{"text":"AKIA\u0049OSFODNN7EXAMPLE","pass\u0077ord":"hunter2"}"#);
    assert!(
        !out.contains("OSFODNN7EXAMPLE") && !out.contains("hunter2"),
        "{out}"
    );
}

#[test]
fn secrets_in_code_and_urls_are_masked() {
    let out = by_default(
        r#"{"sql":"connect postgres://ann:s3cr3tpw@db/x","cmd":"login --api_key=abcdef123456 -v"}"#,
    );
    assert!(
        !out.contains("s3cr3tpw") && !out.contains("abcdef123456"),
        "{out}"
    );
    assert!(out.contains("db/x") && out.contains(" -v"), "{out}");
}

#[test]
fn what_holds_no_secret_stays_byte_for_byte() {
    let json = r#"{ "path": "/tmp/a.txt",  "max_tokens": 100, "n": 1e2, "nested": [ {"k": null} ] }"#;
    assert_eq!(by_default(json), json);
}

#[test]
fn configured_keys_and_paths_are_masked() {
    let redactor = Redactor::new(ParamsMode::Redacted, ["*ssn*", "params.user.*.street"]).unwrap();
    let out = redacted(
        &redactor,
        r#"{"US_SSN":"123-45","user":{"home":{"street":"Elm 1","city":"X"},"all":[{"street":"Oak 2"}]},"street":"kept"}"#,
    );
    assert!(
        !out.contains("123-45") && !out.contains("Elm 1") && !out.contains("Oak 2"),
        "{out}"
    );
    assert!(out.contains("kept") && out.contains("\"X\""), "{out}");
}

#[test]
fn local_configuration_can_only_tighten() {
    let fleet = |params: &str, redact: &[&str]| proto::body::FleetSettings {
        params: params.to_owned(),
        redact: redact.iter().map(|&text| text.to_owned()).collect(),
        ..proto::body::FleetSettings::default()
    };
    let params = |fleet: &proto::body::FleetSettings, local| {
        let document = Document::parse(br#"{"a":"Bearer abcdefgh12345678"}"#, Limits::ARGUMENTS).unwrap();
        Redactor::tightened(fleet, local, [])
            .params(document.root())
            .map(|raw| raw.get().to_owned())
    };
    assert_eq!(params(&fleet("digest", &[]), ParamsMode::Full), None);
    assert!(
        params(&fleet("full", &[]), ParamsMode::Redacted)
            .unwrap()
            .contains("[redacted")
    );
    assert!(
        params(&fleet("full", &[]), ParamsMode::Full)
            .unwrap()
            .contains("abcdefgh")
    );
    assert_eq!(params(&fleet("redacted", &["["]), ParamsMode::Full), None);
}
