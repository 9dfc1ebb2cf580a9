//! Which tables a column can belong to, at one point of a text.

use super::dialect::Dialect;
use super::names::TableName;

/// A table as an expression sees it.
#[derive(Debug, Clone)]
pub(super) struct Visible {
    /// The name that it was given; it hides the table's own.
    pub(super) alias: Option<String>,
    /// The table; none for one that a query or function makes, whose columns are read where they are made.
    pub(super) table: Option<TableName>,
}

impl Visible {
    /// What the table is called when nothing stands before its name.
    pub(super) fn called(&self) -> Option<&str> {
        match (&self.alias, &self.table) {
            (Some(alias), _) => Some(alias),
            (None, Some(table)) => Some(table.table()),
            (None, None) => None,
        }
    }

    /// Whether the parts before a column's name mean this table.
    pub(super) fn is_meant(&self, qualifier: &[String], dialect: Dialect) -> bool {
        let same = |one: &str, other: &str| match dialect {
            Dialect::BigQuery => one.eq_ignore_ascii_case(other),
            _ => one == other,
        };
        match qualifier {
            [one] => self.called().is_some_and(|name| same(name, one)),
            [] => false,
            several => match (&self.alias, &self.table) {
                // As far as both go: `s.t` and `d.s.t` can be the same table.
                (None, Some(table)) => table
                    .path
                    .iter()
                    .rev()
                    .zip(several.iter().rev())
                    .all(|(one, other)| one.is_empty() || same(one, other)),
                _ => false,
            },
        }
    }
}

/// What a level of the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A statement that names tables itself.
    Statement,
    /// A query; its tables are those of its selects, for ORDER BY and the like.
    Query,
    /// A select with its FROM.
    Select,
}

/// What a query does not see of the levels around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Hidden {
    #[default]
    Nothing,
    /// No table at all: the source of an INSERT.
    Everything,
    /// The select or statement that it stands in the FROM of.
    ItsFrom,
    /// The tables collected by the query that it is an arm of.
    ItsQuery,
}

/// One level.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) level: Level,
    pub(super) hidden: Hidden,
    pub(super) tables: Vec<Visible>,
    /// Common table expressions that can be named from here on.
    pub(super) named_queries: Vec<String>,
}

impl Scope {
    pub(super) fn new(level: Level, hidden: Hidden, tables: Vec<Visible>) -> Self {
        Self {
            level,
            hidden,
            tables,
            named_queries: Vec::new(),
        }
    }
}

/// The levels around the point that is being read, outermost first.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    stack: Vec<Scope>,
}

impl Scopes {
    pub(super) fn push(&mut self, scope: Scope) {
        self.stack.push(scope);
    }

    pub(super) fn pop(&mut self) -> Option<Scope> {
        self.stack.pop()
    }

    pub(super) fn innermost(&mut self) -> Option<&mut Scope> {
        self.stack.last_mut()
    }

    /// Whether a name without parts before it means a common table expression.
    pub(super) fn is_named_query(&self, name: &str) -> bool {
        self.stack
            .iter()
            .any(|scope| scope.named_queries.iter().any(|query| query == name))
    }

    /// The tables that can be seen, level by level, innermost first.
    pub(super) fn levels(&self) -> Vec<&[Visible]> {
        let mut levels = Vec::with_capacity(self.stack.len());
        let (mut skip_query, mut skip_from) = (false, false);
        for scope in self.stack.iter().rev() {
            match scope.level {
                Level::Select | Level::Statement => {
                    if !std::mem::take(&mut skip_from) {
                        levels.push(scope.tables.as_slice());
                    }
                    skip_query = scope.level == Level::Select;
                }
                Level::Query => {
                    if !std::mem::take(&mut skip_query) {
                        levels.push(scope.tables.as_slice());
                    }
                    match scope.hidden {
                        Hidden::Nothing => {}
                        Hidden::Everything => break,
                        Hidden::ItsFrom => skip_from = true,
                        Hidden::ItsQuery => skip_query = true,
                    }
                }
            }
        }
        levels
    }

    /// The tables that the parts before a column's name mean, from the innermost level that has such.
    pub(super) fn meant(&self, qualifier: &[String], dialect: Dialect) -> Vec<&Visible> {
        self.levels()
            .into_iter()
            .map(|level| {
                level
                    .iter()
                    .filter(|visible| visible.is_meant(qualifier, dialect))
                    .collect::<Vec<_>>()
            })
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }
}
