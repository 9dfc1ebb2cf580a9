//! What the kinds of statements do.

use sqlparser::ast::{
    CreateTable, Insert, Merge, MergeAction, ObjectType, Reset, Set, Statement, UtilityOption,
};

use super::Dialect;
use super::functions;
use crate::classify::{Risk, RiskSet};

/// What a statement does by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    /// What it does.
    pub(super) risks: RiskSet,
    /// Whether the tables that it names are all that it reaches.
    pub(super) names_all: bool,
}

impl Effect {
    fn naming_all(risk: Risk) -> Self {
        Self {
            risks: RiskSet::of(risk),
            names_all: true,
        }
    }

    fn beyond_names(risk: Risk) -> Self {
        Self {
            risks: RiskSet::of(risk),
            names_all: false,
        }
    }

    fn with(mut self, risk: Risk, when: bool) -> Self {
        if when {
            self.risks.insert(risk);
        }
        self
    }
}

/// What a statement does. Every kind that is not known to do less is EXECUTION and reaches anything.
pub(super) fn of(statement: &Statement, dialect: Dialect) -> Effect {
    match statement {
        // What a query does is seen in its parts.
        Statement::Query(_) => Effect {
            risks: RiskSet::EMPTY,
            names_all: true,
        },
        Statement::Insert(insert) => {
            Effect::naming_all(Risk::ExternalWrite).with(Risk::Delete, replaces(insert))
        }
        Statement::Update(update) => Effect::naming_all(Risk::ExternalWrite).with(
            Risk::Delete,
            matches!(update.or, Some(sqlparser::ast::SqliteOnConflict::Replace)),
        ),
        Statement::Merge(merge) => Effect::naming_all(Risk::ExternalWrite).with(Risk::Delete, deletes(merge)),
        Statement::Delete(_) | Statement::Truncate(_) => Effect::naming_all(Risk::Delete),
        Statement::Drop { object_type, .. } => match object_type {
            ObjectType::Table
            | ObjectType::View
            | ObjectType::MaterializedView
            | ObjectType::ForeignTable => Effect::naming_all(Risk::Delete),
            ObjectType::Role | ObjectType::User | ObjectType::Group => {
                Effect::beyond_names(Risk::Delete).with(Risk::PermissionChange, true)
            }
            _ => Effect::beyond_names(Risk::Delete),
        },
        Statement::CreateTable(table) => Effect {
            names_all: names_all(table),
            ..Effect::naming_all(Risk::ExternalWrite)
        },
        Statement::CreateView(_) | Statement::CreateIndex(_) => Effect::naming_all(Risk::ExternalWrite),
        Statement::CreateSchema { .. }
        | Statement::CreateDatabase { .. }
        | Statement::CreateSequence { .. }
        | Statement::CreateType { .. }
        | Statement::CreateDomain(_)
        | Statement::AlterTable(_)
        | Statement::AlterView(_)
        | Statement::AlterIndex { .. }
        | Statement::AlterSchema(_)
        | Statement::AlterType(_)
        | Statement::RenameTable(_)
        | Statement::Comment { .. }
        | Statement::RefreshMaterializedView(_) => Effect::beyond_names(Risk::ExternalWrite).with(
            Risk::Delete,
            matches!(statement, Statement::AlterTable(_) | Statement::RenameTable(_)),
        ),
        Statement::Grant(_)
        | Statement::GrantRole(_)
        | Statement::Deny(_)
        | Statement::Revoke(_)
        | Statement::RevokeRole(_)
        | Statement::CreateRole(_)
        | Statement::AlterRole { .. }
        | Statement::CreateUser(_)
        | Statement::AlterUser(_)
        | Statement::CreatePolicy(_)
        | Statement::AlterPolicy(_)
        | Statement::DropPolicy(_)
        | Statement::AlterDefaultPrivileges(_)
        | Statement::CreateUserMapping(_)
        | Statement::Set(Set::SetRole { .. } | Set::SetSessionAuthorization(_))
        | Statement::Reset(sqlparser::ast::ResetStatement {
            reset: Reset::SessionAuthorization,
        }) => Effect::beyond_names(Risk::PermissionChange),
        // COPY always reaches outside, or takes data from outside.
        Statement::Copy { .. } => Effect::naming_all(Risk::Execution).with(Risk::ExternalWrite, true),
        Statement::ExplainTable { .. } => Effect::naming_all(Risk::Read),
        Statement::Explain { .. } => Effect {
            risks: RiskSet::of(Risk::Read),
            names_all: true,
        },
        Statement::ShowVariable { .. } => Effect::naming_all(Risk::Read),
        Statement::ShowFunctions { .. }
        | Statement::ShowStatus { .. }
        | Statement::ShowVariables { .. }
        | Statement::ShowCreate { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowCatalogs { .. }
        | Statement::ShowDatabases { .. }
        | Statement::ShowProcessList { .. }
        | Statement::ShowSchemas { .. }
        | Statement::ShowCharset(_)
        | Statement::ShowObjects(_)
        | Statement::ShowTables { .. }
        | Statement::ShowViews { .. }
        | Statement::ShowCollation { .. } => Effect::beyond_names(Risk::Read),
        Statement::Pragma { name, value, is_eq } => {
            let reads =
                dialect == Dialect::Sqlite && !is_eq && functions::is_reading_pragma(name, value.is_some());
            Effect::beyond_names(if reads { Risk::Read } else { Risk::Execution })
        }
        _ => Effect::beyond_names(Risk::Execution),
    }
}

/// Whether an INSERT removes rows that are there.
fn replaces(insert: &Insert) -> bool {
    insert.overwrite
        || insert.replace_into
        || matches!(insert.or, Some(sqlparser::ast::SqliteOnConflict::Replace))
}

fn deletes(merge: &Merge) -> bool {
    merge.clauses.iter().any(|clause| match &clause.action {
        MergeAction::Delete { .. } => true,
        MergeAction::Update(update) => update.delete_predicate.is_some(),
        MergeAction::Insert(_) | MergeAction::DoNothing { .. } => false,
    })
}

fn names_all(table: &CreateTable) -> bool {
    table.like.is_none()
        && table.clone.is_none()
        && table.inherits.is_none()
        && table.location.is_none()
        && !table.external
        && table.with_connection.is_none()
}

/// Whether an EXPLAIN runs what it explains.
pub(super) fn runs(analyze: bool, options: Option<&[UtilityOption]>) -> bool {
    analyze
        || options.is_some_and(|options| {
            options
                .iter()
                .any(|option| option.name.value.eq_ignore_ascii_case("analyze"))
        })
}
