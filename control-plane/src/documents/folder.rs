//! The policy directory: its files, and of each the last version that was valid.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use policy::Policy;
use policy::document::{Lists, Source};
use policy::glob::Glob;
use policy::yaml::{self, Problem, Value};

use super::draft::{draft, split_documents};
use crate::store::desired::{PolicyDraft, PolicyOrigin};

/// What tells one state of a directory from another without reading its files.
pub(crate) type Stamp = BTreeMap<String, (Option<SystemTime>, u64)>;

/// The policy directory.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    lists: Lists,
    last_valid: HashMap<String, Vec<PolicyDraft>>,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Reading {
    /// Every document, of invalid files the last valid version.
    pub drafts: Vec<PolicyDraft>,
    /// What is wrong with the others.
    pub problems: Vec<Problem>,
}

impl Folder {
    /// A directory whose documents may name `lists`.
    #[must_use]
    pub fn new(path: PathBuf, lists: Lists) -> Self {
        Self {
            path,
            lists,
            last_valid: HashMap::new(),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes documents that the store keeps of files here as the last valid versions of those files, so that a restart
    /// forgets none. What stands in for an invalid file without one denies, and is no version to keep.
    pub fn remember(&mut self, kept: impl IntoIterator<Item = PolicyDraft>) {
        for mut draft in kept {
            let PolicyOrigin::Directory { file, .. } = &draft.origin else {
                continue;
            };
            if Policy::from_sent(&draft.body).is_err() {
                continue;
            }
            draft.problem = None;
            self.last_valid.entry(file.clone()).or_default().push(draft);
        }
        for drafts in self.last_valid.values_mut() {
            drafts.sort_by_key(|draft| match draft.origin {
                PolicyOrigin::Directory { index, .. } => index,
                PolicyOrigin::Inline { .. } | PolicyOrigin::Api => 0,
            });
        }
    }

    /// The names, times and sizes of its policy files. A directory that cannot be read has the error as its one file.
    pub(crate) fn stamp(&self) -> Stamp {
        let mut stamp = Stamp::new();
        match policy_files(&self.path) {
            Ok(names) => {
                for name in names {
                    let facts = std::fs::metadata(self.path.join(&name)).ok();
                    let of_file = facts.map_or((None, 0), |facts| (facts.modified().ok(), facts.len()));
                    stamp.insert(name, of_file);
                }
            }
            Err(problem) => {
                stamp.insert(problem.message, (None, 0));
            }
        }
        stamp
    }

    /// Reads every file. `taken` are the names that documents of other origins hold.
    pub fn read(&mut self, taken: &[String]) -> Reading {
        let mut reading = Reading::default();
        let names = match policy_files(&self.path) {
            Ok(names) => names,
            Err(problem) => {
                reading.problems.push(problem);
                let mut kept: Vec<_> = self.last_valid.iter().collect();
                kept.sort_by_key(|(name, _)| name.as_str());
                reading.drafts = kept.into_iter().flat_map(|(_, drafts)| drafts.clone()).collect();
                return reading;
            }
        };
        let mut used: HashMap<String, String> = taken
            .iter()
            .map(|name| {
                (
                    name.clone(),
                    "elsewhere (the configuration or the API)".to_owned(),
                )
            })
            .collect();
        for name in &names {
            let drafts = self
                .read_file(name)
                .and_then(|drafts| without_duplicates(name, drafts, &used));
            let drafts = match drafts {
                Ok(drafts) => {
                    self.last_valid.insert(name.clone(), drafts.clone());
                    drafts
                }
                Err(problems) => {
                    let drafts = self.instead(name, &problems, &used);
                    reading.problems.extend(problems);
                    drafts
                }
            };
            used.extend(
                drafts
                    .iter()
                    .map(|draft| (draft.name.clone(), format!("in {name}"))),
            );
            reading.drafts.extend(drafts);
        }
        self.last_valid.retain(|name, _| names.contains(name));
        reading
    }

    fn read_file(&self, name: &str) -> Result<Vec<PolicyDraft>, Vec<Problem>> {
        let whole = |message: String| vec![problem(name, message)];
        let text = self.text(name).map_err(whole)?;
        let policies = Policy::parse_all(name, &text, &Source::Directory, &self.lists)?;
        let parts = split_documents(&text);
        let is_split = parts.len() == policies.len();
        policies
            .iter()
            .enumerate()
            .map(|(index, policy)| {
                let part = parts.get(index).copied().filter(|_| is_split).unwrap_or(&text);
                draft(policy, part).map_err(|error| whole(format!("cannot be stored: {error}")))
            })
            .collect()
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let bytes =
            std::fs::read(self.path.join(name)).map_err(|error| format!("cannot be read: {error}"))?;
        String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
    }

    /// What stands for an invalid file: its last valid version, else documents that deny the agents it names.
    fn instead(&self, name: &str, problems: &[Problem], used: &HashMap<String, String>) -> Vec<PolicyDraft> {
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let said = said.join("\n");
        let mut drafts = match self.last_valid.get(name) {
            Some(drafts) => drafts.clone(),
            None => self
                .text(name)
                .map(|text| denials(name, &text))
                .unwrap_or_default(),
        };
        drafts.retain(|draft| !used.contains_key(&draft.name));
        for draft in &mut drafts {
            draft.problem = Some(said.clone());
        }
        drafts
    }
}

fn problem(file: &str, message: String) -> Problem {
    Problem {
        file: Arc::from(file),
        line: 0,
        column: 0,
        path: String::new(),
        message,
        hint: None,
    }
}

/// Names of the files that hold policies, sorted.
fn policy_files(path: &Path) -> Result<Vec<String>, Problem> {
    let folder = path.display().to_string();
    let unreadable =
        |error: std::io::Error| problem(&folder, format!("the policy directory cannot be read: {error}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let Ok(name) = entry.map_err(unreadable)?.file_name().into_string() else {
            continue;
        };
        let is_policy = (name.ends_with(".yaml") || name.ends_with(".yml"))
            && !name.ends_with(".test.yaml")
            && !name.starts_with('.');
        if is_policy {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn without_duplicates(
    file: &str,
    drafts: Vec<PolicyDraft>,
    used: &HashMap<String, String>,
) -> Result<Vec<PolicyDraft>, Vec<Problem>> {
    let twice: Vec<Problem> = drafts
        .iter()
        .filter_map(|draft| {
            let place = used.get(&draft.name)?;
            Some(problem(
                file,
                format!(
                    "policy \"{}\" is also defined {place}; names are unique",
                    draft.name
                ),
            ))
        })
        .collect();
    if twice.is_empty() { Ok(drafts) } else { Err(twice) }
}

/// Documents without a valid version: sidecars cannot decode them, and so deny the agents that they are for.
fn denials(file: &str, text: &str) -> Vec<PolicyDraft> {
    let documents = yaml::load(file, text).unwrap_or_default();
    let denial = |(index, document): (usize, &Value)| {
        let agents = globs(document.get("agent")?);
        let name = document.get("name").and_then(Value::as_str);
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let body = serde_json::json!({"format": 0, "invalid": file}).to_string();
        (!agents.is_empty()).then(|| PolicyDraft {
            name: name.map_or_else(|| format!("{file}#{index}"), str::to_owned),
            text: text.to_owned(),
            body: body.into(),
            agents,
            namespaces: document
                .get("namespace")
                .map_or_else(|| vec!["*".to_owned()], globs),
            origin: PolicyOrigin::Directory {
                file: file.to_owned(),
                index,
            },
            problem: None,
        })
    };
    documents
        .iter()
        .filter(|document| !document.is_null())
        .enumerate()
        .filter_map(denial)
        .collect()
}

fn globs(value: &Value) -> Vec<String> {
    let texts: Vec<&str> = match value.as_seq() {
        Some(items) => items.iter().filter_map(Value::as_str).collect(),
        None => value.as_str().into_iter().collect(),
    };
    texts
        .into_iter()
        .filter(|text| text.parse::<Glob>().is_ok())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name: good\nagent: a\nrules:\n  - action: allow\n    tools: [\"x.*\"]\n";

    fn folder() -> (tempfile::TempDir, Folder) {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(directory.path().to_owned(), Lists::none());
        (directory, folder)
    }

    #[test]
    fn every_policy_file_is_read_and_no_other() {
        let (directory, mut folder) = folder();
        std::fs::write(directory.path().join("b.yml"), GOOD).unwrap();
        let two = format!(
            "{}---\n{}",
            GOOD.replace("good", "one"),
            GOOD.replace("good", "two")
        );
        std::fs::write(directory.path().join("a.yaml"), &two).unwrap();
        std::fs::write(directory.path().join("a.test.yaml"), "no policy").unwrap();
        std::fs::write(directory.path().join("notes.txt"), "no policy").unwrap();
        let reading = folder.read(&[]);
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        let names: Vec<_> = reading.drafts.iter().map(|draft| draft.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "good"]);
        assert_eq!(reading.drafts[1].text, GOOD.replace("good", "two"));
    }

    #[test]
    fn an_invalid_file_keeps_its_last_valid_version_and_says_why() {
        let (directory, mut folder) = folder();
        let path = directory.path().join("a.yaml");
        std::fs::write(&path, GOOD).unwrap();
        std::fs::write(directory.path().join("b.yaml"), GOOD.replace("good", "other")).unwrap();
        let valid = folder.read(&[]);
        std::fs::write(&path, GOOD.replace("allow", "alow")).unwrap();
        std::fs::write(directory.path().join("b.yaml"), GOOD.replace("good", "renamed")).unwrap();
        let reading = folder.read(&[]);
        assert_eq!(reading.problems.len(), 1);
        assert_eq!(reading.drafts[0].body, valid.drafts[0].body);
        assert!(reading.drafts[0].problem.as_ref().unwrap().contains("alow"));
        assert_eq!(reading.drafts[1].name, "renamed");
    }

    #[test]
    fn the_last_valid_version_is_not_forgotten_by_a_restart() {
        let (directory, mut before) = folder();
        let path = directory.path().join("a.yaml");
        std::fs::write(&path, GOOD).unwrap();
        let stored = before.read(&[]).drafts;
        std::fs::write(&path, GOOD.replace("allow", "alow")).unwrap();
        std::fs::write(directory.path().join("n.yaml"), "name: n\nagent: n\nrules: []\n").unwrap();
        let denial = before.read(&[]).drafts.remove(1);
        let mut after = Folder::new(directory.path().to_owned(), Lists::none());
        after.remember(stored.iter().cloned().chain([denial]));
        let reading = after.read(&[]);
        assert_eq!(reading.drafts[0].body, stored[0].body);
        assert!(reading.drafts[0].problem.is_some());
        assert!(
            Policy::from_sent(&reading.drafts[1].body).is_err(),
            "still denied"
        );
    }

    #[test]
    fn a_new_invalid_file_denies_the_agents_it_names() {
        let (directory, mut folder) = folder();
        std::fs::write(directory.path().join("a.yaml"), GOOD.replace("allow", "alow")).unwrap();
        let reading = folder.read(&[]);
        assert_eq!(reading.drafts.len(), 1);
        assert_eq!(reading.drafts[0].agents, ["a"]);
        assert!(Policy::from_sent(&reading.drafts[0].body).is_err());
    }

    #[test]
    fn a_name_that_is_taken_makes_its_file_invalid_and_no_other() {
        let (directory, mut folder) = folder();
        std::fs::write(directory.path().join("a.yaml"), GOOD).unwrap();
        std::fs::write(directory.path().join("b.yaml"), GOOD).unwrap();
        std::fs::write(directory.path().join("c.yaml"), GOOD.replace("good", "taken")).unwrap();
        let reading = folder.read(&["taken".to_owned()]);
        assert_eq!(reading.problems.len(), 2, "{:?}", reading.problems);
        assert_eq!(reading.drafts.len(), 1);
    }
}
