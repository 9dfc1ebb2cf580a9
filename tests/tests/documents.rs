//! What the documents show is true: every YAML block is read as its reader would have it read.

use std::path::Path;

use config::{Config, Environment};

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

#[test]
fn every_configuration_in_the_documents_loads() {
    let checkout = tests::programs::checkout();
    let pages = ["README.md", "docs/getting-started.md"];
    let environment: Environment = [("SEARCH_TOKEN".to_owned(), "secret".to_owned())]
        .into_iter()
        .collect();
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(checkout.join(page)).unwrap();
        for (line, block) in blocks(&text) {
            let loaded = Config::parse(page, &block, &environment);
            assert!(loaded.is_ok(), "{page}:{line}: {:?}", loaded.err());
            count += 1;
        }
    }
    assert!(
        count >= 4,
        "only {count} blocks were found: is the fence written otherwise?"
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
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
    for page in pages {
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
