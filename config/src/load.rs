//! From a file to a [`Config`], or to every problem in it.

use std::path::Path;

use policy::document::Lists as PolicyLists;
use policy::yaml::{self, Problem, Problems, Value};

use crate::schema::{Lists, Reading, Setting};
use crate::{Config, Environment};

impl Config {
    /// Reads a file. Relative paths in it start from its folder.
    ///
    /// # Errors
    /// Every problem of the file and of the environment variables that override it.
    pub fn load(path: &Path, environment: &Environment) -> Result<Self, Vec<Problem>> {
        Self::parse_in(path, &text_of(path)?, environment, true)
    }

    /// Reads a file for a control plane: everything is checked, but upstreams' secrets are neither needed nor
    /// kept, and [`Config::mcp_servers`], [`Config::openapi`] and [`Config::cli_tools`] are empty.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_without_upstreams(path: &Path, environment: &Environment) -> Result<Self, Vec<Problem>> {
        let mut config = Self::parse_in(path, &text_of(path)?, environment, false)?;
        config.mcp_servers.clear();
        config.openapi.clear();
        config.cli_tools.clear();
        Ok(config)
    }

    /// Reads text; `name` is what problems call it. Relative paths stay relative to the working directory.
    /// Empty text is a configuration too: defaults and the environment.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(name: &str, text: &str, environment: &Environment) -> Result<Self, Vec<Problem>> {
        read(name, text, Path::new(""), environment, true)
    }

    fn parse_in(
        path: &Path,
        text: &str,
        environment: &Environment,
        expands: bool,
    ) -> Result<Self, Vec<Problem>> {
        let folder = path.parent().unwrap_or(Path::new(""));
        read(&path.display().to_string(), text, folder, environment, expands)
    }
}

fn text_of(path: &Path) -> Result<String, Vec<Problem>> {
    let name = path.display().to_string();
    std::fs::read(path)
        .map_err(|error| format!("cannot be read: {error}"))
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned()))
        .map_err(|message| vec![whole_file(&name, message)])
}

fn whole_file(name: &str, message: String) -> Problem {
    Problem {
        file: name.into(),
        line: 0,
        column: 0,
        path: String::new(),
        message,
        hint: None,
    }
}

fn read(
    name: &str,
    text: &str,
    folder: &Path,
    environment: &Environment,
    expands: bool,
) -> Result<Config, Vec<Problem>> {
    let documents = yaml::load(name, text)?;
    let (problems, environment_problems) = (Problems::new(name), Problems::new("environment"));
    if let Some(second) = documents.get(1) {
        problems.at(
            second,
            "a configuration is one document; remove the --- before this one",
        );
    }
    let root = documents.first().filter(|root| !root.is_null());
    let lists = lists_of(root, environment, folder);
    let reading = Reading {
        problems: &problems,
        environment_problems: &environment_problems,
        environment,
        folder,
        lists: &lists,
        expands,
        prefix: Some(String::new()),
    };
    let config = match root {
        Some(root) => Config::read(root, &reading),
        None => Config::absent(&reading),
    };
    let mut found = problems.into_vec();
    found.extend(environment_problems.into_vec());
    match config {
        Some(config) if found.is_empty() => Ok(config),
        _ if found.is_empty() => Err(vec![unexplained(name)]),
        _ => Err(found),
    }
}

fn unexplained(name: &str) -> Problem {
    whole_file(
        name,
        "cannot be used, for a reason that no check found; please report this".to_owned(),
    )
}

/// Policies name lists, so these are read first; their own problems are reported with the rest.
fn lists_of(root: Option<&Value>, environment: &Environment, folder: &Path) -> PolicyLists {
    let unheard = Problems::new("");
    let reading = Reading {
        problems: &unheard,
        environment_problems: &unheard,
        environment,
        folder,
        lists: &PolicyLists::none(),
        expands: false,
        prefix: None,
    };
    let value = root.and_then(|root| root.get("lists"));
    value
        .and_then(|value| Lists::read(value, &reading))
        .unwrap_or_default()
}
