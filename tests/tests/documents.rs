//! What the documents show is true: every YAML block is read as its reader would have it read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, Environment};
use policy::catalogue::Catalogue;
use policy::document::{Lists, Source};
use policy::suite::Suite;
use policy::yaml::Problem;
use policy::{Policy, PolicySet};

/// The fenced `yaml` blocks of a page, each with the line it begins at.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in page.lines().enumerate() {
        match &mut open {
            None if line == "```yaml" => open = Some((index + 1, String::new())),
            None => {}
            Some(_) if line == "```" => found.extend(open.take()),
            Some((_, text)) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    found
}

/// What a block is, by what it holds.
enum Block {
    Policies(Vec<Policy>),
    Tests(Suite),
    Configuration,
}

fn read(page: &str, block: &str, lists: &Lists) -> Result<Block, Vec<Problem>> {
    let documents = policy::yaml::load(page, block)?;
    let has = |key: &str| documents.iter().any(|document| document.get(key).is_some());
    if has("rules") {
        return Policy::parse_all(page, block, &Source::Directory, lists).map(Block::Policies);
    }
    if has("tests") || documents.first().is_some_and(|first| first.as_seq().is_some()) {
        return Suite::parse(page, block).map(Block::Tests);
    }
    let environment: Environment = [("SEARCH_TOKEN".to_owned(), "secret".to_owned())]
        .into_iter()
        .collect();
    Config::parse(page, block, &environment).map(|_| Block::Configuration)
}

/// The lists that a page's configurations define.
fn lists(blocks: &[(usize, String)]) -> Lists {
    let documents = blocks
        .iter()
        .filter_map(|(_, block)| policy::yaml::load("page", block).ok())
        .flatten();
    let mut found = Vec::new();
    for document in documents {
        let lists = document.get("lists").and_then(|lists| lists.as_map());
        for entry in lists.into_iter().flat_map(|lists| lists.entries()) {
            let entries = entry.value.as_seq().unwrap_or_default();
            let texts = entries.iter().filter_map(|text| text.as_str());
            found.push((entry.key.clone(), texts.map(str::to_owned).collect()));
        }
    }
    found.into_iter().collect()
}

fn pages() -> Vec<PathBuf> {
    let checkout = tests::programs::checkout();
    let mut pages = vec![checkout.join("README.md"), checkout.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/decisions"] {
        let entries = std::fs::read_dir(checkout.join(folder)).unwrap();
        pages.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|end| end == "md")),
        );
    }
    pages
}

#[test]
fn every_yaml_block_in_the_documents_loads_and_their_tests_pass() {
    let mut count = 0;
    for path in pages() {
        let page = path.file_name().unwrap().to_str().unwrap();
        let blocks = blocks(&std::fs::read_to_string(&path).unwrap());
        let lists = lists(&blocks);
        let (mut policies, mut suites) = (Vec::new(), Vec::new());
        for (line, block) in &blocks {
            match read(page, block, &lists) {
                Ok(Block::Policies(found)) => policies.extend(found.into_iter().map(Arc::new)),
                Ok(Block::Tests(suite)) => suites.push((line, suite)),
                Ok(Block::Configuration) => {}
                Err(problems) => panic!("{page}:{line}: {problems:?}"),
            }
            count += 1;
        }
        let set = PolicySet::compile(policies);
        for (line, suite) in suites {
            let outcomes = suite.run(&set, &Catalogue::default());
            let failed: Vec<_> = outcomes.iter().filter(|outcome| !outcome.passed).collect();
            assert!(failed.is_empty(), "{page}:{line}: {failed:#?}");
        }
    }
    assert!(
        count >= 12,
        "only {count} blocks were found: is the fence written otherwise?"
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in links(&text) {
            let path = page.parent().unwrap().join(target);
            assert!(
                Path::exists(&path),
                "{} links to {target}, which is not there",
                page.display()
            );
        }
    }
}

/// Targets of inline links that stay in the checkout, without their fragments.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|target| {
            let path = target.split('#').next()?;
            (!path.is_empty() && !path.contains("://") && !path.contains(' ')).then_some(path)
        })
}

#[test]
fn every_test_that_the_guarantees_name_is_there() {
    let checkout = tests::programs::checkout();
    let page = std::fs::read_to_string(checkout.join("docs/guarantees.md")).unwrap();
    let listed = std::process::Command::new("git")
        .args(["grep", "-hoE", r"fn [a-z0-9_]+\(", "--", "*.rs"])
        .current_dir(&checkout)
        .output()
        .unwrap();
    let sources = String::from_utf8(listed.stdout).unwrap();
    let functions: std::collections::HashSet<&str> = sources
        .lines()
        .filter_map(|line| line.strip_prefix("fn ")?.strip_suffix('('))
        .collect();
    // Names of tests are sentences: long, and made of words.
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.matches('_').count() >= 4)
        .collect();
    assert!(named.len() > 30, "only {} tests are named", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !functions.contains(**name)).collect();
    assert!(
        missing.is_empty(),
        "docs/guarantees.md names tests that are not there: {missing:?}"
    );
}
