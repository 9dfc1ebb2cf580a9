//! Names as they are shown and compared.

use sqlparser::ast::{Ident, ObjectName};

use super::dialect::{Dialect, Named};

/// Tables as a text names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName {
    /// The parts as they are compared, the table last.
    pub(super) path: Vec<String>,
}

impl TableName {
    /// The name that columns are shown with.
    pub(super) fn table(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The resources that this name can stand for, `table://schema.table`.
    pub(super) fn resources(&self, dialect: Dialect, schema: Option<&str>) -> Vec<String> {
        let default = schema.or(dialect.default_schema());
        let table = self.table();
        let mut uris = Vec::with_capacity(2);
        match self.path.as_slice() {
            [_] => {
                if dialect == Dialect::Postgres && table.starts_with("pg_") {
                    uris.push(format!("table://pg_catalog.{table}"));
                }
                match default {
                    Some(schema) => uris.push(format!("table://{schema}.{table}")),
                    None => uris.push(format!("table://{table}")),
                }
            }
            [.., inner, _] => {
                let inner = if inner.is_empty() {
                    default.unwrap_or("")
                } else {
                    inner
                };
                uris.push(format!("table://{inner}.{table}"));
                if self.path.len() > 2 {
                    uris.push(format!("table://{}", self.path.join(".")));
                }
                if default.is_none() {
                    uris.push(format!("table://{table}"));
                }
            }
            [] => {}
        }
        uris
    }
}

/// The parts of a name that are identifiers; none when one is computed.
pub(super) fn idents(name: &ObjectName) -> Option<Vec<&Ident>> {
    name.0.iter().map(|part| part.as_ident()).collect()
}

/// A table's name, or the reason why it cannot be told.
pub(super) fn table_name(name: &ObjectName, dialect: Dialect) -> Result<TableName, String> {
    let parts = idents(name).ok_or("a table's name is computed")?;
    let last = parts.len().saturating_sub(1);
    let mut path = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        if part.value.is_empty() && dialect == Dialect::Snowflake && index == 1 && index < last {
            path.push(String::new());
            continue;
        }
        if reaches_outside(part, dialect) {
            return Err("a table is a file, a stage or several at once".to_owned());
        }
        let folded = dialect
            .folded(&part.value, part.quote_style, Named::Table)
            .ok_or("a table's name is too long, or letters of it are compared in ways that cannot be told")?;
        path.push(folded);
    }
    if path.is_empty() || path.len() > 5 {
        return Err("a table's name has too many parts".to_owned());
    }
    Ok(TableName { path })
}

fn reaches_outside(part: &Ident, dialect: Dialect) -> bool {
    part.value.starts_with(['@', '$', '%', '~'])
        || (dialect == Dialect::BigQuery && part.value.contains('*'))
        || (part.quote_style == Some('\'') && dialect != Dialect::Sqlite)
}
