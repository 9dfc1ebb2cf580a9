//! Reading the keys of one section.

use policy::nearest;
use policy::yaml::{Map, Mark, Value};

use super::{KeyDescription, Reading, Setting};

/// A section that is being read.
pub(crate) struct Keys<'v, 'r> {
    value: Option<&'v Value>,
    called: &'static str,
    reading: &'r Reading<'r>,
}

impl<'v, 'r> Keys<'v, 'r> {
    /// Opens a section, which must be a mapping, or missing.
    pub(crate) fn open(
        value: Option<&'v Value>,
        called: &'static str,
        reading: &'r Reading<'r>,
    ) -> Option<Self> {
        let value = value.filter(|value| !value.is_null());
        if let Some(wrong) = value.filter(|value| value.as_map().is_none()) {
            let message = format!("expected {called} (a mapping), found {}", wrong.describe());
            reading.problems.at(wrong, message);
            return None;
        }
        Some(Self {
            value,
            called,
            reading,
        })
    }

    /// A row of the description.
    pub(crate) fn describe<S: Setting>(
        name: &'static str,
        about: &'static str,
        default: Option<&'static str>,
    ) -> KeyDescription {
        KeyDescription {
            name: plain(name),
            about,
            default,
            is_required: default.is_none() && S::REQUIRED,
            has_variable: S::FROM_TEXT,
            kind: S::kind(),
        }
    }

    /// Reports the keys that are not in the table, and those of later versions.
    pub(crate) fn refuse_unknown(&self, known: &[&'static str], planned: &[&'static str]) {
        for entry in self
            .value
            .and_then(Value::as_map)
            .map(Map::entries)
            .unwrap_or_default()
        {
            let key = entry.key.as_str();
            if known.iter().any(|name| plain(name) == key) {
                continue;
            }
            let (message, hint) = if planned.contains(&key) {
                (
                    format!("{key} is not available in this version"),
                    Some("remove it".to_owned()),
                )
            } else {
                let names = known
                    .iter()
                    .map(|name| plain(name))
                    .chain(planned.iter().copied());
                (
                    format!("unknown key \"{key}\" in {}", self.called),
                    nearest::hint(key, names),
                )
            };
            self.reading
                .problems
                .add(entry.mark, entry.value.path(), message, hint);
        }
    }

    /// Reads a key: from its environment variable, else from the file, else its default.
    pub(crate) fn read<S: Setting>(
        &self,
        key: &'static str,
        default: Option<&'static str>,
    ) -> Option<S::Value> {
        let key = plain(key);
        let within = self.reading.prefix.as_deref().map(|prefix| join(prefix, key));
        if let Some(found) = within.as_deref().and_then(|path| self.variable_value::<S>(path)) {
            return found;
        }
        let reading = self.reading.within(within);
        if let Some(value) = self
            .value
            .and_then(|value| value.get(key))
            .filter(|value| !value.is_null())
        {
            return S::read(value, &reading);
        }
        if let Some(default) = default {
            // INVARIANT: every default is read by a test.
            return S::from_text(default).ok();
        }
        let absent = S::absent(&reading);
        if absent.is_none() && S::REQUIRED {
            self.problem(None, format!("{} needs the key \"{key}\"", self.called));
        }
        absent
    }

    fn variable_value<S: Setting>(&self, path: &str) -> Option<Option<S::Value>> {
        let (variable, text) = variables(path)
            .into_iter()
            .find_map(|name| Some((name.clone(), self.reading.environment.get(&name)?)))?;
        if !S::FROM_TEXT || is_service_link(text) {
            return None;
        }
        match S::from_text(text) {
            Ok(value) => Some(Some(value)),
            Err(message) => {
                let problems = self.reading.environment_problems;
                problems.add(
                    Mark::default(),
                    path,
                    format!("variable {variable}: {message}"),
                    None,
                );
                Some(None)
            }
        }
    }

    /// Whether a key is written in the file.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value
            .and_then(|value| value.get(key))
            .is_some_and(|value| !value.is_null())
    }

    /// Reports a problem at a key's value, or at the section.
    pub(crate) fn problem(&self, key: Option<&str>, message: String) {
        let at = key.and_then(|key| self.value?.get(key)).or(self.value);
        match at {
            Some(value) => self.reading.problems.at(value, message),
            None => self.reading.problems.add(Mark::default(), "", message, None),
        }
    }
}

/// A key's name without Rust's mark for names that are its words too.
fn plain(name: &'static str) -> &'static str {
    name.trim_start_matches("r#")
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

/// The variable that sets a key: `TOOLGATE_SPOOL_DIR` for `spool.dir`.
pub(crate) fn variable_name(path: &str) -> String {
    format!("TOOLGATE_{}", path.replace('.', "_").to_uppercase())
}

/// All variables that set a key, the strongest first.
fn variables(path: &str) -> Vec<String> {
    let mut names = vec![variable_name(path)];
    names.extend(
        crate::model::ALIASES
            .iter()
            .filter(|(key, _)| *key == path)
            .map(|(_, name)| (*name).to_owned()),
    );
    names
}

/// Kubernetes sets `TOOLGATE_PORT=tcp://10.0.0.1:9090` in every pod beside a Service named `toolgate`.
fn is_service_link(text: &str) -> bool {
    text.starts_with("tcp://") || text.starts_with("udp://")
}
