//! Documents as `toolgate discover` reads them, real ones among them.

use tests::rest::Rest;
use tests::up::{folder, output, toolgate};

use super::documented;

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_a_documents_tools_and_drafts_a_policy() {
    let rest = Rest::start(&documented()).await;
    let folder = folder();
    let path = folder.path().join("items.json");
    std::fs::write(&path, documented()).unwrap();
    for place in [format!("{}/openapi", rest.url), path.display().to_string()] {
        let ran = output(
            toolgate(&["discover", "--openapi", &place, "--output", "json"]),
            "",
        )
        .await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let tools = ran.json();
        let of = |name: &str| {
            tools
                .as_array()
                .unwrap()
                .iter()
                .find(|tool| tool["name"] == name)
                .unwrap()
                .clone()
        };
        assert_eq!(of("list_items")["plain_read"], true);
        assert_eq!(of("remove_thing")["risk"], "DELETE");
        let draft = output(
            toolgate(&["discover", "--openapi", &place, "--generate-policy"]),
            "",
        )
        .await;
        assert!(
            draft.stdout.contains("list_items") && draft.code == 0,
            "{draft:?}"
        );
    }
}

/// The rows of the table of real documents in docs/openapi.md: file, operations, tools, left out.
fn shipped() -> Vec<(String, usize, usize, usize)> {
    let page = std::fs::read_to_string(tests::programs::checkout().join("docs/openapi.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line
            .strip_prefix("| `")?
            .strip_suffix('|')?
            .split('|')
            .map(str::trim)
            .collect();
        let [file, _, operations, tools, left_out] = cells.as_slice() else {
            return None;
        };
        let file = file.trim_matches('`').to_owned();
        Some((
            file,
            operations.parse().ok()?,
            tools.parse().ok()?,
            left_out.parse().ok()?,
        ))
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn real_documents_are_imported_without_error_and_in_the_numbers_that_the_page_says() {
    let modules = tests::programs::checkout().join("tests/servers/node_modules");
    let rows = shipped();
    assert!(rows.len() >= 8, "{rows:?}");
    let mut files: Vec<std::path::PathBuf> = rows.iter().map(|row| modules.join(&row.0)).collect();
    for version in ["2.0", "3.0", "3.1"] {
        let folder = modules.join("@readme/oas-examples").join(version).join("json");
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("make setup: {}: {error}", folder.display()));
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|kind| kind == "json")));
    }
    files.sort();
    files.dedup();
    assert!(files.len() > 60, "{files:?}");
    for file in files {
        let name = file.strip_prefix(&modules).unwrap().display().to_string();
        let ran = output(
            toolgate(&[
                "discover",
                "--openapi",
                &file.display().to_string(),
                "--output",
                "json",
            ]),
            "",
        )
        .await;
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        if let Some((_, operations, tools, left_out)) = rows.iter().find(|row| row.0 == name) {
            assert_eq!(ran.json().as_array().unwrap().len(), *tools, "{name}");
            assert_eq!(tools + left_out, *operations, "{name}");
        }
    }
}
