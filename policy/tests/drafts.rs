//! A draft over any catalogue loads as it is, lints clean, and allows no tool that is not a plain read.
//!
//! Reads the shared catalogues; where there are none, it says so and leaves itself out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use policy::catalogue::{Catalogue, KnownTool};
use policy::document::{Lists, Source};
use policy::draft::{Drafted, draft};
use policy::lint::lint;
use policy::{Action, Policy};
use serde::Deserialize;
use serde_json::value::RawValue;
use tools::id::UpstreamName;
use tools::model::Tool;

#[derive(Deserialize)]
struct Declared {
    tools: Vec<Box<RawValue>>,
}

#[test]
fn a_draft_over_any_catalogue_loads_lints_clean_and_allows_plain_reads_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/catalogs");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("left out: {} is not there", folder.display());
        return;
    };
    let mut drafts = 0;
    for file in entries.map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let server = file.file_stem().unwrap().to_str().unwrap();
        let upstream: UpstreamName = server.parse().unwrap();
        let declared: Declared = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let tools: Vec<Tool> = declared
            .tools
            .into_iter()
            .map(|raw| Tool::mcp(&upstream, raw.into()).unwrap())
            .collect();
        let drafted = Drafted {
            upstream: server,
            tools: tools.iter().collect(),
        };
        let text = draft("my-agent", &[drafted]);
        let policies = Policy::parse_all("draft.yaml", &text, &Source::Directory, &Lists::none())
            .unwrap_or_else(|problems| panic!("{server}: {problems:?}\n{text}"));
        for tool in &tools {
            let named = policies.iter().flat_map(|policy| &policy.rules).find(|rule| {
                let globs = rule.tools.as_deref().unwrap_or_default();
                globs.iter().any(|glob| glob.matches(tool.name.as_str()))
            });
            let is_allowed = named.is_some_and(|rule| rule.action == Action::Allow);
            assert_eq!(
                is_allowed, tool.classification.plain_read,
                "{}\n{text}",
                tool.name
            );
        }
        let known: Catalogue = tools.into_iter().map(KnownTool::of).collect();
        let policies: Vec<Arc<Policy>> = policies.into_iter().map(Arc::new).collect();
        assert_eq!(lint(&policies, Some(&known)), [], "{server}");
        drafts += 1;
    }
    assert!(drafts > 30, "{drafts} catalogues");
}
