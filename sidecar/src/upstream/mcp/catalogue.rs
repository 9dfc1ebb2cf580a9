//! Reading all pages of an upstream's tools.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::time::timeout;

use super::envelope;
use super::failure::Failure;
use super::http::mirror::{Mirrors, mirrors};
use super::link::Link;
use super::session::Opened;
use super::{Era, message, scan};
use crate::upstream::{AnswerKind, DeclaredTool, UpstreamLimits};

const MAX_PAGES: usize = 1000;
const MAX_TOOLS: usize = 10_000;
const METHOD_NOT_FOUND: i64 = -32601;

/// What an upstream declares, and what its declarations ask of calls.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    pub(super) tools: Vec<DeclaredTool>,
    pub(super) mirrors: Mirrors,
}

/// Reads all pages. Each has the bound of a handshake.
pub(super) async fn read(
    upstream: &Arc<str>,
    link: &Link,
    opened: &Opened,
    limits: &UpstreamLimits,
) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::default();
    if !opened.has_tools {
        return Ok(catalogue);
    }
    let mirrors_arguments = opened.wire.dialect.era == Era::Modern && matches!(link, Link::Http(_));
    let mut cursor: Option<Vec<u8>> = None;
    for _ in 0..MAX_PAGES {
        let members = cursor
            .as_ref()
            .map(|cursor| [b"\"cursor\":", cursor.as_slice()].concat());
        let params = message::params(&opened.wire.dialect, &members.unwrap_or_default());
        let bound = limits.handshake_timeout;
        let reply = timeout(bound, link.request(&opened.wire, "tools/list", &params))
            .await
            .unwrap_or(Err(Failure::Timeout(bound)))?;
        let page = reply.answer.raw;
        if reply.answer.kind == AnswerKind::Error {
            return match envelope::error_code(&page) {
                Some(METHOD_NOT_FOUND) => Ok(catalogue),
                code => Err(Failure::Protocol(format!(
                    "it refused to list its tools with error {}",
                    code.unwrap_or_default()
                ))),
            };
        }
        let listed =
            scan::member(&page, "tools").ok_or_else(|| problem("its list of tools has no \"tools\""))?;
        for raw in scan::elements(listed).map_err(|_| problem("its \"tools\" are not a list"))? {
            add(&mut catalogue, upstream, raw, mirrors_arguments);
        }
        if catalogue.tools.len() > MAX_TOOLS {
            return Err(Failure::Protocol(format!(
                "it declares more than {MAX_TOOLS} tools"
            )));
        }
        let next = scan::member(&page, "nextCursor")
            .filter(|raw| *raw != b"null")
            .map(<[u8]>::to_vec);
        if next.is_none() {
            return Ok(catalogue);
        }
        if next == cursor {
            return Err(problem("its list of tools repeats a cursor"));
        }
        cursor = next;
    }
    Err(Failure::Protocol(format!(
        "its list of tools has more than {MAX_PAGES} pages"
    )))
}

fn add(catalogue: &mut Catalogue, upstream: &Arc<str>, raw: &[u8], mirrors_arguments: bool) {
    match declared(raw, mirrors_arguments) {
        Ok((tool, mirrors)) => {
            if !mirrors.is_empty() {
                catalogue.mirrors.insert(Arc::clone(&tool.name), mirrors);
            }
            catalogue.tools.push(tool);
        }
        Err(problem) => tracing::warn!(%upstream, "a declared tool is left out: {problem}"),
    }
}

type Declared = (DeclaredTool, Vec<super::http::mirror::Mirror>);

fn declared(raw: &[u8], mirrors_arguments: bool) -> Result<Declared, String> {
    let text = std::str::from_utf8(raw).map_err(|error| error.to_string())?;
    let declared = RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())?;
    let name = scan::member(raw, "name").and_then(|raw| serde_json::from_slice::<String>(raw).ok());
    let name = name.ok_or("it has no name")?;
    let schema = scan::member(raw, "inputSchema").and_then(|raw| std::str::from_utf8(raw).ok());
    let found = match schema.filter(|_| mirrors_arguments) {
        Some(schema) => mirrors(schema).map_err(|problem| format!("{name:?}: {problem}"))?,
        None => Vec::new(),
    };
    Ok((
        DeclaredTool {
            name: name.into(),
            declared: Arc::from(declared),
        },
        found,
    ))
}

fn problem(text: &str) -> Failure {
    Failure::Protocol(text.to_owned())
}

/// No mirrored arguments.
pub(super) fn no_mirrors() -> Mirrors {
    HashMap::new()
}
