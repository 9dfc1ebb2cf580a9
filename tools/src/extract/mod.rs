//! What the arguments of one call reach: resources and columns, read by the extractor that an operator gave a tool.
//!
//! A set is named only when it was read with certainty and whole; it may name more than the call reaches, never
//! less. Whatever cannot be read so leaves the set unknown, and selectors on it undecided.

mod argument;
mod sql;
mod template;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use sql::Dialect;
pub use template::TemplateError;

use crate::classify::{Risk, RiskSet};
use crate::json::Node;
use crate::targets::Extent;
use template::UriTemplate;

/// The longest SQL text that is read, in bytes.
pub const MAX_SQL: usize = 256 << 10;
/// The longest URI template, in bytes.
pub const MAX_TEMPLATE: usize = 1024;
/// The longest URI that a template gives, in bytes.
pub const MAX_URI: usize = 4096;
/// The most members of a set; a larger one is unknown.
pub const MAX_MEMBERS: usize = 2048;

/// How the targets of a tool's calls are read from their arguments.
///
/// ```
/// let extractor: tools::extract::Extractor =
///     serde_json::from_str(r#"{"mode": "uri_template", "template": "github://{owner}/{repo}"}"#).unwrap();
/// assert!(extractor.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Extractor {
    /// A URI, filled with the call's arguments.
    UriTemplate {
        /// The URI with `{name}` for an argument, `{a.b}` for one inside another.
        template: String,
    },
    /// Tables and columns of an SQL text.
    Sql {
        /// The argument that holds the text; `a.b` for one inside another.
        argument: String,
        /// The database's language.
        dialect: Dialect,
        /// The schema of tables that are named without one (a database in MySQL, a data set in BigQuery).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<String>,
        /// Functions of the database's users that the operator vouches for: they only read what their arguments
        /// hold. Every other unknown function makes a text EXECUTION and its sets unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        functions: Vec<String>,
    },
}

/// What an extractor read from the arguments of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Extraction {
    /// URIs, such as `github://owner/repo` and `table://public.users`.
    pub resources: Extent,
    /// `table.column`; `table.*` for all of them.
    pub columns: Extent,
    /// What the text does, when it was parsed whole; without it nothing milder than EXECUTION is to be believed.
    pub risks: Option<RiskSet>,
    /// Whether everything was read with certainty.
    pub complete: bool,
    /// What stood in the way, and what was found.
    pub reasons: Vec<String>,
}

/// Why an extractor cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractorError {
    /// The template is no URI template.
    #[error("the template cannot be used: {0}")]
    Template(#[from] template::TemplateError),
    /// No argument is named.
    #[error(
        "the extractor's \"argument\" is not a name; write the argument that holds the SQL text, such as \"query\""
    )]
    Argument,
    /// The schema is no identifier.
    #[error(
        "the extractor's \"schema\" {0:?} is not a name of at most 128 characters without dots; write such as \"public\""
    )]
    Schema(String),
    /// A vouched function is no name.
    #[error(
        "the extractor's \"functions\" hold {0:?}, which is not a function's name of at most 128 characters"
    )]
    Function(String),
    /// Too many vouched functions.
    #[error("the extractor's \"functions\" hold {0} names; at most 256 are read")]
    Functions(usize),
}

impl Extractor {
    /// Whether the extractor can be used.
    ///
    /// # Errors
    /// When the template, argument, schema or a function is not well formed; the message says what to write.
    pub fn check(&self) -> Result<(), ExtractorError> {
        match self {
            Self::UriTemplate { template } => Ok(UriTemplate::parse(template).map(drop)?),
            Self::Sql {
                argument,
                schema,
                functions,
                dialect: _,
            } => {
                if !argument::is_name(argument) {
                    return Err(ExtractorError::Argument);
                }
                if let Some(schema) = schema.as_ref().filter(|schema| !is_identifier(schema)) {
                    return Err(ExtractorError::Schema(schema.chars().take(64).collect()));
                }
                if functions.len() > 256 {
                    return Err(ExtractorError::Functions(functions.len()));
                }
                match functions.iter().find(|name| !is_function(name)) {
                    Some(name) => Err(ExtractorError::Function(name.chars().take(64).collect())),
                    None => Ok(()),
                }
            }
        }
    }

    /// Reads what a call reaches from its arguments; absent arguments are an empty object.
    pub fn extract(&self, arguments: Option<Node<'_>>) -> Extraction {
        match self {
            Self::UriTemplate { template } => by_template(template, arguments),
            Self::Sql {
                argument,
                dialect,
                schema,
                functions,
            } => match argument::find(arguments, argument).and_then(|node| {
                node.as_str()
                    .ok_or_else(|| format!("the argument {argument:?} is not a string"))
            }) {
                Err(reason) => Extraction::unknown(reason),
                Ok(text) => sql::read(
                    &text,
                    &sql::Setting {
                        dialect: *dialect,
                        schema: schema.as_deref(),
                        functions,
                    },
                ),
            },
        }
    }
}

impl Extraction {
    /// Nothing could be read.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self {
            reasons: vec![reason.into()],
            ..Self::default()
        }
    }

    /// The gravest risk; EXECUTION when the text was not parsed whole.
    pub fn risk(&self) -> Risk {
        self.risks.map_or(Risk::Execution, RiskSet::gravest)
    }
}

fn by_template(template: &str, arguments: Option<Node<'_>>) -> Extraction {
    let filled = UriTemplate::parse(template)
        .map_err(|error| error.to_string())
        .and_then(|template| template.fill(arguments));
    match filled {
        Ok(uri) => Extraction {
            resources: Extent::Known(vec![uri]),
            complete: true,
            ..Extraction::default()
        },
        Err(reason) => Extraction::unknown(reason),
    }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && !name
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || c == '.')
}

fn is_function(name: &str) -> bool {
    name.len() <= 128 && name.split('.').all(is_identifier)
}
