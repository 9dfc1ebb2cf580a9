//! Functions, types and pragmas that are known to do nothing but compute from their arguments.
//!
//! The list is a data file; what is not on it could write, reach outside, or read any table.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use sqlparser::ast::{Expr, ObjectName};

use super::{Dialect, Setting};

/// Sections `[name]`, then names between spaces; `#` begins a comment.
const DATA: &str = include_str!("../data/functions.txt");

static SECTIONS: LazyLock<HashMap<&'static str, HashSet<&'static str>>> = LazyLock::new(|| {
    let mut sections: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut current = "";
    for line in DATA.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => current = name,
            None => sections
                .entry(current)
                .or_default()
                .extend(line.split_whitespace()),
        }
    }
    sections
});

fn is_in(section: &str, name: &str) -> bool {
    SECTIONS.get(section).is_some_and(|names| names.contains(name))
}

fn section(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "postgres",
        Dialect::MySql => "mysql",
        Dialect::Sqlite => "sqlite",
        Dialect::BigQuery => "bigquery",
        Dialect::Snowflake => "snowflake",
        Dialect::Generic => "generic",
    }
}

/// The parts of a name, lower case; none when one is computed.
fn lower(name: &ObjectName) -> Option<Vec<String>> {
    name.0
        .iter()
        .map(|part| part.as_ident().map(|ident| ident.value.to_ascii_lowercase()))
        .collect()
}

/// In Postgres `"LOWER"` is not `lower`.
fn has_quoted_capital(name: &ObjectName) -> bool {
    name.0
        .iter()
        .filter_map(|part| part.as_ident())
        .any(|ident| ident.quote_style.is_some() && ident.value.contains(char::is_uppercase))
}

/// The last part of a name, lower case.
pub(super) fn last_name(name: &ObjectName) -> String {
    lower(name)
        .and_then(|parts| parts.last().cloned())
        .unwrap_or_default()
}

/// Whether a function only computes from its arguments.
pub(super) fn only_reads(name: &ObjectName, setting: &Setting<'_>) -> bool {
    let Some(parts) = lower(name) else {
        return false;
    };
    if setting.dialect == Dialect::Postgres && has_quoted_capital(name) {
        return false;
    }
    let dotted = parts.join(".");
    if setting
        .functions
        .iter()
        .any(|vouched| vouched.eq_ignore_ascii_case(&dotted))
    {
        return true;
    }
    let known = |name: &str| is_in("all", name) || is_in(section(setting.dialect), name);
    match parts.as_slice() {
        [one] => known(one),
        [first, one] => match setting.dialect {
            Dialect::Postgres => first == "pg_catalog" && known(one),
            Dialect::BigQuery => is_in("bigquery", &dotted) || (first == "safe" && known(one)),
            Dialect::MySql | Dialect::Sqlite | Dialect::Snowflake | Dialect::Generic => false,
        },
        _ => false,
    }
}

/// Whether a name stands for a value of the session when it is written without parentheses.
pub(super) fn is_bare(name: &str, dialect: Dialect) -> bool {
    let name = name.to_ascii_lowercase();
    is_in("bare", &name) || (dialect == Dialect::Postgres && is_in("bare postgres", &name))
}

/// Whether a type's name is one of a database's own.
pub(super) fn is_type(name: &ObjectName) -> bool {
    match lower(name).as_deref() {
        Some([one]) => is_in("types", one),
        Some([first, one]) => first == "pg_catalog" && is_in("types", one),
        _ => false,
    }
}

/// Whether a word before a string is a character set of MySQL.
pub(super) fn is_character_set(prefix: &str) -> bool {
    prefix
        .strip_prefix('_')
        .is_some_and(|name| is_in("character sets", &name.to_ascii_lowercase()))
}

/// Whether an argument is a word such as `DAY`, and no column.
pub(super) fn is_date_part(function: &str, argument: &Expr, dialect: Dialect) -> bool {
    let keywords = matches!(dialect, Dialect::MySql | Dialect::BigQuery | Dialect::Snowflake);
    match argument {
        Expr::Identifier(ident) if keywords && ident.quote_style.is_none() => {
            is_in("date part functions", function) && is_in("date parts", &ident.value.to_ascii_lowercase())
        }
        _ => false,
    }
}

/// Whether a PRAGMA only tells something.
pub(super) fn is_reading_pragma(name: &ObjectName, has_argument: bool) -> bool {
    let name = last_name(name);
    is_in("pragmas with argument", &name) || (!has_argument && is_in("pragmas", &name))
}

/// Whether a name is one of SQLite's tables that read something else than tables.
pub(super) fn is_virtual_table(name: &ObjectName, setting: &Setting<'_>) -> bool {
    setting.dialect == Dialect::Sqlite && is_in("virtual tables", &last_name(name))
}
