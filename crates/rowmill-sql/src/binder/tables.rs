//! Finds tables by their names.

use sqlparser::ast::{ObjectName, Spanned as _, TableAlias};

use super::QueryBinder;
use super::expressions::single_name;
use super::outputs::OutputColumn;
use super::scope::{NameScope, ScopeColumn, ScopeTable};
use crate::advice;
use crate::expression::refusal::{BindResult, QueryRefusal};
use crate::table::NamedTable;

/// A table that `WITH` defines.
#[derive(Debug, Clone)]
pub(super) struct CommonTable {
    pub(super) name: String,
    /// Its name in the SQLite query.
    pub(super) sql_name: String,
    pub(super) columns: Vec<OutputColumn>,
}

impl QueryBinder<'_> {
    /// Finds a table by its name, and returns the text for `FROM`.
    pub(super) fn bind_table_name(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
    ) -> BindResult<(ScopeTable, String)> {
        let place = name.span();
        let unknown = || {
            let written = name.to_string();
            QueryRefusal::new(format!("no such table: {written}"), place).hint(advice::for_table(&written))
        };
        let written = single_name(&name.0).ok_or_else(unknown)?;
        let known = |table: &&CommonTable| table.name.eq_ignore_ascii_case(&written.value);
        if let Some(table) = self.common.iter().rev().find(known).cloned() {
            let sql_alias = self.alias();
            let columns = query_columns(&table.columns, &sql_alias);
            let from = format!("{} AS {sql_alias}", table.sql_name);
            let relation =
                ScopeTable { alias: sql_alias, name: Some(table.name), columns, has_row_numbers: false };
            return Ok((renamed(relation, alias)?, from));
        }
        let tables = self.tables;
        let table = tables
            .iter()
            .find(|table| table.name.eq_ignore_ascii_case(&written.value))
            .ok_or_else(unknown)?;
        let (relation, from) = self.table_relation(table);
        Ok((renamed(relation, alias)?, from))
    }

    fn table_relation(&mut self, named: &NamedTable) -> (ScopeTable, String) {
        let alias = self.alias();
        let columns = named.table.columns().iter().enumerate().map(|(at, column)| ScopeColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
            sql: format!("{alias}.f{at}"),
            raw: column.has_raw.then(|| format!("{alias}.r{at}")),
            note: column.note.clone(),
            is_hidden: false,
        });
        let columns = columns.collect();
        self.emitted.scans.push((alias.clone(), named.name));
        let from = format!("{} AS {alias}", named.name);
        (ScopeTable { alias, name: Some(named.name.to_owned()), columns, has_row_numbers: true }, from)
    }

    /// The scope of a condition over the rows of a table, which the condition calls `input`.
    pub(super) fn rows_scope(&mut self, rows: &NamedTable) -> (NameScope<'static>, String) {
        let (relation, from) = self.table_relation(rows);
        let relation = ScopeTable { name: Some("input".to_owned()), ..relation };
        let scope = NameScope::new(vec![relation], None).in_clause(super::scope::QueryClause::Where);
        (scope, from)
    }
}

/// The columns of a query that is read as a table.
pub(super) fn query_columns(columns: &[OutputColumn], alias: &str) -> Vec<ScopeColumn> {
    let columns = columns.iter().enumerate().map(|(at, column)| ScopeColumn {
        name: column.name.clone(),
        kind: column.kind.clone(),
        sql: format!("{alias}.c{at}"),
        raw: column.has_raw.then(|| format!("{alias}.q{at}")),
        note: None,
        is_hidden: false,
    });
    columns.collect()
}

/// A table with the names that `AS t(a, b)` gives to it and its columns.
pub(super) fn renamed(mut relation: ScopeTable, alias: Option<&TableAlias>) -> BindResult<ScopeTable> {
    let Some(alias) = alias else { return Ok(relation) };
    relation.name = Some(alias.name.value.clone());
    if alias.columns.len() > relation.columns.len() {
        let message = format!(
            "`{}` has {} columns, not {}",
            alias.name.value,
            relation.columns.len(),
            alias.columns.len()
        );
        return Err(QueryRefusal::new(message, alias.name.span));
    }
    for (column, name) in relation.columns.iter_mut().zip(&alias.columns) {
        column.name.clone_from(&name.name.value);
    }
    Ok(relation)
}
