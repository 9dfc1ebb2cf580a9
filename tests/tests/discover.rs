//! `toolgate discover` asks real upstreams, and its draft is a policy that loads and lints clean.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::programs::built;

fn toolgate(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(built("toolgate"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A configuration with the fixture server, and one that is no program.
fn configured(folder: &Path, more: &str) {
    let text = format!(
        "mcp_servers:\n  - name: fixture\n    transport: stdio\n    command: {}\n    args: [stdio, {}/ran]\n{more}",
        built("fixture-mcp").display(),
        folder.display()
    );
    std::fs::write(folder.join("c.yaml"), text).unwrap();
}

#[test]
fn discovered_tools_are_shown_with_what_they_are_judged_to_do() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), "");
    let output = toolgate(
        folder.path(),
        &["discover", "--config", "c.yaml", "--output", "json"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| {
        let found = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        found
            .unwrap_or_else(|| panic!("{name} is not in {tools}"))
            .clone()
    };
    assert_eq!(of("fixture.get_item")["plain_read"], true);
    assert_eq!(of("fixture.write_item")["plain_read"], false);
}

#[test]
fn a_draft_over_discovered_tools_loads_and_lints_clean() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), "");
    let asked = [
        "discover",
        "-c",
        "c.yaml",
        "--generate-policy",
        "--agent",
        "claude",
    ];
    let output = toolgate(folder.path(), &asked);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let draft = text(&output.stdout);
    assert!(draft.contains("agent: \"claude\""), "{draft}");
    assert!(draft.contains("#   fixture.get_item [read] "), "{draft}");
    std::fs::write(folder.path().join("draft.yaml"), &draft).unwrap();
    let linted = toolgate(folder.path(), &["policy", "lint", "draft.yaml"]);
    assert!(
        linted.status.success(),
        "{}{}",
        text(&linted.stdout),
        text(&linted.stderr)
    );
}

#[test]
fn a_configuration_without_upstreams_or_with_a_wrong_agent_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.yaml"), "port: 9090\n").unwrap();
    let output = toolgate(folder.path(), &["discover", "-c", "c.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("mcp_servers"),
        "{}",
        text(&output.stderr)
    );
    configured(folder.path(), "");
    let asked = ["discover", "-c", "c.yaml", "--generate-policy", "--agent", ""];
    assert_eq!(toolgate(folder.path(), &asked).status.code(), Some(2));
}

#[test]
fn a_document_that_cannot_be_read_is_said_at_once_with_its_place_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder.json")).unwrap();
    std::fs::write(folder.path().join("page.json"), "<html>not found</html>").unwrap();
    std::fs::write(folder.path().join("other.yaml"), "a: [1, 2").unwrap();
    std::fs::write(folder.path().join("no-spec.yaml"), "a: 1").unwrap();
    let begun = Instant::now();
    for (place, reason) in [
        ("missing.json", "No such file"),
        ("folder.json", "not a file"),
        ("page.json", "page.json"),
        ("other.yaml", "not valid YAML"),
        ("no-spec.yaml", "OpenAPI"),
        ("http://127.0.0.1:1/openapi.json", "127.0.0.1"),
    ] {
        let output = toolgate(folder.path(), &["discover", "--openapi", place]);
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{place}: {said}");
        assert!(said.contains(reason), "{place}: {said}");
    }
    let config = "openapi: [{file: folder.json, backend_url: 'http://127.0.0.1:1'}]\n";
    std::fs::write(folder.path().join("o.yaml"), config).unwrap();
    let output = toolgate(folder.path(), &["discover", "--config", "o.yaml"]);
    let said = text(&output.stderr);
    assert!(said.contains("folder.json cannot be read"), "{said}");
    assert!(
        begun.elapsed() < Duration::from_secs(45),
        "none of them was waited for"
    );
}
