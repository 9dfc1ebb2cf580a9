//! How tools are named towards agents.

use std::borrow::Cow;

use tools::model::Tool;

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
        if self.separator == "." {
            return Cow::Borrowed(tool.name.as_str());
        }
        Cow::Owned(format!("{upstream}{}{}", self.separator, tool.local_name()))
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
}
