//! A document, its version, and what its references lead to.

use std::cell::RefCell;
use std::fmt;

use super::text::cut;
use crate::json::{Kind, Node, Pointers};

/// References that lead to each other, at most.
const MAX_HOPS: usize = 32;

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Swagger 2.0
    Swagger2,
    /// OpenAPI 3.0
    OpenApi30,
    /// OpenAPI 3.1
    OpenApi31,
}

impl Version {
    /// The version that a document says it has.
    pub(super) fn of(root: Node<'_>) -> Option<Self> {
        let says = |key: &str| root.get(key).and_then(Node::as_str);
        if let Some(version) = says("openapi") {
            return if version == "3.0" || version.starts_with("3.0.") {
                Some(Self::OpenApi30)
            } else if version == "3.1" || version.starts_with("3.1.") {
                Some(Self::OpenApi31)
            } else {
                None
            };
        }
        // YAML without quotes makes a number of it.
        let swagger = root.get("swagger")?;
        let is_two = swagger.as_str().is_some_and(|version| version == "2.0") || swagger.raw() == b"2.0";
        is_two.then_some(Self::Swagger2)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Swagger2 => "Swagger 2.0",
            Self::OpenApi30 => "OpenAPI 3.0",
            Self::OpenApi31 => "OpenAPI 3.1",
        })
    }
}

/// Why an operation cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error(
        "the reference {0:?} leads out of the document; such references are not followed, put what it means into the document"
    )]
    Remote(String),
    #[error("the reference {0:?} leads to nothing")]
    Nowhere(String),
    #[error("the reference {0:?} leads back to itself")]
    Cycle(String),
    #[error("{what} is not {expected}")]
    Shape { what: String, expected: &'static str },
    #[error("the path {0:?} cannot be used: {1}")]
    Path(String, &'static str),
    #[error("the parameter {0:?} cannot be sent: {1}")]
    Parameter(String, &'static str),
    #[error(
        "its server {0:?} is not where this document comes from; set backend_url to it if it may be called"
    )]
    Server(String),
    #[error("its declaration is larger than {0} bytes")]
    TooLarge(usize),
    #[error("its arguments could not be checked: {0}")]
    Schema(#[from] crate::arguments::SchemaError),
    #[error("another operation has its name; give it an operationId of its own")]
    Name,
}

/// A document whose references can be followed.
pub(super) struct Source<'d> {
    pub(super) root: Node<'d>,
    pub(super) version: Version,
    pointers: RefCell<Pointers<'d>>,
}

impl<'d> Source<'d> {
    pub(super) fn new(root: Node<'d>, version: Version) -> Self {
        Self {
            root,
            version,
            pointers: RefCell::new(Pointers::new(root)),
        }
    }

    pub(super) fn is_swagger(&self) -> bool {
        self.version == Version::Swagger2
    }

    /// What a reference within the document leads to.
    pub(super) fn target(&self, reference: &str) -> Result<Node<'d>, Unusable> {
        let pointer = reference
            .strip_prefix('#')
            .ok_or_else(|| Unusable::Remote(cut(reference, 200)))?;
        let target = self.pointers.borrow_mut().find(pointer);
        target.ok_or_else(|| Unusable::Nowhere(cut(reference, 200)))
    }

    /// The object itself, or what its `$ref` leads to in the end.
    pub(super) fn resolved(&self, node: Node<'d>) -> Result<Node<'d>, Unusable> {
        let mut at = node;
        for _ in 0..MAX_HOPS {
            match at.get("$ref").and_then(Node::as_str) {
                Some(reference) if at.kind() == Kind::Object => at = self.target(&reference)?,
                Some(_) | None => return Ok(at),
            }
        }
        let reference = node.get("$ref").and_then(Node::as_str).unwrap_or_default();
        Err(Unusable::Cycle(cut(&reference, 200)))
    }
}
