//! Arguments and rows that are the same for both databases.

use bytes::Bytes;
use sqlx::{Row as _, postgres::PgRow, sqlite::SqliteRow};

use crate::store::{
    error::{StoreError, StoreResult},
    types::Revision,
};

/// An argument of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Int(i64),
    MaybeInt(Option<i64>),
    Text(String),
    MaybeText(Option<String>),
    Bytes(Vec<u8>),
    MaybeBytes(Option<Vec<u8>>),
    MaybeReal(Option<f64>),
    Flag(bool),
}

macro_rules! arg_from {
    ($($kind:ty, $value:ident => $arg:expr;)*) => {
        $(impl From<$kind> for Arg {
            fn from($value: $kind) -> Self { $arg }
        })*
    };
}

arg_from! {
    i64, value => Self::Int(value);
    u64, value => Self::Int(saturated(value));
    u32, value => Self::Int(value.into());
    Option<i64>, value => Self::MaybeInt(value);
    &str, value => Self::Text(value.to_owned());
    &String, value => Self::Text(value.clone());
    String, value => Self::Text(value);
    Option<&str>, value => Self::MaybeText(value.map(str::to_owned));
    Option<String>, value => Self::MaybeText(value);
    &[u8], value => Self::Bytes(value.to_vec());
    &[u8; 32], value => Self::Bytes(value.to_vec());
    &Vec<u8>, value => Self::Bytes(value.clone());
    &Bytes, value => Self::Bytes(value.to_vec());
    Option<Vec<u8>>, value => Self::MaybeBytes(value);
    Option<f64>, value => Self::MaybeReal(value);
    bool, value => Self::Flag(value);
}

/// The nearest number that a column can hold.
pub(crate) fn saturated(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// `args![a, b]`: the arguments of a statement.
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::store::sql::value::Arg::from($value)),*] };
}
pub(crate) use args;

/// A row of an answer.
pub(crate) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

macro_rules! getter {
    ($($(#[$doc:meta])* $name:ident: $kind:ty;)*) => {
        $($(#[$doc])* pub(crate) fn $name(&self, column: &str) -> StoreResult<$kind> {
            Ok(match self {
                Self::Postgres(row) => row.try_get(column)?,
                Self::Sqlite(row) => row.try_get(column)?,
            })
        })*
    };
}

impl Row {
    getter! {
        int: i64;
        maybe_int: Option<i64>;
        text: String;
        maybe_text: Option<String>;
        bytes: Vec<u8>;
        maybe_bytes: Option<Vec<u8>>;
        maybe_real: Option<f64>;
        flag: bool;
    }

    /// A number that is never negative.
    pub(crate) fn count(&self, column: &str) -> StoreResult<u64> {
        Ok(u64::try_from(self.int(column)?).unwrap_or_default())
    }

    /// A small number that is never negative.
    pub(crate) fn small(&self, column: &str) -> StoreResult<u32> {
        Ok(u32::try_from(self.int(column)?).unwrap_or(u32::MAX))
    }

    /// A hash, fingerprint or digest.
    pub(crate) fn hash(&self, column: &'static str) -> StoreResult<[u8; 32]> {
        self.bytes(column)?
            .try_into()
            .map_err(|found: Vec<u8>| StoreError::Invalid {
                what: "stored hash",
                reason: format!("{column} has {} bytes, not 32", found.len()),
            })
    }

    /// A list kept as a JSON array.
    pub(crate) fn list(&self, column: &'static str) -> StoreResult<Vec<String>> {
        from_json(column, &self.text(column)?)
    }

    /// The columns `generation` and `number`.
    pub(crate) fn revision(&self) -> StoreResult<Revision> {
        Ok(Revision::new(self.count("generation")?, self.count("number")?))
    }
}

/// JSON text of a list or map of strings.
pub(crate) fn to_json<T: serde::Serialize>(what: &'static str, value: &T) -> StoreResult<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Invalid {
        what,
        reason: error.to_string(),
    })
}

/// What [`to_json`] wrote.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> StoreResult<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Invalid {
        what,
        reason: error.to_string(),
    })
}
