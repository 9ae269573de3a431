//! SQL over streams of rows: a safe door to SQLite's virtual tables.
//!
//! A [`Table`] is anything that can be scanned row by row; a [`Query`] is one `SELECT` over
//! such tables. Nothing is loaded whole: rows flow from the scan through SQLite to whoever
//! runs the query. Only where SQLite would scan a table again and again are the columns that
//! the query uses copied into a temporary file first.

mod advice;
mod connection;
mod failure;
mod functions;
mod guard;
mod names;
mod output;
mod plan;
mod query;
mod scanner;
mod table;
mod vtab;

pub use names::nearest;
pub use output::{Output, Record};
pub use query::{Query, QueryText, ResultColumn};
pub use table::{Column, Comparison, Condition, Kind, NamedTable, Scalar, Scan, Table, Value, Wanted};
