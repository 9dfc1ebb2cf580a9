//! Masks secrets before anything leaves the sidecar (specs/traces.md, Record).
//!
//! A value goes when its key names a secret (`password`, `api_key`, `Authorization`, … in any case and spelling), when a configured
//! key pattern or path names it, or where a text looks like a secret (`patterns`). What goes leaves its length, so that a reader
//! knows that something was there.

mod keys;
mod options;
mod patterns;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use policy::glob::{Glob, GlobError};
use serde_json::value::RawValue;
use tools::json::{Kind, Node};

use patterns::Patterns;

/// Members of one set of targets that are recorded.
const MAX_TARGETS: usize = 256;

/// What of the arguments is reported. Ordered: later is stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParamsMode {
    /// As they came.
    Full,
    /// With secrets masked.
    #[default]
    Redacted,
    /// Not at all: the record holds digests only.
    Digest,
}

impl ParamsMode {
    /// The mode of that name; an unknown one is taken for the strictest.
    pub fn from_name(name: &str) -> Self {
        match name {
            "full" => Self::Full,
            "redacted" => Self::Redacted,
            _ => Self::Digest,
        }
    }
}

/// One configured pattern.
#[derive(Clone, Debug)]
enum Rule {
    /// Every member whose key matches, wherever it is.
    Key(Glob),
    /// The value under these keys from the root; arrays are looked through.
    Path(Vec<Glob>),
}

/// Masks secrets in arguments and texts. Made once per set of settings.
#[derive(Debug)]
pub struct Redactor {
    mode: ParamsMode,
    rules: Vec<Rule>,
    patterns: &'static Patterns,
}

/// A text with what looks like a secret masked, by the built-in patterns.
pub fn masked(text: &str) -> Cow<'_, str> {
    Patterns::shared().masked(text)
}

impl Redactor {
    /// A redactor with the built-in rules and the configured ones: key patterns (`*ssn*`), or paths with dots (`user.address.*`),
    /// in any case.
    ///
    /// # Errors
    /// A pattern is not valid.
    pub fn new<'a>(
        mode: ParamsMode,
        configured: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, GlobError> {
        let rules = configured.into_iter().map(rule).collect::<Result<_, _>>()?;
        Ok(Self {
            mode,
            rules,
            patterns: Patterns::shared(),
        })
    }

    /// The redactor for the fleet's settings with what local configuration adds. A pattern of the fleet that cannot be read here makes
    /// the mode `digest`: what it was to mask is not known.
    pub fn tightened<'a>(
        fleet: &'a proto::body::FleetSettings,
        local_mode: ParamsMode,
        local: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mode = ParamsMode::from_name(&fleet.params).max(local_mode);
        let all = fleet.redact.iter().map(String::as_str).chain(local);
        Self::new(mode, all).unwrap_or_else(|error| {
            tracing::error!(%error, "a redaction pattern cannot be read: nothing of the arguments is reported");
            Self {
                mode: ParamsMode::Digest,
                rules: Vec::new(),
                patterns: Patterns::shared(),
            }
        })
    }

    /// The arguments as a record may hold them; `None`: not at all.
    pub fn params(&self, arguments: Node<'_>) -> Option<Box<RawValue>> {
        let text = match self.mode {
            ParamsMode::Full => arguments.raw_str().to_owned(),
            ParamsMode::Redacted => self.redacted(arguments).into_owned(),
            ParamsMode::Digest => return None,
        };
        RawValue::from_string(text).ok()
    }

    /// The arguments with secrets masked, whatever the mode: what an approver sees.
    pub fn redacted<'n>(&self, arguments: Node<'n>) -> Cow<'n, str> {
        let mut path = Vec::new();
        if !self.is_touched(arguments, &mut path) {
            return Cow::Borrowed(arguments.raw_str());
        }
        let mut out = String::with_capacity(arguments.raw().len());
        path.clear();
        self.write(arguments, &mut path, &mut out);
        Cow::Owned(out)
    }

    /// Whether anything of the arguments is masked.
    pub fn masks(&self, arguments: Node<'_>) -> bool {
        self.mode != ParamsMode::Full && self.is_touched(arguments, &mut Vec::new())
    }

    /// What a call reaches, as a record may hold it; `None`: not at all. Where arguments are masked, what could hold a text of theirs
    /// is left out: only tables and columns, which are names, stay.
    pub fn targets(&self, members: &[String], arguments_are_masked: bool) -> Option<Vec<String>> {
        let may_stay = |member: &&String| !arguments_are_masked || member.starts_with("table://");
        let masked = |member: &String| match self.mode {
            ParamsMode::Full => member.clone(),
            ParamsMode::Redacted | ParamsMode::Digest => self.text(member).into_owned(),
        };
        match self.mode {
            ParamsMode::Digest => None,
            ParamsMode::Full | ParamsMode::Redacted => Some(
                members
                    .iter()
                    .filter(may_stay)
                    .take(MAX_TARGETS)
                    .map(masked)
                    .collect(),
            ),
        }
    }

    /// A text (an error, a message) with what looks like a secret masked.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.patterns.masked(text)
    }

    /// Whether the value of this key, or of an option of this name, goes wherever it is.
    fn names(&self, key: &str) -> bool {
        keys::names_secret(key)
            || self.rules.iter().any(|rule| match rule {
                Rule::Key(glob) => glob.matches(&key.to_lowercase()),
                Rule::Path(_) => false,
            })
    }

    /// Whether a value goes that stands under these keys; the elements of an array stand under its own.
    fn hides(&self, path: &[Cow<'_, str>]) -> bool {
        let Some(key) = path.last() else { return false };
        self.names(key)
            || self.rules.iter().any(|rule| match rule {
                Rule::Key(_) => false,
                Rule::Path(globs) => {
                    globs.len() == path.len()
                        && globs
                            .iter()
                            .zip(path)
                            .all(|(glob, key)| glob.matches(&key.to_lowercase()))
                }
            })
    }

    fn is_touched<'n>(&self, node: Node<'n>, path: &mut Vec<Cow<'n, str>>) -> bool {
        if self.hides(path) && is_maskable(node, path) {
            return true;
        }
        match node.kind() {
            Kind::Null | Kind::Bool | Kind::Number => false,
            Kind::String => node.as_str().is_some_and(|text| self.patterns.matches(&text)),
            Kind::Array => {
                let mut values = options::Values::default();
                node.elements().any(|element| {
                    let is_secret = values.next(element.as_str().as_deref(), |key| self.names(key));
                    is_secret.is_some() || self.is_touched(element, path)
                })
            }
            Kind::Object => node
                .members()
                .any(|(key, value)| self.patterns.matches(&key) || self.is_touched_below(key, value, path)),
        }
    }

    fn is_touched_below<'n>(&self, key: Cow<'n, str>, node: Node<'n>, path: &mut Vec<Cow<'n, str>>) -> bool {
        path.push(key);
        let is_touched = self.is_touched(node, path);
        path.pop();
        is_touched
    }

    fn write<'n>(&self, node: Node<'n>, path: &mut Vec<Cow<'n, str>>, out: &mut String) {
        if self.hides(path) && is_maskable(node, path) {
            let length = node.as_str().map_or_else(|| node.raw().len(), |text| text.len());
            push_json(&mask(length), out);
            return;
        }
        match node.kind() {
            Kind::Null | Kind::Bool | Kind::Number => out.push_str(node.raw_str()),
            Kind::String => match node.as_str() {
                Some(text) if self.patterns.matches(&text) => push_json(&self.patterns.masked(&text), out),
                Some(_) | None => out.push_str(node.raw_str()),
            },
            Kind::Array => {
                out.push('[');
                let mut values = options::Values::default();
                for (index, element) in node.elements().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    let text = element.as_str();
                    match (values.next(text.as_deref(), |key| self.names(key)), text) {
                        (Some(from), Some(text)) => push_json(&options::masked(&text, from), out),
                        _ => self.write(element, path, out),
                    }
                }
                out.push(']');
            }
            Kind::Object => self.write_object(node, path, out),
        }
    }

    fn write_object<'n>(&self, node: Node<'n>, path: &mut Vec<Cow<'n, str>>, out: &mut String) {
        out.push('{');
        for (index, (key, value)) in node.members().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let shown = self.patterns.masked(&key);
            push_json(&shown, out);
            out.push(':');
            drop(shown);
            path.push(key);
            self.write(value, path, out);
            path.pop();
        }
        out.push('}');
    }
}

/// Nothing is hidden by masking `null` and booleans; a count of tokens is no token.
fn is_maskable(node: Node<'_>, path: &[Cow<'_, str>]) -> bool {
    match node.kind() {
        Kind::Null | Kind::Bool => false,
        Kind::Number => !path.last().is_some_and(|key| keys::names_count(key)),
        Kind::String | Kind::Array | Kind::Object => true,
    }
}

fn rule(pattern: &str) -> Result<Rule, GlobError> {
    let pattern = pattern.to_lowercase();
    let pattern = pattern.trim_start_matches("$.").trim_start_matches("params.");
    if pattern.contains('.') {
        let steps: Result<Vec<Glob>, _> = pattern.split('.').map(str::parse).collect();
        return Ok(Rule::Path(steps?));
    }
    pattern.parse().map(Rule::Key)
}

/// What stands in place of a secret of so many bytes.
fn mask(length: usize) -> String {
    format!("[redacted, {length} bytes]")
}

fn push_json(text: &str, out: &mut String) {
    // INVARIANT: a string always has a JSON form.
    out.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "\"[redacted]\"".to_owned()));
}
