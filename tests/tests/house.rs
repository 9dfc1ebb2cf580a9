//! The house keeps its shape: which room may use which.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What each room may use of the others, as DESIGN.md section 2 says.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let planes = ["tools", "policy", "chain", "config", "net", "proto"];
    BTreeMap::from([
        ("tools", BTreeSet::new()),
        ("chain", BTreeSet::new()),
        ("net", BTreeSet::new()),
        ("proto", BTreeSet::new()),
        ("policy", BTreeSet::from(["tools"])),
        ("config", BTreeSet::from(["policy", "tools"])),
        ("control-plane", BTreeSet::from(planes)),
        ("sidecar", BTreeSet::from(planes)),
        (
            "cli",
            planes.into_iter().chain(["control-plane", "sidecar"]).collect(),
        ),
        (
            "tests",
            planes
                .into_iter()
                .chain(["control-plane", "sidecar", "cli"])
                .collect(),
        ),
        (
            "bench",
            planes
                .into_iter()
                .chain(["control-plane", "sidecar", "tests"])
                .collect(),
        ),
    ])
}

fn metadata() -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn dependencies_between_rooms_run_one_way() {
    let allowed = allowed();
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let room = package["name"].as_str().unwrap();
        let may_use = allowed
            .get(room)
            .unwrap_or_else(|| panic!("room {room} is not in the table of this test"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            let for_tests_only = dependency["kind"] == "dev" && name == "tests";
            if allowed.contains_key(name) && !for_tests_only {
                assert!(may_use.contains(name), "{room} must not use {name}");
            }
        }
    }
}

#[test]
fn pure_rooms_do_no_input_output() {
    let banned = [
        "tokio", "axum", "hyper", "tonic", "sqlx", "reqwest", "nix", "socket2",
    ];
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        if !["tools", "policy", "chain"].contains(&package["name"].as_str().unwrap()) {
            continue;
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            assert!(
                dependency["kind"] == "dev" || !banned.contains(&name),
                "{} is pure and must not use {name}",
                package["name"]
            );
        }
    }
}

#[test]
fn the_sidecar_knows_no_database_and_the_control_plane_no_upstream() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let room = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            if dependency["kind"] != "dev" {
                assert!(
                    !(room == "sidecar" && name == "sqlx"),
                    "the sidecar never sees a database driver"
                );
            }
        }
    }
}
