//! The request that a call becomes.
//!
//! Arguments become text that is percent-encoded as a whole, so that none can change the host, the path or the meaning of
//! another argument. What would be understood in two ways on its way to the service is refused.

mod body;
mod encode;
mod guard;
mod path;
mod query;
mod value;

use super::template::{Location, Parameter, PathPart, RequestTemplate, Style};
use crate::json::Node;
use value::{Value, json, value};

/// The longest path with its query, in bytes.
const MAX_TARGET: usize = 16 << 10;
/// The longest value of a header, in bytes.
const MAX_HEADER: usize = 8 << 10;

/// The request of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in upper case.
    pub method: &'static str,
    /// What follows the origin: ASCII, and encoded.
    pub path_and_query: String,
    /// Headers that arguments are for, `cookie` among them; values have no control characters.
    pub headers: Vec<(String, String)>,
    /// The media type and the bytes of the body.
    pub body: Option<(String, Vec<u8>)>,
}

/// Why no request can be made of arguments; in words for a model, without the arguments' values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An argument cannot be sent.
    #[error("/{argument}: {problem}")]
    Argument {
        /// Its name.
        argument: String,
        /// Why not, and what can be.
        problem: String,
    },
    /// The URL would be too long.
    #[error("the arguments make a URL of more than {MAX_TARGET} bytes; send less")]
    TooLong,
}

impl BuildError {
    fn of(argument: &str, problem: impl Into<String>) -> Self {
        Self::Argument {
            argument: argument.to_owned(),
            problem: problem.into(),
        }
    }
}

impl RequestTemplate {
    /// The request for these arguments, which fit the tool's input schema; absent ones are an empty object.
    ///
    /// # Errors
    /// When an argument would change more than what it stands for, or cannot be written.
    pub fn build(&self, arguments: Option<Node<'_>>) -> Result<Request, BuildError> {
        let given = |name: &str| {
            arguments
                .and_then(|arguments| arguments.get(name))
                .filter(|node| !node.is_null())
        };
        let mut target = self.base.path.clone();
        for part in &self.path {
            match part {
                PathPart::Literal(text) => target.push_str(text),
                PathPart::Parameter(number) => {
                    let Some(parameter) = self.parameters.get(*number) else {
                        continue;
                    };
                    let text = path::written(parameter, given(&parameter.argument))?;
                    target.push_str(&text);
                }
            }
            if target.len() > MAX_TARGET {
                return Err(BuildError::TooLong);
            }
        }
        self.check_segments(&target)?;
        if target.is_empty() {
            target.push('/');
        }
        let mut pairs = Vec::new();
        let (mut headers, mut cookies) = (Vec::new(), Vec::new());
        for parameter in &self.parameters {
            let Some(node) = given(&parameter.argument) else {
                continue;
            };
            match parameter.location {
                Location::Path => {}
                Location::Query => {
                    let others = self.other_names(parameter);
                    query::written(parameter, node, &others, &mut pairs)?;
                }
                Location::Header => headers.extend(header(parameter, node)?),
                Location::Cookie => query::cookies(parameter, node, &mut cookies)?,
            }
        }
        if !pairs.is_empty() {
            target.push('?');
            target.push_str(&pairs.join("&"));
        }
        if target.len() > MAX_TARGET {
            return Err(BuildError::TooLong);
        }
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        let body = match &self.body {
            Some(body) => body::written(body, &given)?,
            None => None,
        };
        Ok(Request {
            method: self.method,
            path_and_query: target,
            headers,
            body,
        })
    }

    /// The names of the query's other parameters, which no free key may take.
    fn other_names(&self, parameter: &Parameter) -> Vec<&str> {
        self.parameters
            .iter()
            .filter(|other| other.location == Location::Query && other.name != parameter.name)
            .map(|other| other.name.as_str())
            .collect()
    }

    /// No segment is a step, whatever literals and arguments came together in it.
    fn check_segments(&self, target: &str) -> Result<(), BuildError> {
        let is_step = |segment: &str| segment == "." || segment == "..";
        if !target.split('/').any(is_step) {
            return Ok(());
        }
        let first = self
            .parameters
            .iter()
            .find(|parameter| parameter.location == Location::Path);
        let name = first.map_or("", |parameter| parameter.argument.as_str());
        Err(BuildError::of(name, guard::STEP))
    }
}

fn header(parameter: &Parameter, node: Node<'_>) -> Result<Option<(String, String)>, BuildError> {
    let argument = &parameter.argument;
    let text = match parameter.wire.style {
        Style::Json => json(node).to_owned(),
        _ => match value(node) {
            Value::Text(text) => text,
            Value::List(items) if items.is_empty() => return Ok(None),
            Value::List(items) => items.join(","),
            Value::Object(members) if members.is_empty() => return Ok(None),
            Value::Object(members) => {
                let between = if parameter.wire.explodes { "=" } else { "," };
                let pairs: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{key}{between}{value}"))
                    .collect();
                pairs.join(",")
            }
        },
    };
    if text.contains(char::is_control) {
        return Err(BuildError::of(
            argument,
            "a header cannot hold line breaks, NUL or other control characters; leave them out",
        ));
    }
    if text.len() > MAX_HEADER {
        return Err(BuildError::of(
            argument,
            format!("a header holds at most {MAX_HEADER} bytes"),
        ));
    }
    Ok(Some((parameter.name.to_ascii_lowercase(), text)))
}
