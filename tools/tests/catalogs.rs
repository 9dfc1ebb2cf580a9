//! Every tool of the shared catalogues, classified: compared with `golden/catalogs.txt`, which was reviewed by hand.
//!
//! `UPDATE_GOLDEN=1 cargo test -p tools --test catalogs` writes the file anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
#![allow(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use tools::classify::{Classification, Family, Risk, RiskSet};
use tools::id::UpstreamName;
use tools::model::Tool;

#[derive(Deserialize)]
struct Catalogue {
    tools: Vec<Box<RawValue>>,
}

/// The catalogues by server; none where the checkout is alone.
fn catalogues() -> Option<Vec<(String, Vec<Tool>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/catalogs");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: there are no catalogues at {}", folder.display());
        return None;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Some(files.iter().map(|file| catalogue(file)).collect())
}

fn catalogue(file: &Path) -> (String, Vec<Tool>) {
    let server = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let upstream = UpstreamName::try_from(server.as_str()).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let tools = catalogue.tools.into_iter();
    (
        server,
        tools
            .map(|raw| Tool::mcp(&upstream, raw.into()).unwrap())
            .collect(),
    )
}

fn names(risks: RiskSet) -> String {
    risks.iter().map(Risk::name).collect::<Vec<_>>().join("+")
}

fn word<T: serde::Serialize>(value: T) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

/// `name  READ  plain  capability  side effect  family  access  source  reasons`
fn line(tool: &Tool) -> String {
    let Classification {
        capability,
        risks,
        possible_risks,
        source,
        family,
        access,
        side_effect,
        plain_read,
        reasons,
        ..
    } = &tool.classification;
    let mut risk = names(*risks);
    if possible_risks != risks {
        risk = format!("{risk} of {}", names(*possible_risks));
    }
    let mut marks = vec![word(access)];
    if *plain_read {
        marks.push("plain".to_owned());
    }
    if *family == Family::Generic {
        marks.push("generic".to_owned());
    }
    format!(
        "  {} | {risk} | {} | {} | {} by {} | {} | {}",
        tool.local_name(),
        marks.join(" "),
        capability.as_deref().unwrap_or("-"),
        word(side_effect.kind),
        word(side_effect.source),
        word(source),
        reasons.join(", "),
    )
}

/// How far the classification agrees with what tools declare.
#[derive(Debug, Default, PartialEq, Eq)]
struct Agreement {
    tools: usize,
    declared_reads: usize,
    declared_named_reads: usize,
    plain_reads_among_them: usize,
    read_access_among_them: usize,
    declared_writes: usize,
    write_access_among_them: usize,
    false_reads: Vec<String>,
}

fn agreement(catalogues: &[(String, Vec<Tool>)]) -> Agreement {
    let mut agreement = Agreement::default();
    for tool in catalogues.iter().flat_map(|(_, tools)| tools) {
        let (hints, judged) = (tool.annotations, &tool.classification);
        let writes = hints.read_only == Some(false) || hints.destructive == Some(true);
        agreement.tools += 1;
        if writes {
            agreement.declared_writes += 1;
            agreement.write_access_among_them += usize::from(judged.access == tools::classify::Access::Write);
            if judged.plain_read {
                agreement.false_reads.push(tool.name.to_string());
            }
        } else if hints.read_only == Some(true) {
            agreement.declared_reads += 1;
            if judged.family == Family::Named {
                agreement.declared_named_reads += 1;
                agreement.plain_reads_among_them += usize::from(judged.plain_read);
                agreement.read_access_among_them +=
                    usize::from(judged.access == tools::classify::Access::Read);
            }
        }
    }
    agreement
}

#[test]
fn the_catalogues_are_classified_as_reviewed() {
    let Some(catalogues) = catalogues() else { return };
    let mut text = String::new();
    for (server, tools) in &catalogues {
        writeln!(text, "{server}").unwrap();
        for tool in tools {
            writeln!(text, "{}", line(tool)).unwrap();
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/catalogs.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    let reviewed = fs::read_to_string(&golden).unwrap_or_default();
    for (now, then) in text.lines().zip(reviewed.lines()) {
        assert_eq!(
            now, then,
            "a classification changed: review it, then UPDATE_GOLDEN=1"
        );
    }
    assert_eq!(text.lines().count(), reviewed.lines().count());
}

#[test]
fn no_tool_that_says_it_writes_is_a_plain_read_and_nearly_all_that_say_they_read_are() {
    let Some(catalogues) = catalogues() else { return };
    let agreement = agreement(&catalogues);
    eprintln!("{agreement:#?}");
    assert_eq!(agreement.false_reads, Vec::<String>::new());
    assert_eq!(agreement.write_access_among_them, agreement.declared_writes);
    assert!(agreement.plain_reads_among_them * 100 >= agreement.declared_named_reads * 97);
}
