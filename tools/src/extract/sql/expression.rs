//! Expressions: columns, functions, and what else can reach further than it seems.

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, InTarget, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, Value,
};

use super::Dialect;
use super::dialect::Named;
use super::functions;
use super::names::idents;
use super::scope::Visible;
use super::walk::{Walk, address};
use crate::classify::Risk;

impl Walk<'_> {
    /// Anything that an expression can be; parts of it are visited by themselves.
    pub(super) fn expression(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(ident) if !self.no_columns.contains(&address(expr)) => self.column(ident),
            Expr::CompoundIdentifier(parts) => self.compound(&parts.iter().collect::<Vec<_>>()),
            Expr::Function(function) => self.function(function),
            Expr::Wildcard(_) => self.whole_of_visible(),
            Expr::QualifiedWildcard(name, _) => self.qualified_wildcard(name),
            Expr::MatchAgainst { columns, .. } => {
                for column in columns {
                    self.compound_name(column);
                }
            }
            Expr::Cast { data_type, .. } => self.data_type(data_type),
            Expr::Convert {
                data_type: Some(data_type),
                ..
            } => self.data_type(data_type),
            Expr::TypedString(typed) => self.data_type(&typed.data_type),
            Expr::BinaryOp { op, .. } => self.operator(op),
            Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. } => self.operator(compare_op),
            Expr::Prefixed { prefix, .. } if !functions::is_character_set(&prefix.value) => {
                self.column(prefix);
            }
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    self.placeholder(name);
                }
            }
            Expr::In {
                target: InTarget::Table { name, args },
                ..
            } => {
                if args.is_some() {
                    self.functions.insert(address(name));
                    self.call(name);
                }
                self.reading.all_columns();
            }
            _ => {}
        }
    }

    /// `$1` is the first column of a table in Snowflake.
    fn placeholder(&mut self, name: &str) {
        if matches!(self.setting.dialect, Dialect::Snowflake | Dialect::Generic) && name.starts_with('$') {
            self.whole_of_visible();
        }
    }

    fn operator(&mut self, operator: &BinaryOperator) {
        let doubtful = match operator {
            BinaryOperator::Custom(text) => Some(text.clone()),
            BinaryOperator::PGCustomBinaryOperator(parts) => Some(parts.join(".")),
            BinaryOperator::Assignment => Some(":=".to_owned()),
            _ => None,
        };
        if let Some(operator) = doubtful {
            let shown: String = operator.chars().take(32).collect();
            self.doubt(&format!("the operator {shown:?} is not known to only read"));
        }
    }

    /// Something that could do or read anything.
    pub(super) fn doubt(&mut self, reason: &str) {
        self.reading.risk(Risk::Execution);
        self.reading.uncertain(reason);
    }

    fn data_type(&mut self, data_type: &DataType) {
        let mut types = vec![data_type];
        while let Some(data_type) = types.pop() {
            match data_type {
                DataType::Custom(name, _) if !functions::is_type(name) => {
                    let shown: String = name.to_string().chars().take(64).collect();
                    self.doubt(&format!(
                        "the type {shown:?} is not known, and a cast to it can run a function"
                    ));
                }
                DataType::Array(
                    ArrayElemTypeDef::AngleBracket(inner)
                    | ArrayElemTypeDef::SquareBracket(inner, _)
                    | ArrayElemTypeDef::Parenthesis(inner)
                    | ArrayElemTypeDef::ParenthesisNotNull(inner)
                    | ArrayElemTypeDef::Qualified(inner, _),
                )
                | DataType::Nullable(inner)
                | DataType::LowCardinality(inner)
                | DataType::Collate(inner, _) => types.push(inner),
                DataType::Map(key, value, _) => types.extend([&**key, &**value]),
                DataType::Struct(fields, _) | DataType::Tuple(fields) => {
                    types.extend(fields.iter().map(|field| &field.field_type));
                }
                _ => {}
            }
        }
    }

    /// A column without a table before it: it can belong to any table that is seen here.
    fn column(&mut self, ident: &Ident) {
        if ident.value.starts_with('@') {
            // A variable.
            return;
        }
        if let Some(name) = self.fold(ident, Named::Column) {
            self.anywhere(&name);
        }
    }

    fn anywhere(&mut self, name: &str) {
        let alike = |visible: &Visible| {
            visible.called().is_some_and(|called| match self.setting.dialect {
                Dialect::BigQuery => called.eq_ignore_ascii_case(name),
                _ => called == name,
            })
        };
        let mut found = Vec::new();
        for visible in self.scopes.levels().into_iter().flatten() {
            if let Some(table) = &visible.table {
                // A table's name among expressions is its whole row.
                found.push((table.table().to_owned(), alike(visible)));
            }
        }
        for (table, is_row) in found {
            self.reading.column(&table, name);
            if is_row {
                self.reading.column(&table, "*");
            }
        }
    }

    /// A column, or a part of one, with names before it.
    fn compound(&mut self, parts: &[&Ident]) {
        let mut folded = Vec::with_capacity(parts.len());
        for part in parts {
            match self.fold(part, Named::Column) {
                Some(name) => folded.push(name),
                None => return,
            }
        }
        let mut found = Vec::new();
        let mut is_meant = false;
        for (index, column) in folded.iter().enumerate().skip(1) {
            let Some(qualifier) = folded.get(..index) else {
                continue;
            };
            for visible in self.scopes.meant(qualifier, self.setting.dialect) {
                is_meant = true;
                if let Some(table) = &visible.table {
                    found.push((table.table().to_owned(), column.clone()));
                }
            }
        }
        for (table, column) in found {
            self.reading.column(&table, &column);
        }
        if !is_meant {
            for name in &folded {
                self.anywhere(name);
            }
        }
    }

    /// A column that is given as a name.
    pub(super) fn compound_name(&mut self, name: &ObjectName) {
        match idents(name) {
            Some(parts) => match parts.as_slice() {
                [one] => self.column(one),
                several => self.compound(several),
            },
            None => self.reading.uncertain("a column's name is computed"),
        }
    }

    /// A column of each of these tables.
    pub(super) fn column_of(&mut self, name: &ObjectName, tables: &[Visible]) {
        let Some(ident) = name.0.last().and_then(|part| part.as_ident()) else {
            return self.reading.uncertain("a column's name is computed");
        };
        if let Some(column) = self.fold(ident, Named::Column) {
            for table in tables.iter().filter_map(|visible| visible.table.as_ref()) {
                self.reading.column(table.table(), &column);
            }
        }
    }

    fn whole_of_visible(&mut self) {
        let tables: Vec<Visible> = self.scopes.levels().into_iter().flatten().cloned().collect();
        self.whole(&tables);
    }

    fn whole_of_innermost(&mut self) {
        let tables: Vec<Visible> = self
            .scopes
            .levels()
            .first()
            .map(|level| level.to_vec())
            .unwrap_or_default();
        self.whole(&tables);
    }

    /// `t.*`; where it is no table that is seen, everything that is.
    fn qualified_wildcard(&mut self, name: &ObjectName) {
        let mut parts = Vec::new();
        for part in &name.0 {
            match part.as_ident().and_then(|ident| self.fold(ident, Named::Column)) {
                Some(part) => parts.push(part),
                None => return self.reading.uncertain("a table's name is computed"),
            }
        }
        let tables: Vec<Visible> = self
            .scopes
            .meant(&parts, self.setting.dialect)
            .into_iter()
            .cloned()
            .collect();
        if tables.is_empty() {
            self.whole_of_visible();
        } else {
            self.whole(&tables);
        }
    }

    /// What a SELECT or RETURNING gives back; its expressions are visited by themselves.
    pub(super) fn result_columns(&mut self, items: &[SelectItem]) {
        for item in items {
            match item {
                SelectItem::Wildcard(_) => self.whole_of_innermost(),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    self.qualified_wildcard(name);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _)
                | SelectItem::UnnamedExpr(_)
                | SelectItem::ExprWithAlias { .. }
                | SelectItem::ExprWithAliases { .. } => {}
            }
        }
    }

    fn function(&mut self, function: &Function) {
        if let FunctionArguments::None = function.args {
            // Written without parentheses, it can be a column.
            if let [part] = function.name.0.as_slice()
                && let Some(ident) = part.as_ident()
                && !functions::is_bare(&ident.value, self.setting.dialect)
            {
                self.column(ident);
            }
        }
        self.call(&function.name);
        let name = functions::last_name(&function.name);
        for list in [&function.args, &function.parameters] {
            let FunctionArguments::List(list) = list else {
                continue;
            };
            for arg in &list.args {
                let (FunctionArg::Named { arg, .. }
                | FunctionArg::ExprNamed { arg, .. }
                | FunctionArg::Unnamed(arg)) = arg;
                match arg {
                    FunctionArgExpr::Wildcard if name == "count" => {}
                    FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => {
                        self.whole_of_visible()
                    }
                    FunctionArgExpr::QualifiedWildcard(name) => self.qualified_wildcard(name),
                    FunctionArgExpr::Expr(expr) => {
                        if functions::is_date_part(&name, expr, self.setting.dialect) {
                            self.no_columns.insert(address(expr));
                        }
                    }
                }
            }
        }
    }

    /// A function is called.
    pub(super) fn call(&mut self, name: &ObjectName) {
        if functions::only_reads(name, self.setting) {
            return;
        }
        let shown: String = name.to_string().chars().take(64).collect();
        self.doubt(&format!(
            "the function {shown:?} is not known to only read its arguments"
        ));
    }
}
