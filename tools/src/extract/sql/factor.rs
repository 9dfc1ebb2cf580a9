//! FROM: the tables that a select or statement names, and how they are joined.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, Select, SelectFlavor, TableAlias,
    TableFactor, TableWithJoins,
};

use super::dialect::Named;
use super::names::table_name;
use super::scope::{Hidden, Level, Scope, Visible};
use super::walk::{Walk, address};
use crate::classify::Risk;

/// Whether a name in FROM can be that of a common table expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// It is read from.
    Source,
    /// It is written to, so it is a table.
    Written,
}

impl Walk<'_> {
    pub(super) fn enter_select(&mut self, select: &Select) {
        self.reading.risk(Risk::Read);
        let tables = self.tables_of(&select.from, Target::Source);
        if !matches!(select.flavor, SelectFlavor::Standard) {
            self.whole(&tables);
        }
        if select.into.is_some() {
            self.reading.risk(Risk::ExternalWrite);
            self.reading.risk(Risk::Execution);
            self.reading
                .uncertain("SELECT … INTO writes its result somewhere");
        }
        self.scopes
            .push(Scope::new(Level::Select, Hidden::Nothing, tables));
        self.result_columns(&select.projection);
    }

    /// The tables of a FROM, as expressions see them.
    pub(super) fn tables_of(&mut self, from: &[TableWithJoins], target: Target) -> Vec<Visible> {
        let mut tables = Vec::new();
        for item in from {
            self.joined(item, target, &mut tables);
        }
        tables
    }

    fn joined(&mut self, item: &TableWithJoins, target: Target, tables: &mut Vec<Visible>) {
        self.factor(&item.relation, target, tables);
        for join in &item.joins {
            self.factor(&join.relation, target, tables);
            self.join(join, tables);
        }
    }

    fn join(&mut self, join: &Join, tables: &[Visible]) {
        let constraint = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::Semi(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::Anti(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint)
            | JoinOperator::StraightJoin(constraint)
            | JoinOperator::AsOf { constraint, .. } => constraint,
            JoinOperator::CrossApply | JoinOperator::OuterApply => return,
            JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
                return self.reading.uncertain("an array is joined");
            }
        };
        match constraint {
            JoinConstraint::On(_) | JoinConstraint::None => {}
            JoinConstraint::Natural => self.whole(tables),
            JoinConstraint::Using(columns) | JoinConstraint::UsingAlias(columns, _) => {
                for column in columns {
                    self.column_of(column, tables);
                }
            }
        }
    }

    /// One table of a FROM.
    pub(super) fn factor(&mut self, factor: &TableFactor, target: Target, tables: &mut Vec<Visible>) {
        match factor {
            TableFactor::Table {
                name, alias, args, ..
            } => {
                let named_query = target == Target::Source && self.is_named_query(name);
                let table = if args.is_some() || named_query {
                    None
                } else {
                    if target == Target::Written {
                        self.add_table(name);
                    }
                    table_name(name, self.setting.dialect).ok()
                };
                let renamed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
                if let (Some(table), true) = (&table, renamed) {
                    self.reading.column(table.table(), "*");
                }
                self.column_in_from(name, tables);
                let shown = if table.is_none() && alias.is_none() {
                    name.0.last().and_then(|part| part.as_ident())
                } else {
                    None
                };
                let alias = match shown {
                    Some(ident) => self.fold(ident, Named::Table).map(|name| self.comparable(name)),
                    None => self.alias(alias.as_ref()),
                };
                tables.push(Visible { alias, table });
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                if !lateral && !self.setting.dialect.derived_tables_see_siblings() {
                    self.hidden.insert(address(&**subquery), Hidden::ItsFrom);
                }
                self.made(alias.as_ref(), tables);
            }
            TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::JsonTable { alias, .. }
            | TableFactor::OpenJsonTable { alias, .. }
            | TableFactor::XmlTable { alias, .. } => self.made(alias.as_ref(), tables),
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let before = tables.len();
                self.joined(table_with_joins, target, tables);
                if alias.is_some() {
                    let inside: Vec<Visible> = tables.iter().skip(before).cloned().collect();
                    self.whole(&inside);
                }
            }
            TableFactor::Pivot { table, alias, .. }
            | TableFactor::Unpivot { table, alias, .. }
            | TableFactor::MatchRecognize { table, alias, .. } => {
                let before = tables.len();
                self.factor(table, target, tables);
                let inside: Vec<Visible> = tables.iter().skip(before).cloned().collect();
                self.whole(&inside);
                self.made(alias.as_ref(), tables);
            }
            TableFactor::UnpivotExpr { .. } | TableFactor::SemanticView { .. } => {
                self.reading
                    .uncertain("a table is made in a way that is not read");
            }
        }
    }

    /// `FROM t, t.items`: a column of a table before it, where databases unfold arrays so.
    fn column_in_from(&mut self, name: &sqlparser::ast::ObjectName, tables: &[Visible]) {
        let mut parts = Vec::new();
        for part in &name.0 {
            match part.as_ident().and_then(|ident| {
                self.setting
                    .dialect
                    .folded(&ident.value, ident.quote_style, Named::Column)
            }) {
                Some(part) => parts.push(part),
                None => return,
            }
        }
        let [first, column, ..] = parts.as_slice() else {
            return;
        };
        let qualifier = [first.clone()];
        let columns: Vec<String> = tables
            .iter()
            .filter(|visible| visible.is_meant(&qualifier, self.setting.dialect))
            .filter_map(|visible| visible.table.as_ref())
            .map(|table| table.table().to_owned())
            .collect();
        for table in columns {
            self.reading.column(&table, column);
        }
    }

    fn made(&mut self, alias: Option<&TableAlias>, tables: &mut Vec<Visible>) {
        let alias = self.alias(alias);
        tables.push(Visible { alias, table: None });
    }

    fn alias(&mut self, alias: Option<&TableAlias>) -> Option<String> {
        self.fold(&alias?.name, Named::Table)
            .map(|name| self.comparable(name))
    }

    /// Functions in FROM, before their arguments are read.
    pub(super) fn check_factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table {
                name,
                args: Some(args),
                ..
            } => {
                self.functions.insert(address(name));
                self.call(name);
                self.wildcard_arguments(&args.args);
            }
            // `TABLE('t')` names a table by a text.
            TableFactor::TableFunction { expr, .. } if !matches!(expr, Expr::Function(_)) => {
                self.doubt("a table is named by a value");
            }
            TableFactor::Function { name, args, .. } => {
                self.call(name);
                self.wildcard_arguments(args);
            }
            TableFactor::Table { name, args: None, .. }
                if super::functions::is_virtual_table(name, self.setting) =>
            {
                self.reading.risk(Risk::Execution);
                self.reading
                    .uncertain("a table of SQLite's own reads files or raw pages");
            }
            _ => {}
        }
    }

    /// `f(*)` in FROM reaches everything.
    fn wildcard_arguments(&mut self, args: &[FunctionArg]) {
        let whole = args.iter().any(|arg| {
            let (FunctionArg::Named { arg, .. }
            | FunctionArg::ExprNamed { arg, .. }
            | FunctionArg::Unnamed(arg)) = arg;
            !matches!(arg, FunctionArgExpr::Expr(_))
        });
        if whole {
            self.reading.all_columns();
        }
    }
}
