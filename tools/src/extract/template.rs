//! URI templates: literal text and `{name}` in turn.

use std::fmt::Write as _;

use super::{MAX_TEMPLATE, MAX_URI, argument};
use crate::json::{Kind, Node};

/// The most arguments of one template.
const MAX_NAMES: usize = 32;

/// A template, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UriTemplate<'t> {
    parts: Vec<Part<'t>>,
    /// Characters that stand between two values and so are encoded inside them.
    separators: Vec<char>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'t> {
    Literal(&'t str),
    Name(&'t str),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing was written.
    #[error("it is empty; write such as \"github://{{owner}}/{{repo}}\"")]
    Empty,
    /// More than [`MAX_TEMPLATE`] bytes.
    #[error("it has {0} bytes; at most {MAX_TEMPLATE} are read")]
    TooLong(usize),
    /// It does not begin with a scheme.
    #[error("it does not begin with a scheme; write such as \"github://{{owner}}/{{repo}}\"")]
    NoScheme,
    /// A `{` without `}` or the other way round.
    #[error("the brace at byte {0} has no partner; write each argument as {{name}}")]
    Brace(usize),
    /// What stands between braces is no name.
    #[error("{0:?} is not the name of an argument; write {{name}}, or {{a.b}} for one inside another")]
    Name(String),
    /// More than [`MAX_NAMES`] arguments.
    #[error("it names {0} arguments; at most {MAX_NAMES} are read")]
    TooMany(usize),
    /// Two values without anything between them that keeps them apart.
    #[error(
        "between {0:?} and the argument before it stands nothing that keeps their values apart; put a character such as '/' between them"
    )]
    Adjacent(String),
    /// A character that no URI has.
    #[error("the character {0:?} cannot stand in a URI; write it percent-encoded")]
    Character(char),
}

impl<'t> UriTemplate<'t> {
    /// Takes a template apart.
    ///
    /// # Errors
    /// When it is none, or when values could be taken for one another.
    pub(super) fn parse(text: &'t str) -> Result<Self, TemplateError> {
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        if text.len() > MAX_TEMPLATE {
            return Err(TemplateError::TooLong(text.len()));
        }
        let parts = split(text)?;
        check_scheme(&parts)?;
        let names = parts.iter().filter(|part| matches!(part, Part::Name(_))).count();
        if names > MAX_NAMES {
            return Err(TemplateError::TooMany(names));
        }
        let separators = separators(&parts)?;
        Ok(Self { parts, separators })
    }

    /// The URI for these arguments.
    ///
    /// # Errors
    /// With the reason when a value is missing, empty, or no string, number or boolean.
    pub(super) fn fill(&self, arguments: Option<Node<'_>>) -> Result<String, String> {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => uri.push_str(text),
                Part::Name(name) => {
                    let value = text_of(argument::find(arguments, name)?, name)?;
                    if value.is_empty() {
                        return Err(format!("the argument {name:?} is empty"));
                    }
                    encode(&value, &self.separators, &mut uri);
                }
            }
            if uri.len() > MAX_URI {
                return Err(format!("the URI would have more than {MAX_URI} bytes"));
            }
        }
        Ok(uri)
    }
}

fn split(text: &str) -> Result<Vec<Part<'_>>, TemplateError> {
    let mut parts = Vec::new();
    let mut rest = text;
    let offset = |rest: &str| text.len() - rest.len();
    while !rest.is_empty() {
        let Some((literal, inside)) = rest.split_once('{') else {
            push_literal(rest, offset(rest), &mut parts)?;
            break;
        };
        push_literal(literal, offset(rest), &mut parts)?;
        let (name, after) = inside
            .split_once('}')
            .ok_or(TemplateError::Brace(offset(inside).saturating_sub(1)))?;
        if !argument::is_name(name) || name.contains(['{', '+', '#', '?', '&', '/', ';', '*', ',', ':']) {
            return Err(TemplateError::Name(name.chars().take(64).collect()));
        }
        parts.push(Part::Name(name));
        rest = after;
    }
    Ok(parts)
}

fn push_literal<'t>(literal: &'t str, at: usize, parts: &mut Vec<Part<'t>>) -> Result<(), TemplateError> {
    if let Some(brace) = literal.find('}') {
        return Err(TemplateError::Brace(at + brace));
    }
    let bad = |c: &char| c.is_control() || c.is_whitespace() || !c.is_ascii() || "\"<>\\^`|*[]".contains(*c);
    if let Some(character) = literal.chars().find(bad) {
        return Err(TemplateError::Character(character));
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(())
}

fn check_scheme(parts: &[Part<'_>]) -> Result<(), TemplateError> {
    let Some(Part::Literal(first)) = parts.first() else {
        return Err(TemplateError::NoScheme);
    };
    let scheme = first.split_once(':').map_or("", |(scheme, _)| scheme);
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if well_formed {
        Ok(())
    } else {
        Err(TemplateError::NoScheme)
    }
}

/// Characters that values keep but that stand between two of them: they must not stand inside a value.
fn separators(parts: &[Part<'_>]) -> Result<Vec<char>, TemplateError> {
    let mut separators = Vec::new();
    for window in parts.windows(3) {
        let [Part::Name(_), Part::Literal(between), Part::Name(_)] = window else {
            continue;
        };
        if between.chars().any(|c| !is_kept(c)) {
            continue;
        }
        let marks: Vec<char> = between.chars().filter(|c| !c.is_ascii_alphanumeric()).collect();
        if marks.is_empty() {
            return Err(adjacent(window.last()));
        }
        separators.extend(marks);
    }
    match parts
        .windows(2)
        .find(|pair| matches!(pair, [Part::Name(_), Part::Name(_)]))
    {
        Some(pair) => Err(adjacent(pair.last())),
        None => Ok(separators),
    }
}

fn adjacent(part: Option<&Part<'_>>) -> TemplateError {
    match part {
        Some(Part::Name(name)) => TemplateError::Adjacent((*name).to_owned()),
        Some(Part::Literal(_)) | None => TemplateError::Adjacent(String::new()),
    }
}

fn text_of(node: Node<'_>, name: &str) -> Result<String, String> {
    match node.kind() {
        Kind::String => Ok(node.as_str().map(|text| text.into_owned()).unwrap_or_default()),
        Kind::Bool => Ok(node.raw_str().to_owned()),
        Kind::Number => {
            let mut text = Vec::new();
            if let Some(number) = node.number() {
                number.write_canonical(&mut text);
            }
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        kind @ (Kind::Null | Kind::Array | Kind::Object) => Err(format!(
            "the argument {name:?} is {}, not a plain value",
            kind.name()
        )),
    }
}

/// RFC 3986, section 2.3: what never needs encoding.
fn is_kept(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~')
}

/// Percent-encodes a value; `.` and `..` too, which would be steps in a path.
fn encode(value: &str, separators: &[char], uri: &mut String) {
    let is_step = matches!(value, "." | "..");
    for c in value.chars() {
        if is_kept(c) && !is_step && !separators.contains(&c) {
            uri.push(c);
            continue;
        }
        let mut bytes = [0; 4];
        for byte in c.encode_utf8(&mut bytes).bytes() {
            // Writing to a string does not fail.
            let _ = write!(uri, "%{byte:02X}");
        }
        if uri.len() > MAX_URI {
            return;
        }
    }
}
