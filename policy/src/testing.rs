//! What the tests of the author's tools share.

use std::sync::Arc;

use serde_json::value::RawValue;
use tools::id::UpstreamName;
use tools::model::{Tool, ToolKind};
use tools::program::{Bin, Command, Declaration, Program, Shape};

use crate::catalogue::{Catalogue, KnownTool};
use crate::document::{Lists, Policy, Source};

/// The policies of a YAML text, in file `p.yaml`.
pub(crate) fn policies(text: &str) -> Vec<Arc<Policy>> {
    let policies = Policy::parse_all("p.yaml", text, &Source::Directory, &Lists::none());
    policies
        .unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
        .into_iter()
        .map(Arc::new)
        .collect()
}

/// A tool that reads, one that sends, one that runs commands, one that removes, and one that queries.
pub(crate) fn catalogue() -> Catalogue {
    let tools = [
        (
            "mail",
            r#"{"name":"list_mails","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"folder":{"type":"string"}}}}"#,
        ),
        (
            "mail",
            r#"{"name":"send_mail","annotations":{"readOnlyHint":false},"inputSchema":{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"body":{"type":"string"}}}}"#,
        ),
        (
            "box",
            r#"{"name":"run","inputSchema":{"type":"object","properties":{"command":{"type":"string"}}}}"#,
        ),
        (
            "files",
            r#"{"name":"delete_file","annotations":{"destructiveHint":true},"inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}"#,
        ),
        (
            "db",
            r#"{"name":"query","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}}}"#,
        ),
    ];
    tools
        .into_iter()
        .map(|(upstream, text)| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            KnownTool::of(Tool::mcp(&UpstreamName::try_from(upstream).unwrap(), raw.into()).unwrap())
        })
        .collect()
}

/// `gh` with the commands `pr list` and `pr merge`, and `jq` without commands.
pub(crate) fn programs() -> Catalogue {
    let declared = ["pr list", "pr merge"].map(|name| (name.parse().unwrap(), Command::default()));
    let gh = Shape::Commands {
        declared: declared.into_iter().collect(),
        is_strict: false,
    };
    let all = [("gh", gh), ("jq", Shape::Bare(Command::default()))].map(|(name, shape)| {
        let program = Program {
            shape,
            rejects_metacharacters: false,
        };
        let bin = Bin {
            name,
            is_installed: true,
            floor: "human_approval",
        };
        let tool = |declared: Declaration| {
            let raw = serde_json::value::to_raw_value(&declared.declared).unwrap();
            let upstream = name.parse().unwrap();
            KnownTool::of(Tool::declared_by(&upstream, ToolKind::Cli, true, raw.into()).unwrap())
        };
        program
            .declarations(bin)
            .into_iter()
            .map(tool)
            .collect::<Vec<_>>()
    });
    all.into_iter().flatten().collect()
}
