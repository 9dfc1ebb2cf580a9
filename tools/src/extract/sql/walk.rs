//! The walk over everything that was parsed.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, OrderByExpr, OrderByKind, OrderBySort, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, Visitor,
};

use super::Setting;
use super::dialect::Named;
use super::names::{TableName, table_name};
use super::reading::Reading;
use super::scope::{Hidden, Level, Scope, Scopes, Visible};
use crate::classify::Risk;
use crate::extract::Extraction;

/// The address of a node: nodes do not move while they are walked.
pub(super) type Address = usize;

pub(super) fn address<T>(node: &T) -> Address {
    std::ptr::from_ref(node).addr()
}

/// A common table expression whose query is still to be read.
#[derive(Debug)]
struct NamedQuery {
    name: String,
    recursive: bool,
}

/// The state of the walk.
#[derive(Debug)]
pub(super) struct Walk<'s> {
    pub(super) setting: &'s Setting<'s>,
    pub(super) reading: Reading,
    pub(super) scopes: Scopes,
    named_queries: HashMap<Address, NamedQuery>,
    /// What the queries at these addresses do not see.
    pub(super) hidden: HashMap<Address, Hidden>,
    /// Names of relations that are functions.
    pub(super) functions: HashSet<Address>,
    /// Identifiers that are no columns.
    pub(super) no_columns: HashSet<Address>,
    /// Statements that are explained and not run.
    pub(super) explained: HashSet<Address>,
    /// Statements around here whose every table counts whole.
    pub(super) whole_tables: usize,
}

impl<'s> Walk<'s> {
    pub(super) fn new(setting: &'s Setting<'s>) -> Self {
        Self {
            setting,
            reading: Reading::default(),
            scopes: Scopes::default(),
            named_queries: HashMap::new(),
            hidden: HashMap::new(),
            functions: HashSet::new(),
            no_columns: HashSet::new(),
            explained: HashSet::new(),
            whole_tables: 0,
        }
    }

    pub(super) fn finish(self) -> Extraction {
        self.reading.finish()
    }

    /// The name as it is compared; an odd one leaves the sets unknown.
    pub(super) fn fold(&mut self, ident: &sqlparser::ast::Ident, named: Named) -> Option<String> {
        let folded = self
            .setting
            .dialect
            .folded(&ident.value, ident.quote_style, named);
        if folded.is_none() {
            self.reading
                .uncertain("a name is too long, or letters of it are compared in ways that cannot be told");
        }
        folded
    }

    /// A table that is read or written.
    pub(super) fn add_table(&mut self, name: &ObjectName) -> Option<TableName> {
        match table_name(name, self.setting.dialect) {
            Ok(table) => {
                for uri in table.resources(self.setting.dialect, self.setting.schema) {
                    self.reading.resource(uri);
                }
                self.reading.table(table.table());
                if self.whole_tables > 0 {
                    self.reading.column(table.table(), "*");
                }
                Some(table)
            }
            Err(reason) => {
                self.reading.risk(Risk::Execution);
                self.reading.uncertain(&reason);
                None
            }
        }
    }

    /// Whether a relation's name means a common table expression.
    pub(super) fn is_named_query(&self, name: &ObjectName) -> bool {
        let [part] = name.0.as_slice() else {
            return false;
        };
        part.as_ident()
            .and_then(|ident| {
                self.setting
                    .dialect
                    .folded(&ident.value, ident.quote_style, Named::Table)
            })
            .is_some_and(|name| self.scopes.is_named_query(&self.comparable(name)))
    }

    /// A table's name as aliases are compared.
    pub(super) fn comparable(&self, name: String) -> String {
        match self.setting.dialect {
            super::Dialect::BigQuery => name.to_lowercase(),
            _ => name,
        }
    }

    /// Every column of these.
    pub(super) fn whole(&mut self, tables: &[Visible]) {
        for table in tables.iter().filter_map(|visible| visible.table.as_ref()) {
            self.reading.column(table.table(), "*");
        }
    }

    fn enter_query(&mut self, query: &Query) {
        let mut scope = Scope::new(
            Level::Query,
            self.hidden.remove(&address(query)).unwrap_or_default(),
            Vec::new(),
        );
        if let Some(named) = self.named_queries.get(&address(query))
            && named.recursive
        {
            scope.named_queries.push(named.name.clone());
        }
        self.scopes.push(scope);
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                if let Some(name) = self.fold(&cte.alias.name, Named::Table) {
                    let name = self.comparable(name);
                    let recursive = with.recursive;
                    self.named_queries
                        .insert(address(&*cte.query), NamedQuery { name, recursive });
                }
            }
        }
        self.query_body(&query.body);
        self.order_by_aliases(query);
        if !query.locks.is_empty() {
            self.reading.risk(Risk::ExternalWrite);
            self.reading.reason("rows are locked".to_owned());
        }
        if query.settings.is_some() || query.format_clause.is_some() || query.for_clause.is_some() {
            self.reading.risk(Risk::Execution);
        }
        if !query.pipe_operators.is_empty() {
            self.reading.all_columns();
        }
    }

    /// The arms of a query that are queries themselves, and `TABLE t`.
    fn query_body(&mut self, body: &SetExpr) {
        let mut bodies = vec![body];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => bodies.extend([&**left, &**right]),
                SetExpr::Query(query) => {
                    self.hidden.insert(address(&**query), Hidden::ItsQuery);
                }
                SetExpr::Table(table) => {
                    let parts: Vec<_> = table
                        .schema_name
                        .iter()
                        .chain(&table.table_name)
                        .cloned()
                        .collect();
                    let name = ObjectName::from(parts);
                    self.reading.risk(Risk::Read);
                    if !self.is_named_query(&name)
                        && let Some(table) = self.add_table(&name)
                    {
                        self.reading.column(table.table(), "*");
                    }
                }
                SetExpr::Select(_)
                | SetExpr::Values(_)
                | SetExpr::Insert(_)
                | SetExpr::Update(_)
                | SetExpr::Delete(_)
                | SetExpr::Merge(_) => {}
            }
        }
    }

    /// In ORDER BY the name of a column of the result stands for it, not for one of a table.
    fn order_by_aliases(&mut self, query: &Query) {
        let (Some(order), SetExpr::Select(select)) = (&query.order_by, &*query.body) else {
            return;
        };
        let OrderByKind::Expressions(expressions) = &order.kind else {
            return;
        };
        let folded = |ident: &sqlparser::ast::Ident| {
            self.setting
                .dialect
                .folded(&ident.value, ident.quote_style, Named::Column)
        };
        let aliases: HashSet<String> = select
            .projection
            .iter()
            .filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => folded(alias),
                _ => None,
            })
            .collect();
        for expression in expressions {
            if let Expr::Identifier(ident) = &expression.expr
                && folded(ident).is_some_and(|name| aliases.contains(&name))
            {
                self.no_columns.insert(address(&expression.expr));
            }
        }
    }

    fn leave_query(&mut self, query: &Query) {
        let left = self.scopes.pop();
        let named = self.named_queries.remove(&address(query));
        let Some(around) = self.scopes.innermost() else {
            return;
        };
        match named {
            Some(named) => around.named_queries.push(named.name),
            None => collect(around, left),
        }
    }

    fn leave_select(&mut self) {
        let left = self.scopes.pop();
        if let Some(around) = self.scopes.innermost() {
            collect(around, left);
        }
    }
}

/// The tables of a select or arm are seen by the query around it, in ORDER BY and the like.
fn collect(around: &mut Scope, left: Option<Scope>) {
    if around.level == Level::Query
        && let Some(left) = left
    {
        around.tables.extend(left.tables);
    }
}

impl Visitor for Walk<'_> {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.enter_statement(statement);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.leave_statement(statement);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.leave_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.leave_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.check_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if !self.functions.contains(&address(name)) && !self.is_named_query(name) {
            self.add_table(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_order_by_expr(&mut self, order: &OrderByExpr) -> ControlFlow<()> {
        if matches!(order.options.sort, Some(OrderBySort::Using(_))) {
            self.doubt("ORDER BY … USING calls an operator");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.expression(expr);
        ControlFlow::Continue(())
    }
}
