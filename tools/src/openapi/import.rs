//! From a document to its tools.

use std::collections::HashSet;
use std::sync::Arc;

use super::document::{Source, Unusable, Version};
use super::names;
use super::operation::{self, Place};
use super::selection::{METHODS, Selection};
use super::server::{Base, Servers};
use super::template::RequestTemplate;
use super::text::{cut, text_of};
use super::{MAX_DOCUMENT_BYTES, MAX_TOOLS};
use crate::json::{Document, JsonError, Kind, Limits, Node};

/// Nesting of a document.
const MAX_DEPTH: usize = 200;
/// Bytes of all declarations together.
const MAX_DECLARED: usize = 64 << 20;
/// Operations that are looked at, whether they become tools or not.
const MAX_OPERATIONS: usize = 50_000;

/// What a document is imported with.
#[derive(Debug, Clone, Default)]
pub struct Import<'i> {
    /// The operations that become tools; empty: all.
    pub include: &'i [Selection],
    /// Where the document comes from; none for a file.
    pub document_url: Option<&'i str>,
    /// Where calls go, whatever the document says.
    pub backend_url: Option<&'i str>,
    /// Headers that every request carries: an operation's parameters of these names are not the agent's.
    pub headers: &'i [String],
}

/// What a document declares.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Its title.
    pub title: Option<String>,
    /// Its version.
    pub version: Version,
    /// Its operations, whether they are tools or not.
    pub operations: usize,
    /// Operations that `include` leaves out.
    pub excluded: usize,
    /// The tools, in the document's order.
    pub tools: Vec<ImportedTool>,
    /// Operations that cannot be tools.
    pub left_out: Vec<LeftOut>,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct ImportedTool {
    /// Its name, without a prefix.
    pub name: String,
    /// Its declaration in MCP's shape, as JSON text.
    pub declared: String,
    /// How its requests are made.
    pub template: RequestTemplate,
}

/// An operation that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// `GET /pets`
    pub operation: String,
    /// Why.
    pub reason: String,
}

/// Why a document cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is not acceptable JSON.
    #[error("the document cannot be read: {0}")]
    Json(#[from] JsonError),
    /// It is of no known version.
    #[error("the document is neither OpenAPI 3.0, OpenAPI 3.1 nor Swagger 2.0: {0}")]
    Version(String),
    /// A configured URL cannot be used.
    #[error("{key} {url:?} is no http or https URL with a plain path and without query and credentials")]
    Url {
        /// What was configured.
        key: &'static str,
        /// Its value.
        url: String,
    },
    /// It has more operations than can be tools.
    #[error("the document has more than {limit} operations to import; choose some with `include`")]
    TooMany {
        /// The bound.
        limit: usize,
    },
    /// Its declarations are too large together.
    #[error("the tools of the document take more than {limit} bytes; choose some with `include`")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// Not one of its operations can be a tool.
    #[error(
        "none of the document's {operations} operations can be imported; the first is left out because {reason}"
    )]
    Nothing {
        /// How many it has.
        operations: usize,
        /// Why the first one cannot.
        reason: String,
    },
}

/// Imports a document, which is JSON.
///
/// # Errors
/// When nothing of it can be used. Single operations that cannot be tools are left out.
pub fn import(document: &[u8], with: &Import<'_>) -> Result<Imported, ImportError> {
    let limits = Limits {
        max_bytes: MAX_DOCUMENT_BYTES,
        max_depth: MAX_DEPTH,
    };
    let document = Document::parse(document, limits)?;
    let root = document.root();
    let version = Version::of(root).ok_or_else(|| ImportError::Version(told_version(root)))?;
    let source = Source::new(root, version);
    let base = |key, url: Option<&str>| match url {
        None => Ok(None),
        Some(url) => Base::parse(url).map(Some).ok_or_else(|| ImportError::Url {
            key,
            url: cut(url, 200),
        }),
    };
    let backend = base("backend_url", with.backend_url)?;
    // The query of a document's own URL may hold a token and takes no part.
    let own_url = with
        .document_url
        .map(|url| url.split(['?', '#']).next().unwrap_or_default());
    let servers = Servers::new(&source, base("url", own_url)?, backend);
    let mut importing = Importing {
        source: &source,
        with,
        servers,
        names: HashSet::new(),
        declared_bytes: 0,
        found: Imported {
            title: root
                .get("info")
                .and_then(|info| text_of(info, "title"))
                .map(|title| cut(&title, 200)),
            version,
            operations: 0,
            excluded: 0,
            tools: Vec::new(),
            left_out: Vec::new(),
        },
    };
    for (path, item) in root.get("paths").into_iter().flat_map(Node::members) {
        if path.starts_with('/') {
            importing.path(&path, item)?;
        }
    }
    importing.end()
}

fn told_version(root: Node<'_>) -> String {
    let told = ["openapi", "swagger"]
        .into_iter()
        .find_map(|key| Some(format!("it says {key}: {}", cut(root.get(key)?.raw_str(), 40))));
    told.unwrap_or_else(|| "it has neither a member \"openapi\" nor one \"swagger\"".to_owned())
}

struct Importing<'s, 'd> {
    source: &'s Source<'d>,
    with: &'s Import<'s>,
    servers: Servers,
    names: HashSet<String>,
    declared_bytes: usize,
    found: Imported,
}

impl<'d> Importing<'_, 'd> {
    fn path(&mut self, path: &str, item: Node<'d>) -> Result<(), ImportError> {
        let item = match self.source.resolved(item) {
            Ok(item) => item,
            Err(problem) => {
                self.found.operations += 1;
                self.leave_out("*", path, &problem);
                return Ok(());
            }
        };
        for method in METHODS {
            let Some(operation) = item.get(&method.to_ascii_lowercase()) else {
                continue;
            };
            if operation.kind() != Kind::Object {
                continue;
            }
            self.found.operations += 1;
            if self.found.operations > MAX_OPERATIONS {
                return Err(ImportError::TooMany {
                    limit: MAX_OPERATIONS,
                });
            }
            let include = self.with.include;
            if !include.is_empty() && !include.iter().any(|one| one.covers(method, path)) {
                self.found.excluded += 1;
                continue;
            }
            let place = Place {
                method,
                path,
                path_item: item,
                operation,
            };
            if let Err(problem) = self.operation(&place)? {
                self.leave_out(method, path, &problem);
            }
        }
        Ok(())
    }

    fn operation(&mut self, place: &Place<'_, 'd>) -> Result<Result<(), Unusable>, ImportError> {
        let (source, names) = (self.source, &self.names);
        let by_id = text_of(place.operation, "operationId");
        let wanted = names::tool_name(by_id.as_deref(), place.method, place.path);
        let other = names::by_method_and_path(place.method, place.path);
        let Some(name) = [wanted, other].into_iter().find(|name| !names.contains(name)) else {
            return Ok(Err(Unusable::Name));
        };
        let base = match self.servers.of(place.path_item, place.operation) {
            Ok(base) => base,
            Err(problem) => return Ok(Err(problem)),
        };
        let base = self.shared(base);
        let tool = match operation::tool(source, place, &name, base, self.with.headers) {
            Ok(tool) => tool,
            Err(problem) => return Ok(Err(problem)),
        };
        if self.found.tools.len() >= MAX_TOOLS {
            return Err(ImportError::TooMany { limit: MAX_TOOLS });
        }
        self.declared_bytes += tool.declared.len();
        if self.declared_bytes > MAX_DECLARED {
            return Err(ImportError::TooLarge { limit: MAX_DECLARED });
        }
        self.names.insert(name);
        self.found.tools.push(tool);
        Ok(Ok(()))
    }

    /// One copy of what nearly all tools have in common.
    fn shared(&self, base: Base) -> Arc<Base> {
        let last = self.found.tools.last().map(|tool| &tool.template.base);
        match last.filter(|known| ***known == base) {
            Some(known) => Arc::clone(known),
            None => Arc::new(base),
        }
    }

    fn leave_out(&mut self, method: &str, path: &str, problem: &Unusable) {
        self.found.left_out.push(LeftOut {
            operation: format!("{method} {}", cut(path, 200)),
            reason: problem.to_string(),
        });
    }

    fn end(self) -> Result<Imported, ImportError> {
        match self.found.left_out.first() {
            Some(first) if self.found.tools.is_empty() => Err(ImportError::Nothing {
                operations: self.found.operations,
                reason: first.reason.clone(),
            }),
            _ => Ok(self.found),
        }
    }
}
