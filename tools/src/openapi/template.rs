//! How the requests of an operation are made.

use std::sync::Arc;

use super::server::Base;

/// How the request of a call is made of its arguments. Made by importing a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    /// The method, in upper case.
    pub method: &'static str,
    /// Where it goes: no argument changes that.
    pub base: Arc<Base>,
    pub(super) path: Vec<PathPart>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
}

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathPart {
    /// Encoded already.
    Literal(String),
    /// The parameter of this number.
    Parameter(usize),
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

impl Location {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// How lists and objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    /// A field of a form: texts and lists as [`Style::Form`], anything else as JSON text.
    FormField,
    SpaceDelimited,
    PipeDelimited,
    /// Of Swagger 2.0.
    TabDelimited,
    DeepObject,
    /// As JSON text.
    Json,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    /// What it is called among the arguments.
    pub(super) argument: String,
    /// What it is called in the request.
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) wire: Wire,
}

/// How a value is written in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wire {
    pub(super) style: Style,
    pub(super) explodes: bool,
    /// Whether reserved characters that cannot change what a query means stay as they are.
    pub(super) keeps_reserved: bool,
}

/// What follows the headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) media_type: String,
    pub(super) form: BodyForm,
    /// Whether it is sent even when no argument is for it.
    pub(super) is_required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyForm {
    /// The argument's JSON text.
    Json(String),
    /// An object of these arguments.
    JsonMembers(Vec<Member>),
    /// `application/x-www-form-urlencoded`
    Form(Vec<FormField>),
    /// `multipart/form-data`
    Multipart(Vec<Part>),
    /// The text of the argument.
    Text(String),
    /// The bytes that the argument holds in base64.
    Bytes(String),
}

/// An argument that is a member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) argument: String,
    pub(super) name: String,
}

/// An argument that is a field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormField {
    pub(super) member: Member,
    pub(super) wire: Wire,
}

/// An argument that is one or more parts of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) member: Member,
    /// What the document says about it.
    pub(super) media_type: Option<String>,
    /// Whether the argument, or each of its elements, is base64 of a file.
    pub(super) is_file: bool,
}
