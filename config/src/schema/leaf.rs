//! Single values.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::document::Action;
use policy::glob::Glob;
use policy::yaml::{Node, Value};
use serde_json::{Value as Json, json};
use tools::id::{AgentId, Namespace, UpstreamName};
use tools::openapi::Selection;

use super::{Kind, Reading, Setting};
use crate::{NoProxy, ProxyUrl, RedisUrl, Secret, units};

/// How a value may be written in YAML.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// As text.
    Word,
    /// As text that no message may repeat.
    Hidden,
    /// As a number.
    Number,
    /// As a number, or as text with a unit.
    Quantity,
    /// As `true` or `false`.
    Flag,
}

/// A value that is one word or number.
pub(crate) trait Leaf {
    /// What it becomes.
    type Value;
    /// How it is written.
    const WRITING: Writing;
    /// What to call it in messages.
    fn phrase() -> String;
    /// Its JSON Schema.
    fn schema() -> Json;
    /// Reads its text. Relative paths start from `folder`. An error does not name the key.
    fn parse(text: &str, folder: &Path) -> Result<Self::Value, String>;
}

impl<L: Leaf> Setting for L {
    type Value = L::Value;
    const REQUIRED: bool = true;
    const FROM_TEXT: bool = true;

    fn kind() -> Kind {
        Kind::Leaf {
            phrase: L::phrase(),
            schema: L::schema(),
        }
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<L::Value> {
        let Some(text) = written(value, L::WRITING) else {
            if L::WRITING == Writing::Hidden {
                reading.problems.at(
                    value,
                    format!("{}: expected a string; put it in quotes", key_of(value)),
                );
            } else {
                reading.problems.expected(value, &L::phrase());
            }
            return None;
        };
        L::parse(text, reading.folder)
            .map_err(|message| {
                reading
                    .problems
                    .at(value, format!("{}: {message}", key_of(value)))
            })
            .ok()
    }

    fn from_text(text: &str) -> Result<L::Value, String> {
        L::parse(text, Path::new(""))
    }

    fn absent(_: &Reading<'_>) -> Option<L::Value> {
        None
    }
}

fn written(value: &Value, writing: Writing) -> Option<&str> {
    match (value.node(), writing) {
        (Node::String(text), Writing::Word | Writing::Hidden | Writing::Quantity) => Some(text),
        (Node::Number(text), Writing::Number | Writing::Quantity) => Some(text),
        (Node::Bool(true), Writing::Flag) => Some("true"),
        (Node::Bool(false), Writing::Flag) => Some("false"),
        _ => None,
    }
}

/// The key under which a value stands.
pub(super) fn key_of(value: &Value) -> &str {
    value.path().rsplit('.').next().unwrap_or_default()
}

impl Leaf for bool {
    type Value = Self;
    const WRITING: Writing = Writing::Flag;

    fn phrase() -> String {
        "true or false".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("expected true or false, found {text:?}"))
    }
}

/// A whole number between two bounds.
pub(crate) struct Whole<T, const MIN: u64, const MAX: u64>(PhantomData<T>);

impl<T: TryFrom<u64>, const MIN: u64, const MAX: u64> Leaf for Whole<T, MIN, MAX> {
    type Value = T;
    const WRITING: Writing = Writing::Number;

    fn phrase() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }

    fn parse(text: &str, _: &Path) -> Result<T, String> {
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("expected {}, found {text}", Self::phrase()))
    }
}

/// A time as a whole number of seconds.
pub(crate) struct Seconds<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Leaf for Seconds<MIN, MAX> {
    type Value = Duration;
    const WRITING: Writing = Writing::Number;

    fn phrase() -> String {
        format!("seconds, a whole number from {MIN} to {MAX}")
    }

    fn schema() -> Json {
        Whole::<u64, MIN, MAX>::schema()
    }

    fn parse(text: &str, folder: &Path) -> Result<Duration, String> {
        Whole::<u64, MIN, MAX>::parse(text, folder).map(Duration::from_secs)
    }
}

impl Leaf for Duration {
    type Value = Self;
    const WRITING: Writing = Writing::Word;

    fn phrase() -> String {
        "a duration such as 4m30s".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        match units::duration(text) {
            Some(duration) if !duration.is_zero() => Ok(duration),
            Some(_) => Err("must be longer than nothing".to_owned()),
            None => Err(format!(
                "{text:?} is not a duration; write whole numbers with ms, s, m, h or d, such as 4m30s"
            )),
        }
    }
}

/// A number of bytes, at least one.
pub(crate) struct Size<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Leaf for Size<T> {
    type Value = T;
    const WRITING: Writing = Writing::Quantity;

    fn phrase() -> String {
        "a size such as 16MiB, or a number of bytes".to_owned()
    }

    fn schema() -> Json {
        json!({ "oneOf": [{ "type": "integer", "minimum": 1 },
                          { "type": "string", "pattern": "^[0-9]+ ?([KMG]i?B|B)?$" }] })
    }

    fn parse(text: &str, _: &Path) -> Result<T, String> {
        let bytes = units::size(text).filter(|bytes| *bytes > 0);
        bytes
            .and_then(|bytes| T::try_from(bytes).ok())
            .ok_or_else(|| format!("{text:?} is not a size; write bytes, or a number with KiB, MiB or GiB"))
    }
}

impl Leaf for SocketAddr {
    type Value = Self;
    const WRITING: Writing = Writing::Word;

    fn phrase() -> String {
        "an address such as 127.0.0.1:9090".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not an address; write an IP address and a port, such as 127.0.0.1:9090");
        let text = text.replacen("localhost:", "127.0.0.1:", 1);
        text.parse().map_err(|_| wrong())
    }
}

impl Leaf for PathBuf {
    type Value = Self;
    const WRITING: Writing = Writing::Word;

    fn phrase() -> String {
        "a path".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        if text.is_empty() {
            Err("the path is empty".to_owned())
        } else {
            Ok(folder.join(text))
        }
    }
}

impl Leaf for String {
    type Value = Self;
    const WRITING: Writing = Writing::Word;

    fn phrase() -> String {
        "text".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        if text.is_empty() {
            Err("the text is empty".to_owned())
        } else {
            Ok(text.to_owned())
        }
    }
}

/// Any text, taken as it is and never shown.
pub(crate) struct Literal;

impl Leaf for Literal {
    type Value = Secret;
    const WRITING: Writing = Writing::Hidden;

    fn phrase() -> String {
        "text, taken literally".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn parse(text: &str, _: &Path) -> Result<Secret, String> {
        Ok(Secret::new(text))
    }
}

impl Leaf for Secret {
    type Value = Self;
    const WRITING: Writing = Writing::Hidden;

    fn phrase() -> String {
        "a secret".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        match text {
            "" => Err("the secret is empty; remove the key where none is wanted".to_owned()),
            text => Ok(Self::new(text)),
        }
    }
}

/// The address of an HTTP service.
pub(crate) struct HttpUrl;

impl Leaf for HttpUrl {
    type Value = String;
    const WRITING: Writing = Writing::Hidden;

    fn phrase() -> String {
        "a URL".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^https?://" })
    }

    fn parse(text: &str, _: &Path) -> Result<String, String> {
        let wrong = || "expected a URL that starts with http:// or https:// and names a host".to_owned();
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || authority.host().is_empty() {
            return Err(wrong());
        }
        if authority.as_str().contains('@') {
            return Err("a URL must not hold a name or password; use headers or a token file".to_owned());
        }
        Ok(text.to_owned())
    }
}

/// The name of a token's claim, where there need be none: empty text.
pub(crate) struct ClaimPath;

impl Leaf for ClaimPath {
    type Value = Option<String>;
    const WRITING: Writing = Writing::Word;

    fn phrase() -> String {
        "the name of a claim".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self::Value, String> {
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

/// The address of a Postgres database; it may hold a password.
pub(crate) struct DatabaseUrl;

impl Leaf for DatabaseUrl {
    type Value = Secret;
    const WRITING: Writing = Writing::Hidden;

    fn phrase() -> String {
        "a Postgres URL".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^postgres(ql)?://" })
    }

    fn parse(text: &str, _: &Path) -> Result<Secret, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Ok(Secret::new(text))
        } else {
            Err("expected a URL that starts with postgres://".to_owned())
        }
    }
}

impl Leaf for RedisUrl {
    type Value = Self;
    const WRITING: Writing = Writing::Hidden;

    fn phrase() -> String {
        "a Redis URL".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^rediss?(-sentinel|-cluster)?://" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| error.to_string())
    }
}

impl Leaf for ProxyUrl {
    type Value = Self;
    const WRITING: Writing = Writing::Hidden;

    fn phrase() -> String {
        "the URL of a proxy".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^http://" })
    }

    fn parse(text: &str, _: &Path) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| error.to_string())
    }
}

/// Names that other rooms define: their own parser is the rule.
macro_rules! named {
    ($($type:ty => $phrase:literal),+ $(,)?) => {$(
        impl Leaf for $type {
            type Value = Self;
            const WRITING: Writing = Writing::Word;

            fn phrase() -> String {
                $phrase.to_owned()
            }

            fn schema() -> Json {
                json!({ "type": "string", "minLength": 1 })
            }

            fn parse(text: &str, _: &Path) -> Result<Self, String> {
                text.parse::<Self>().map_err(|error| error.to_string())
            }
        }
    )+};
}

named! {
    UpstreamName => "a name of letters, digits, _ and -",
    Namespace => "a namespace",
    AgentId => "an agent's id",
    Glob => "a pattern with * and ?",
    NoProxy => "a host or a network",
    Selection => "a method and a path, such as `GET *`",
    Action => "`allow`, `human_approval` or `deny`",
}
