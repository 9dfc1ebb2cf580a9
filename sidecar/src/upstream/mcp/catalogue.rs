//! Reading all pages of what an upstream lists.

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
use crate::upstream::{AnswerKind, DeclaredCatalogue, DeclaredEntry, DeclaredTool, UpstreamLimits};

const MAX_PAGES: usize = 1000;
/// Entries of one list.
const MAX_ENTRIES: usize = 10_000;
/// Bytes of all declarations together.
const MAX_BYTES: usize = 64 << 20;
const METHOD_NOT_FOUND: i64 = -32601;

/// What an upstream declares, and what its declarations ask of calls.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) declared: DeclaredCatalogue,
    pub(super) mirrors: Mirrors,
}

/// One list of the protocol.
struct List {
    method: &'static str,
    member: &'static str,
    /// What an entry is known by.
    key: &'static str,
}

const TOOLS: List = List {
    method: "tools/list",
    member: "tools",
    key: "name",
};
const RESOURCES: List = List {
    method: "resources/list",
    member: "resources",
    key: "uri",
};
const TEMPLATES: List = List {
    method: "resources/templates/list",
    member: "resourceTemplates",
    key: "uriTemplate",
};
const PROMPTS: List = List {
    method: "prompts/list",
    member: "prompts",
    key: "name",
};

/// Reads all pages of all lists that the upstream says it has. Each page has the bound of a handshake.
pub(super) async fn read(
    upstream: &Arc<str>,
    link: &Link,
    opened: &Opened,
    limits: &UpstreamLimits,
) -> Result<Catalogue, Failure> {
    let mut reader = Reader {
        upstream,
        link,
        opened,
        limits,
        bytes: 0,
    };
    let mut catalogue = Catalogue {
        declared: DeclaredCatalogue::unread(Arc::clone(upstream)),
        mirrors: no_mirrors(),
    };
    catalogue.declared.is_read = true;
    catalogue.declared.offers = opened.offers;
    if opened.has_tools {
        for entry in reader.list(&TOOLS).await? {
            reader.add_tool(&mut catalogue, entry);
        }
    }
    if opened.offers.resources {
        catalogue.declared.resources = reader.beside_tools(&RESOURCES).await?;
        catalogue.declared.templates = reader.beside_tools(&TEMPLATES).await?;
    }
    if opened.offers.prompts {
        catalogue.declared.prompts = reader.beside_tools(&PROMPTS).await?;
    }
    Ok(catalogue)
}

struct Reader<'r> {
    upstream: &'r Arc<str>,
    link: &'r Link,
    opened: &'r Opened,
    limits: &'r UpstreamLimits,
    bytes: usize,
}

impl Reader<'_> {
    /// A list whose failure leaves it empty, so that the tools stay usable. A lost connection is a failure of all.
    async fn beside_tools(&mut self, list: &List) -> Result<Vec<DeclaredEntry>, Failure> {
        match self.list(list).await {
            Err(failure @ (Failure::Protocol(_) | Failure::Timeout(_) | Failure::AnswerTooLarge(_))) => {
                tracing::warn!(upstream = %self.upstream, list = list.method, "the list is left out: {failure}");
                Ok(Vec::new())
            }
            outcome => outcome,
        }
    }

    async fn list(&mut self, list: &List) -> Result<Vec<DeclaredEntry>, Failure> {
        let mut entries = Vec::new();
        let mut cursor: Option<Vec<u8>> = None;
        for _ in 0..MAX_PAGES {
            let Some(page) = self.page(list, cursor.as_deref()).await? else {
                return Ok(entries);
            };
            let listed = scan::member(&page, list.member)
                .ok_or_else(|| list.problem(format!("has no {:?}", list.member)))?;
            for raw in scan::elements(listed).map_err(|_| list.problem("is not a list".to_owned()))? {
                self.bytes = self.bytes.saturating_add(raw.len());
                match entry(raw, list) {
                    Ok(entry) => entries.push(entry),
                    Err(problem) => {
                        tracing::warn!(upstream = %self.upstream, list = list.method, "an entry is left out: {problem}");
                    }
                }
            }
            if entries.len() > MAX_ENTRIES {
                return Err(list.problem(format!("has more than {MAX_ENTRIES} entries")));
            }
            if self.bytes > MAX_BYTES {
                return Err(list.problem(format!("brings what it declares to more than {MAX_BYTES} bytes")));
            }
            let next = scan::member(&page, "nextCursor")
                .filter(|raw| *raw != b"null")
                .map(<[u8]>::to_vec);
            if next.is_none() {
                return Ok(entries);
            }
            if next == cursor {
                return Err(list.problem("repeats a cursor".to_owned()));
            }
            cursor = next;
        }
        Err(list.problem(format!("has more than {MAX_PAGES} pages")))
    }

    /// One page; `None`: the upstream has no such list.
    async fn page(&self, list: &List, cursor: Option<&[u8]>) -> Result<Option<bytes::Bytes>, Failure> {
        let members = cursor.map(|cursor| [b"\"cursor\":", cursor].concat());
        let params = message::params(&self.opened.wire.dialect, &members.unwrap_or_default());
        let bound = self.limits.handshake_timeout;
        let asking = self.link.request(&self.opened.wire, list.method, &params);
        let reply = timeout(bound, asking)
            .await
            .unwrap_or(Err(Failure::Timeout(bound)))?;
        let page = reply.answer.raw;
        match reply.answer.kind {
            AnswerKind::Result => Ok(Some(page)),
            AnswerKind::Error => match envelope::error_code(&page) {
                Some(METHOD_NOT_FOUND) => Ok(None),
                code => Err(list.problem(format!("is refused with error {}", code.unwrap_or_default()))),
            },
        }
    }

    fn add_tool(&self, catalogue: &mut Catalogue, entry: DeclaredEntry) {
        let mirrors_arguments =
            self.opened.wire.dialect.era == Era::Modern && matches!(self.link, Link::Http(_));
        let schema = scan::member(entry.declared.get().as_bytes(), "inputSchema")
            .and_then(|raw| std::str::from_utf8(raw).ok());
        match schema.filter(|_| mirrors_arguments).map(mirrors).transpose() {
            Ok(found) => {
                if let Some(found) = found.filter(|found| !found.is_empty()) {
                    catalogue.mirrors.insert(Arc::clone(&entry.key), found);
                }
                catalogue.declared.tools.push(DeclaredTool {
                    name: entry.key,
                    declared: entry.declared,
                });
            }
            Err(problem) => {
                tracing::warn!(upstream = %self.upstream, "a declared tool is left out: {:?}: {problem}", entry.key);
            }
        }
    }
}

impl List {
    fn problem(&self, what: String) -> Failure {
        Failure::Protocol(format!("its answer to {} {what}", self.method))
    }
}

fn entry(raw: &[u8], list: &List) -> Result<DeclaredEntry, String> {
    let text = std::str::from_utf8(raw).map_err(|error| error.to_string())?;
    let declared = RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())?;
    let key = scan::member(raw, list.key).and_then(|raw| serde_json::from_slice::<String>(raw).ok());
    let key = key.ok_or_else(|| format!("it has no {}", list.key))?;
    Ok(DeclaredEntry {
        key: key.into(),
        declared: Arc::from(declared),
    })
}

/// No mirrored arguments.
pub(super) fn no_mirrors() -> Mirrors {
    HashMap::new()
}
