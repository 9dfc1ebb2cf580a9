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

/// The Rust files below a folder of the checkout.
fn sources(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_sidecars_child_processes_are_started_in_one_place() {
    let checkout = tests::programs::checkout();
    let mut starting = Vec::new();
    // What runs in a process with a sidecar, but for the servers of tests.
    for room in ["sidecar", "control-plane", "cli", "net"] {
        for file in sources(&checkout.join(room).join("src")) {
            let name = file.strip_prefix(&checkout).unwrap().display().to_string();
            let text = std::fs::read_to_string(&file).unwrap();
            let is_of_tests = name.contains("/testing/") || name.contains("/tests");
            let has_commands = text.contains("process::") && text.contains("Command");
            if has_commands && text.contains(".spawn()") && !is_of_tests {
                starting.push(name);
            }
        }
    }
    starting.sort();
    let own = ["family.rs", "keeper.rs"].map(|name| format!("sidecar/src/upstream/children/{name}"));
    assert_eq!(
        starting, own,
        "what is started elsewhere would be taken for an orphan"
    );
}
