//! Tools that do what their arguments say: the signs of the generic family.

use super::Declared;
use super::program::ProgramSign;
use super::schema::{self, Arguments};
use super::words::Texts;
use crate::model::ToolKind;
use crate::program::DISPATCHER;

/// Names of text arguments that hold something to run.
const TEXT_TO_RUN: [&str; 11] = [
    "code",
    "script",
    "sql",
    "command",
    "cmd",
    "statement",
    "program",
    "expression",
    "function",
    "js",
    "shell",
];
/// Words of a tool's name that make an argument named `query` something to run.
const RUNNING_WORDS: [&str; 4] = ["execute", "exec", "run", "sql"];
/// Words of a description that make an argument named `query` something to run: languages, and databases.
const DATABASE_WORDS: [&str; 17] = [
    "sql",
    "cypher",
    "graphql",
    "nosql",
    "sqlite",
    "duckdb",
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "clickhouse",
    "bigquery",
    "snowflake",
    "oracle",
    "mongodb",
    "neo4j",
    "redshift",
];

/// Why a tool is generic.
#[derive(Debug, Clone, Default)]
pub(super) struct Generic {
    /// The arguments that hold what is run: key and name.
    texts: Vec<(String, String)>,
    /// Signs that something else than a text says what is done, so that no parser can find out.
    opaque: Vec<String>,
}

impl Generic {
    pub(super) fn of(declared: &Declared<'_>, words: &[String], arguments: &Arguments<'_>) -> Self {
        let mut generic = Self::default();
        for property in &arguments.properties {
            let is_text = TEXT_TO_RUN.contains(&property.key.as_str())
                || property.key == "query" && runs_queries(words, declared.description);
            let is_new = || generic.texts.iter().all(|(key, _)| *key != property.key);
            if is_text && property.accepts_text() && is_new() {
                generic
                    .texts
                    .push((property.key.clone(), property.name.to_string()));
            }
        }
        let has = |name: &str| arguments.has(&schema::key(name));
        if has("method") && (has("path") || has("url") || has("endpoint")) {
            generic.opaque("arguments \"method\" and path");
        }
        if has("arguments") && (has("name") || has("tool")) {
            generic.opaque("arguments \"name\" and \"arguments\"");
        }
        let is_dispatcher = declared.local == DISPATCHER || declared.local.ends_with(".__dispatch");
        if declared.kind == ToolKind::Cli && is_dispatcher {
            generic.opaque("dispatcher of a CLI program");
        }
        if declared.program.is_some_and(ProgramSign::is_shell) {
            generic.texts.push(("args".to_owned(), "args".to_owned()));
        }
        for reason in &arguments.unreadable {
            generic.opaque(reason);
        }
        generic
    }

    pub(super) fn is_generic(&self) -> bool {
        !self.texts.is_empty() || self.is_opaque()
    }

    /// Leaves out arguments that are known to be data.
    pub(super) fn forget(&mut self, is_data: impl Fn(&str) -> bool) {
        self.texts.retain(|(key, _)| !is_data(key));
    }

    /// The keys of the arguments that hold what is run.
    pub(super) fn texts(&self) -> Vec<String> {
        self.texts.iter().map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn is_opaque(&self) -> bool {
        !self.opaque.is_empty()
    }

    /// Why the tool is generic.
    pub(super) fn reasons(&self) -> impl Iterator<Item = String> {
        let texts = self.texts.iter().map(|(_, name)| format!("argument {name:?}"));
        texts.chain(self.opaque.iter().cloned())
    }

    fn opaque(&mut self, reason: &str) {
        self.opaque.push(reason.to_owned());
    }
}

fn runs_queries(words: &[String], description: Option<&str>) -> bool {
    let says = |word: &String| RUNNING_WORDS.contains(&word.as_str());
    let mentions = |text: &str| {
        Texts::words(text).any(|word| {
            DATABASE_WORDS
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        })
    };
    words.iter().any(says) || description.is_some_and(mentions)
}
