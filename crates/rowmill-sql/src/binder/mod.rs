//! Translates the text of a query to SQL for SQLite: names are resolved, types determined, and every
//! expression gets DuckDB's semantics or is rejected.

mod access;
mod calls;
mod clauses;
mod composed;
mod core_text;
mod data_types;
mod detect;
mod expressions;
mod from;
pub(crate) mod literals;
mod order;
mod outputs;
mod parse;
mod queries;
mod scope;
mod select;
mod set_operations;
mod subqueries;
mod tables;
mod windows;

use crate::expression::emit::Emitted;
use crate::table::NamedTable;

pub(crate) use outputs::{BoundQuery, OutputColumn};
pub(crate) use parse::{bind_condition, bind_sql};

/// Binds one query.
pub(crate) struct Binder<'t> {
    tables: &'t [NamedTable],
    emitted: Emitted,
    /// How many aliases were generated.
    aliases: usize,
    /// The tables that `WITH` defines, the innermost last.
    common: Vec<tables::CommonTable>,
}

impl<'t> Binder<'t> {
    fn new(tables: &'t [NamedTable]) -> Self {
        Self { tables, emitted: Emitted::default(), aliases: 0, common: Vec::new() }
    }

    /// A unique table alias.
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }
}
