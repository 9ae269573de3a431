//! SQL over streams of rows, with DuckDB's meaning.
//!
//! A [`Table`] is anything that can be scanned row by row; a [`Query`] is one `SELECT` over such
//! tables. The text is parsed and bound: names are resolved, every expression gets a type, and
//! what cannot be given DuckDB's meaning is refused. The bound query is then run by SQLite over
//! virtual tables, with functions of ours for all that is more than a comparison. Nothing is
//! loaded whole: rows flow from the scan through SQLite to whoever runs the query. Only where
//! SQLite would scan a table again and again are the columns that the query uses copied into a
//! temporary file first.

mod advice;
mod aggregates;
mod binder;
mod compute;
mod connection;
mod elements;
mod expression;
mod failure;
mod fields;
mod names;
mod output;
mod plan;
mod query;
mod scalars;
mod table;
mod unwinding;
mod values;
mod vtab;

pub use names::nearest;
pub use output::{Record, ResultColumn};
pub use query::{Query, QueryText};
pub use table::{Column, Comparison, Condition, NamedTable, Scalar, Scan, Table, Value, Wanted};
pub use values::json_read::{FieldText, column_value, text_value};
pub use values::sql_type::SqlType;
