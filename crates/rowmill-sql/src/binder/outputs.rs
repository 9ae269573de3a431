//! What a bound query gives.

use sqlparser::ast::Expr;

use crate::expression::typed::Typed;
use crate::values::sql_type::SqlType;

/// A query for SQLite. Its columns are `c0`, `c1` and so on; where the input's JSON is kept
/// beside a value, it is in `q0`, `q1` and so on.
#[derive(Debug, Clone)]
pub(crate) struct BoundQuery {
    pub(crate) sql: String,
    pub(crate) columns: Vec<OutputColumn>,
    /// Whether it gives exactly one row, whatever the tables have.
    pub(crate) is_single_row: bool,
}

/// A column that a query gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputColumn {
    pub(crate) name: String,
    pub(crate) kind: SqlType,
    /// Whether the input's JSON is there: beside the value in a table, in its place in a result.
    pub(crate) has_raw: bool,
}

/// What a query is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its rows are the result: JSON of the input takes the place of values.
    Result,
    /// Another query reads it.
    Table,
    /// Another query reads it, and these are the types of its columns.
    TypedTable(Vec<SqlType>),
}

/// An entry of a select list.
#[derive(Debug, Clone)]
pub(crate) struct OutputItem {
    pub(crate) name: String,
    pub(crate) typed: Typed,
    /// What is written for it, where it is no part of a `*`.
    pub(crate) written: Option<Expr>,
}

impl OutputItem {
    pub(crate) fn column(&self) -> OutputColumn {
        let (name, kind) = (self.name.clone(), self.typed.kind.clone());
        OutputColumn { name, kind, has_raw: self.typed.raw().is_some() }
    }
}
