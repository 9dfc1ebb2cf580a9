//! How tools, resources and prompts are named towards agents.
//!
//! A tool or a prompt is `<upstream><separator><name>`. A resource is `<upstream>.<uri>`, whatever the separator is: that is a
//! URI again, with the upstream before its scheme, while `_` cannot be in a scheme; so `_` of an upstream's name is `+` there.

use std::borrow::Cow;

use tools::model::Tool;
use tools::operation::Operation;

/// Places at which a name is tried to be split.
const MAX_SPLITS: usize = 16;

/// The naming that is configured under `expose`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Between the upstream and the tool.
    pub separator: String,
    /// The one upstream whose tools keep their own names.
    pub unprefixed: Option<String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            separator: ".".to_owned(),
            unprefixed: None,
        }
    }
}

impl Names {
    /// The name under which an agent sees the tool.
    pub fn shown<'t>(&self, tool: &'t Tool) -> Cow<'t, str> {
        let Some(upstream) = &tool.upstream else {
            return Cow::Borrowed(tool.name.as_str());
        };
        if self.unprefixed.as_deref() == Some(upstream.as_str()) {
            return Cow::Borrowed(tool.local_name());
        }
        if self.separator == "." || !tool.is_prefixed() {
            return Cow::Borrowed(tool.name.as_str());
        }
        Cow::Owned(format!("{upstream}{}{}", self.separator, tool.local_name()))
    }

    /// The prompt's name, or the resource's URI or URI template, under which an agent sees the entry of a list.
    pub fn shown_entry<'t>(&self, entry: &'t Tool) -> Cow<'t, str> {
        let own = entry.asked_for();
        let Some(upstream) = &entry.upstream else {
            return Cow::Borrowed(own);
        };
        if self.unprefixed.as_deref() == Some(upstream.as_str()) {
            return Cow::Borrowed(own);
        }
        match entry.name.operation() {
            Operation::Resource => Cow::Owned(shown_uri(upstream.as_str(), own)),
            Operation::Tool | Operation::Prompt | Operation::Method => {
                Cow::Owned(format!("{upstream}{}{own}", self.separator))
            }
        }
    }

    /// What an agent can mean by a prompt's name: upstream and own name, the likeliest first.
    pub fn meant_prompt<'n>(&'n self, name: &'n str) -> impl Iterator<Item = (&'n str, &'n str)> {
        let unprefixed = self.unprefixed.as_deref().map(|upstream| (upstream, name));
        unprefixed
            .into_iter()
            .chain(name.split_once('.'))
            .chain(split_anywhere(name))
    }

    /// What an agent can mean by a URI with an upstream before its scheme: how the upstream is written there, and the URI.
    /// Clients write schemes in lower case, so the comparison is without case.
    pub fn meant_uri<'n>(&'n self, uri: &'n str) -> impl Iterator<Item = (&'n str, &'n str)> {
        let unprefixed = self.unprefixed.as_deref().map(|upstream| (upstream, uri));
        unprefixed
            .into_iter()
            .chain(uri.split_once('.'))
            .chain(split_anywhere(uri))
    }

    /// The names that an agent can mean by `name`, the likeliest first. Both separators are understood by the registry.
    pub fn meant<'n>(&self, name: &'n str) -> impl Iterator<Item = Cow<'n, str>> {
        let unprefixed = self
            .unprefixed
            .as_ref()
            .map(|upstream| Cow::Owned(format!("{upstream}.{name}")));
        unprefixed.into_iter().chain([Cow::Borrowed(name)])
    }
}

/// Every way to split at two underscores, up to a bound.
fn split_anywhere(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("__")
        .take(MAX_SPLITS)
        .filter_map(|(at, separator)| {
            let (upstream, rest) = text.split_at_checked(at)?;
            Some((upstream, rest.strip_prefix(separator)?))
        })
}

/// An upstream's URI as agents see it.
pub fn shown_uri(upstream: &str, uri: &str) -> String {
    format!("{}.{uri}", before_scheme(upstream))
}

/// How an upstream is written before a scheme, which begins with a letter and has no `_` (RFC 3986, section 3.1).
fn before_scheme(upstream: &str) -> String {
    let letter = if upstream.starts_with(|first: char| first.is_ascii_alphabetic()) {
        ""
    } else {
        "u+"
    };
    format!("{letter}{}", upstream.replace('_', "+"))
}

/// Whether `written` is how the upstream is written before a scheme, or its name.
pub fn is_written_as(upstream: &str, written: &str) -> bool {
    upstream == written || before_scheme(upstream).eq_ignore_ascii_case(written)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;

    fn tool() -> Tool {
        let declared =
            RawValue::from_string(r#"{"name":"read","inputSchema":{"type":"object"}}"#.to_owned()).unwrap();
        Tool::mcp(&"fs".parse().unwrap(), Arc::from(declared)).unwrap()
    }

    #[test]
    fn a_tool_is_shown_under_the_configured_name() {
        assert_eq!(Names::default().shown(&tool()), "fs.read");
        let underscores = Names {
            separator: "__".to_owned(),
            unprefixed: None,
        };
        assert_eq!(underscores.shown(&tool()), "fs__read");
        let alone = Names {
            separator: ".".to_owned(),
            unprefixed: Some("fs".to_owned()),
        };
        assert_eq!(alone.shown(&tool()), "read");
    }

    #[test]
    fn a_name_without_its_prefix_is_understood_where_it_is_shown_so() {
        let meant = |names: &Names, name: &'static str| names.meant(name).collect::<Vec<_>>();
        assert_eq!(meant(&Names::default(), "fs.read"), ["fs.read"]);
        let alone = Names {
            separator: ".".to_owned(),
            unprefixed: Some("fs".to_owned()),
        };
        assert_eq!(meant(&alone, "read"), ["fs.read", "read"]);
    }

    #[test]
    fn a_tool_without_a_prefix_is_shown_as_it_is() {
        let declared = RawValue::from_string(r#"{"name":"get_pets"}"#.to_owned()).unwrap();
        let kind = tools::model::ToolKind::OpenApi;
        let tool = Tool::declared_by(&"pets".parse().unwrap(), kind, false, Arc::from(declared)).unwrap();
        for separator in [".", "__"] {
            let names = Names {
                separator: separator.to_owned(),
                unprefixed: None,
            };
            assert_eq!(names.shown(&tool), "get_pets");
        }
    }

    fn entry(upstream: &str, operation: Operation, what: &str) -> Tool {
        Tool::request(&upstream.parse().unwrap(), operation, what, None).unwrap()
    }

    #[test]
    fn a_resource_stays_a_uri_under_its_upstreams_name() {
        let names = Names::default();
        for (upstream, shown) in [
            ("fs", "fs.file:///a.txt"),
            ("my_notes-2", "my+notes-2.file:///a.txt"),
            ("3d", "u+3d.file:///a.txt"),
        ] {
            let entry = entry(upstream, Operation::Resource, "file:///a.txt");
            assert_eq!(names.shown_entry(&entry), shown);
            let (written, uri) = names.meant_uri(shown).next().unwrap();
            assert!(
                is_written_as(upstream, written) && uri == "file:///a.txt",
                "{shown}"
            );
            let lowered = shown.to_uppercase();
            let (written, _) = names.meant_uri(&lowered).next().unwrap();
            assert!(is_written_as(upstream, written), "{lowered}");
        }
        assert!(!is_written_as("fs", "gs"));
    }

    #[test]
    fn a_prompt_has_the_separator_and_is_understood_with_both() {
        let underscores = Names {
            separator: "__".to_owned(),
            unprefixed: None,
        };
        let prompt = entry("fs", Operation::Prompt, "greet.all");
        assert_eq!(underscores.shown_entry(&prompt), "fs__greet.all");
        assert_eq!(Names::default().shown_entry(&prompt), "fs.greet.all");
        for name in ["fs__greet.all", "fs.greet.all"] {
            assert!(
                underscores
                    .meant_prompt(name)
                    .any(|meant| meant == ("fs", "greet.all"))
            );
        }
        let alone = Names {
            separator: ".".to_owned(),
            unprefixed: Some("fs".to_owned()),
        };
        assert_eq!(alone.shown_entry(&prompt), "greet.all");
        assert_eq!(alone.meant_prompt("greet.all").next(), Some(("fs", "greet.all")));
        let resource = entry("fs", Operation::Resource, "a://b");
        assert_eq!(alone.shown_entry(&resource), "a://b");
    }
}
