//! The databases' languages, and how each compares names.

use serde::{Deserialize, Serialize};
use sqlparser::dialect::{
    BigQueryDialect, Dialect as Language, GenericDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect,
    SnowflakeDialect,
};

/// A database's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
    /// BigQuery's GoogleSQL.
    BigQuery,
    /// Snowflake.
    Snowflake,
    /// Any other: read only where the languages agree.
    Generic,
}

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Table,
    Column,
}

/// Letters that some databases take for `s`, `k` and `i` when they compare names without case.
const FOLDED_TO_ASCII: [char; 4] = ['\u{17f}', '\u{212a}', '\u{130}', '\u{131}'];

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 6] = [
        Self::Postgres,
        Self::MySql,
        Self::Sqlite,
        Self::BigQuery,
        Self::Snowflake,
        Self::Generic,
    ];

    /// The parser's rules for this language.
    pub(super) fn language(self) -> &'static dyn Language {
        match self {
            Self::Postgres => &PostgreSqlDialect {},
            Self::MySql => &MySqlDialect {},
            Self::Sqlite => &SQLiteDialect {},
            Self::BigQuery => &BigQueryDialect,
            Self::Snowflake => &SnowflakeDialect,
            Self::Generic => &GenericDialect {},
        }
    }

    /// The schema of tables that are named without one, when nothing else is known.
    pub(super) fn default_schema(self) -> Option<&'static str> {
        match self {
            Self::Postgres | Self::Snowflake => Some("public"),
            Self::Sqlite => Some("main"),
            Self::MySql | Self::BigQuery | Self::Generic => None,
        }
    }

    /// The most bytes of a name; the database cuts or refuses a longer one.
    pub(super) fn longest_name(self) -> usize {
        match self {
            Self::Postgres => 63,
            Self::MySql | Self::Sqlite | Self::BigQuery | Self::Snowflake | Self::Generic => 256,
        }
    }

    /// Whether a subquery in FROM sees the tables beside it without LATERAL.
    pub(super) fn derived_tables_see_siblings(self) -> bool {
        match self {
            Self::Generic => true,
            Self::Postgres | Self::MySql | Self::Sqlite | Self::BigQuery | Self::Snowflake => false,
        }
    }

    /// The name as the database compares it, or none when that cannot be told.
    ///
    /// Where case does not matter, names are lower case. A quoted name of Snowflake that differs from the same
    /// letters unquoted keeps its quotes.
    pub(super) fn folded(self, name: &str, quote: Option<char>, named: Named) -> Option<String> {
        if name.len() > self.longest_name() || name.is_empty() {
            return None;
        }
        let folds_ascii = name.contains(FOLDED_TO_ASCII);
        match self {
            Self::Postgres if quote.is_some() => Some(encoded(name)),
            Self::Postgres | Self::Sqlite => Some(encoded(&name.to_ascii_lowercase())),
            Self::BigQuery if named == Named::Table => Some(encoded(name)),
            Self::Snowflake if quote.is_some() && name.to_uppercase() != name => {
                Some(format!("\"{}\"", encoded(name)))
            }
            Self::MySql | Self::BigQuery | Self::Snowflake | Self::Generic => {
                (!folds_ascii).then(|| encoded(&name.to_lowercase()))
            }
        }
    }
}

/// Encodes what would forge another name or be taken for a pattern.
fn encoded(name: &str) -> String {
    if !name.contains(is_encoded) {
        return name.to_owned();
    }
    let mut text = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if is_encoded(c) {
            // Every such character is one byte.
            text.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

fn is_encoded(c: char) -> bool {
    c.is_ascii_control()
        || matches!(
            c,
            '.' | '%' | '*' | '?' | '"' | '/' | '[' | ']' | '{' | '}' | '\\'
        )
}
