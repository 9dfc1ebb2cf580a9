//! Every policy in the seed documents is accepted as it stands.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests fail by panicking and say what they skip"
)]

use std::path::Path;

use policy::Policy;
use policy::document::{Lists, Source};
use policy::yaml::{self, Problems, Value};

/// The texts of the seed documents; `None` where they are not beside the checkout.
fn seeds() -> Option<Vec<(String, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/seeds");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: {} is not there", folder.display());
        return None;
    };
    let mut found: Vec<(String, String)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    Some(found)
}

/// Lines from one that starts a policy (or a list of them) to the end of its block.
fn block(lines: &[&str], start: usize) -> String {
    let first = lines[start];
    let mut text = first.trim_start_matches("echo '").to_owned();
    text.push('\n');
    for line in &lines[start + 1..] {
        let continues =
            line.starts_with([' ', '#']) || (line.contains(':') && !first.starts_with("policies:"));
        if !continues || line.trim().is_empty() {
            break;
        }
        let ended = line.split_once("' >").map(|(before, _)| before);
        text.push_str(ended.unwrap_or(line));
        text.push('\n');
        if ended.is_some() {
            break;
        }
    }
    text
}

fn read(name: &str, text: &str) -> usize {
    let documents = yaml::load(name, text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"));
    let document = documents.first().unwrap();
    let inline = document.get("policies").and_then(Value::as_seq);
    let values: Vec<&Value> = match inline {
        Some(values) => values.iter().collect(),
        None => vec![document],
    };
    let problems = Problems::new(name);
    let read = Policy::read_values(&values, &Source::Inline, &Lists::none(), &problems);
    assert!(problems.is_empty(), "{text}\n{:?}", problems.into_vec());
    read.len()
}

#[test]
fn every_policy_of_the_seed_documents_loads_unchanged() {
    let Some(seeds) = seeds() else { return };
    let mut count = 0;
    for (name, text) in &seeds {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let starts =
                *line == "policies:" || line.starts_with("name: ") || line.starts_with("echo 'name: ");
            if starts {
                count += read(name, &block(&lines, at));
            }
            // The rules of a draft, without the policy around them.
            let begins = line.starts_with("      #") && !lines[at - 1].starts_with("      ");
            if begins {
                let rules = block(&lines, at);
                if rules.contains("- tools:") {
                    count += read(name, &format!("name: draft\nagent: a\nrules:\n{rules}"));
                }
            }
        }
    }
    assert!(
        count >= 4,
        "only {count} policies were found: are the documents written otherwise?"
    );

    let single: Vec<String> = Policy::parse_all(
        "actions",
        "name: a\nagent: a\nrules: [{action: allow}, {action: deny}, {action: human_approval}]",
        &Source::Api,
        &Lists::none(),
    )
    .unwrap()
    .iter()
    .map(|policy| policy.name.to_string())
    .collect();
    assert_eq!(single, ["a"]);
}
