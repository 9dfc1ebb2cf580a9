//! The pages in `docs/` say what the tables say.

use std::path::PathBuf;

/// Compares a page with what the tables say now. `UPDATE_DOCS=1` writes it instead.
fn assert_up_to_date(name: &str, now: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == now,
        "docs/{name} is not what the tables say; run: UPDATE_DOCS=1 cargo test -p config reference"
    );
}

#[test]
fn the_reference_page_is_up_to_date() {
    assert_up_to_date("configuration.md", &crate::reference_markdown());
}

#[test]
fn the_json_schema_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&crate::json_schema()).unwrap() + "\n";
    assert_up_to_date("configuration.schema.json", &schema);
}
