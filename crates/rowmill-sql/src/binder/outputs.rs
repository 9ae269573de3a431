//! The results of a bound query.

use sqlparser::ast::Expr;

use crate::expression::typed::TypedExpression;
use crate::values::sql_type::SqlType;

/// A query for SQLite. Its columns are `c0`, `c1` and so on; if the input's JSON is kept beside a value, it
/// is in `q0`, `q1` and so on.
#[derive(Debug, Clone)]
pub(crate) struct BoundQuery {
    pub(crate) sql: String,
    pub(crate) columns: Vec<OutputColumn>,
    /// Whether it returns exactly one row, whatever the tables contain.
    pub(crate) is_single_row: bool,
}

/// A result column of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputColumn {
    pub(crate) name: String,
    pub(crate) kind: SqlType,
    /// Whether the input's JSON is available: beside the value in a table, instead of it in a result.
    pub(crate) has_raw: bool,
}

/// The purpose of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueryPurpose {
    /// Its rows are the result: the input's JSON replaces values.
    Result,
    /// Another query reads it.
    Table,
    /// Another query reads it, and requires these column types.
    TypedTable(Vec<SqlType>),
}

/// An entry of a select list.
#[derive(Debug, Clone)]
pub(crate) struct OutputItem {
    pub(crate) name: String,
    pub(crate) typed: TypedExpression,
    /// Its expression in the query, unless it comes from a `*`.
    pub(crate) written: Option<Expr>,
}

impl OutputItem {
    pub(crate) fn column(&self) -> OutputColumn {
        let (name, kind) = (self.name.clone(), self.typed.kind.clone());
        OutputColumn { name, kind, has_raw: self.typed.raw().is_some() }
    }
}
