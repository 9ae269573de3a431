//! SQL over streams of rows, with DuckDB's semantics.
//!
//! A [`Table`] is anything that can be scanned row by row; a [`Query`] is one `SELECT` over such tables. The
//! text is parsed and bound: names are resolved, every expression gets a type, and anything that cannot be
//! given DuckDB's semantics is rejected. SQLite then runs the bound query over virtual tables; functions of
//! ours compute everything beyond comparisons. Nothing is loaded as a whole: rows flow from the scan through
//! SQLite to the caller. Only if SQLite would scan a table repeatedly are the columns that the query uses
//! first copied into a temporary file.

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
