//! Translates the text of a query to SQL for SQLite: names are resolved, types determined, and every
//! expression gets DuckDB's semantics or is rejected.

mod access;
mod called_functions;
mod calls;
mod data_types;
mod dialect;
mod expressions;
mod from;
mod group_by;
mod intervals_and_structs;
pub(crate) mod literals;
mod order;
mod outputs;
mod parse;
mod parse_refusals;
mod queries;
mod scope;
mod select;
mod select_text;
mod set_operations;
mod subqueries;
mod tables;
mod windows;

use crate::expression::emit::EmittedSql;
use crate::table::NamedTable;

pub(crate) use outputs::{BoundQuery, OutputColumn};
pub(crate) use parse::{bind_condition, bind_sql};

/// Binds one query.
pub(crate) struct QueryBinder<'t> {
    tables: &'t [NamedTable],
    emitted: EmittedSql,
    /// How many aliases were generated.
    aliases: usize,
    /// The tables that `WITH` defines, the innermost last.
    common: Vec<tables::CommonTable>,
}

impl<'t> QueryBinder<'t> {
    fn new(tables: &'t [NamedTable]) -> Self {
        Self { tables, emitted: EmittedSql::default(), aliases: 0, common: Vec::new() }
    }

    /// A unique table alias.
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }
}
