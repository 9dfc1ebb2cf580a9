//! Statements: what they do, and the tables and columns that they name outside of queries.

use sqlparser::ast::{
    Assignment, AssignmentTarget, CopySource, Delete, FromTable, Insert, Merge, MergeAction, MergeInsertKind,
    MergeUpdateKind, ObjectName, OnConflictAction, OnInsert, OutputClause, SelectItem, Statement,
    TableObject, Update, UpdateTableFromKind,
};

use super::dialect::Named;
use super::effect;
use super::factor::Target;
use super::scope::{Hidden, Level, Scope, Visible};
use super::walk::{Walk, address};
use crate::classify::Risk;

impl Walk<'_> {
    pub(super) fn enter_statement(&mut self, statement: &Statement) {
        self.effect(statement);
        if counts_whole(statement) {
            self.whole_tables += 1;
        }
        let tables = match statement {
            Statement::Insert(insert) => self.insert_target(insert),
            Statement::Update(update) => self.update_tables(update),
            Statement::Delete(delete) => self.delete_tables(delete),
            Statement::Merge(merge) => self.merge_tables(merge),
            _ => Vec::new(),
        };
        self.scopes
            .push(Scope::new(Level::Statement, Hidden::Nothing, tables));
        match statement {
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => {
                self.returning(update.returning.as_deref(), update.output.as_ref());
            }
            Statement::Delete(delete) => self.returning(delete.returning.as_deref(), delete.output.as_ref()),
            Statement::Merge(merge) => self.returning(None, merge.output.as_ref()),
            Statement::Drop { names, .. } => self.named(names),
            Statement::Copy {
                source: CopySource::Table { table_name, .. },
                ..
            } => self.named(std::slice::from_ref(table_name)),
            _ => {}
        }
    }

    pub(super) fn leave_statement(&mut self, statement: &Statement) {
        self.scopes.pop();
        if counts_whole(statement) {
            self.whole_tables = self.whole_tables.saturating_sub(1);
        }
    }

    fn effect(&mut self, statement: &Statement) {
        if let Statement::Explain {
            analyze,
            options,
            statement: inner,
            ..
        } = statement
            && !effect::runs(*analyze, options.as_deref())
        {
            self.explained.insert(address(&**inner));
        }
        let effect = effect::of(statement, self.setting.dialect);
        if !self.explained.contains(&address(statement)) {
            self.reading.risks(effect.risks);
        }
        if !effect.names_all {
            self.reading
                .uncertain("a statement can reach more than the tables that it names");
        }
    }

    fn named(&mut self, names: &[ObjectName]) {
        for name in names {
            self.add_table(name);
        }
    }

    fn insert_target(&mut self, insert: &Insert) -> Vec<Visible> {
        let TableObject::TableName(name) = &insert.table else {
            self.doubt("a row is inserted into what a function or query gives");
            return Vec::new();
        };
        if let Some(source) = &insert.source {
            self.hidden.insert(address(&**source), Hidden::Everything);
        }
        let alias = insert
            .table_alias
            .as_ref()
            .and_then(|alias| self.fold(&alias.alias, Named::Table))
            .map(|name| self.comparable(name));
        let table = self.add_table(name);
        // What the new row is called in ON CONFLICT and the like.
        let row = insert
            .insert_alias
            .as_ref()
            .and_then(|alias| alias.row_alias.0.last()?.as_ident())
            .and_then(|alias| self.fold(alias, Named::Table))
            .map_or_else(|| "excluded".to_owned(), |name| self.comparable(name));
        let new = Visible {
            alias: Some(row),
            table: table.clone(),
        };
        vec![Visible { alias, table }, new]
    }

    fn insert(&mut self, insert: &Insert) {
        let target: Vec<Visible> = self.target();
        if insert.columns.is_empty() && insert.assignments.is_empty() && insert.after_columns.is_empty() {
            self.whole(&target);
        }
        for column in &insert.columns {
            self.column_of(column, &target);
        }
        for column in &insert.after_columns {
            self.column_of(&ObjectName::from(vec![column.clone()]), &target);
        }
        self.assigned(&insert.assignments, &target);
        match &insert.on {
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => self.assigned(assignments, &target),
            Some(OnInsert::OnConflict(conflict)) => {
                match &conflict.conflict_target {
                    Some(sqlparser::ast::ConflictTarget::Columns { columns, .. }) => {
                        for column in columns {
                            self.column_of(&ObjectName::from(vec![column.clone()]), &target);
                        }
                    }
                    Some(sqlparser::ast::ConflictTarget::OnConstraint(_)) => self.whole(&target),
                    None => {}
                }
                if let OnConflictAction::DoUpdate(update) = &conflict.action {
                    self.assigned(&update.assignments, &target);
                }
            }
            Some(_) => self.whole(&target),
            None => {}
        }
        let several = insert.multi_table_insert_type.is_some()
            || !insert.multi_table_into_clauses.is_empty()
            || !insert.multi_table_when_clauses.is_empty()
            || insert.multi_table_else_clause.is_some();
        if several || insert.settings.is_some() || insert.format_clause.is_some() {
            self.doubt("an INSERT into several tables, or with settings, is not read");
        }
        self.returning(insert.returning.as_deref(), insert.output.as_ref());
    }

    /// The tables of the statement that was just entered.
    fn target(&mut self) -> Vec<Visible> {
        self.scopes
            .innermost()
            .map(|scope| scope.tables.clone())
            .unwrap_or_default()
    }

    fn update_tables(&mut self, update: &Update) -> Vec<Visible> {
        let mut tables = self.tables_of(std::slice::from_ref(&update.table), Target::Written);
        self.assigned(&update.assignments, &tables);
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from
        {
            tables.extend(self.tables_of(from, Target::Source));
        }
        if update.settings.is_some() {
            self.reading.risk(Risk::Execution);
        }
        tables
    }

    fn delete_tables(&mut self, delete: &Delete) -> Vec<Visible> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let mut tables = self.tables_of(from, Target::Written);
        if let Some(using) = &delete.using {
            tables.extend(self.tables_of(using, Target::Source));
        }
        // A row goes with all of its columns; where targets are listed they are tables or aliases of FROM.
        self.whole(&tables);
        for name in &delete.tables {
            let known = super::names::idents(name).is_some_and(|parts| {
                let qualifier: Vec<String> = parts
                    .iter()
                    .filter_map(|part| self.fold(part, Named::Column))
                    .collect();
                tables
                    .iter()
                    .any(|visible| visible.is_meant(&qualifier, self.setting.dialect))
            });
            if !known && let Some(table) = self.add_table(name) {
                self.reading.column(table.table(), "*");
            }
        }
        if delete.settings.is_some() {
            self.reading.risk(Risk::Execution);
        }
        tables
    }

    fn merge_tables(&mut self, merge: &Merge) -> Vec<Visible> {
        let mut target = Vec::new();
        self.factor(&merge.table, Target::Written, &mut target);
        for clause in &merge.clauses {
            match &clause.action {
                MergeAction::Insert(insert) => {
                    let by_name =
                        !insert.columns.is_empty() && matches!(insert.kind, MergeInsertKind::Values(_));
                    if !by_name {
                        self.reading.all_columns();
                    }
                    for column in &insert.columns {
                        self.column_of(column, &target);
                    }
                }
                MergeAction::Update(update) => match &update.kind {
                    MergeUpdateKind::Set(assignments) => self.assigned(assignments, &target),
                    MergeUpdateKind::Wildcard => self.reading.all_columns(),
                },
                MergeAction::Delete { .. } => self.whole(&target),
                MergeAction::DoNothing { .. } => {}
            }
        }
        let mut tables = target;
        self.factor(&merge.source, Target::Source, &mut tables);
        tables
    }

    /// Columns that are set.
    fn assigned(&mut self, assignments: &[Assignment], target: &[Visible]) {
        for assignment in assignments {
            let names = match &assignment.target {
                AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                AssignmentTarget::Tuple(names) => names.as_slice(),
            };
            for name in names {
                self.assigned_column(name, target);
            }
        }
    }

    fn assigned_column(&mut self, name: &ObjectName, target: &[Visible]) {
        let mut parts = Vec::with_capacity(name.0.len());
        for part in &name.0 {
            let Some(ident) = part.as_ident() else {
                return self.reading.uncertain("a column's name is computed");
            };
            let Some(column) = self.fold(ident, Named::Column) else {
                return;
            };
            parts.push(column);
        }
        // `t.c`, or a field of `c`: without a table of that name, every part counts for every table.
        let meant: Vec<Visible> = match parts.as_slice() {
            [table, _, ..] => target
                .iter()
                .filter(|visible| visible.is_meant(std::slice::from_ref(table), self.setting.dialect))
                .cloned()
                .collect(),
            _ => Vec::new(),
        };
        let (tables, columns) = if meant.is_empty() {
            (target, parts.as_slice())
        } else {
            (meant.as_slice(), parts.get(1..).unwrap_or_default())
        };
        for table in tables.iter().filter_map(|visible| visible.table.as_ref()) {
            for column in columns {
                self.reading.column(table.table(), column);
            }
        }
    }

    fn returning(&mut self, returning: Option<&[SelectItem]>, output: Option<&OutputClause>) {
        let from_output = output.map(|output| match output {
            OutputClause::Output {
                select_items,
                into_table,
                ..
            } => (select_items.as_slice(), into_table.is_some()),
            OutputClause::Returning { select_items, .. } => (select_items.as_slice(), false),
        });
        if from_output.is_some_and(|(_, into)| into) {
            self.doubt("OUTPUT … INTO writes its result somewhere");
        }
        for items in [returning, from_output.map(|(items, _)| items)]
            .into_iter()
            .flatten()
        {
            self.reading.risk(Risk::Read);
            self.result_columns(items);
        }
    }
}

/// Whether every table that such a statement names counts with all of its columns.
fn counts_whole(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Explain { .. }
            | Statement::CreateView(_)
            | Statement::Copy {
                source: CopySource::Query(_),
                ..
            }
    )
}
