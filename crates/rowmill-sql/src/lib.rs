//! SQL over streams of rows, with DuckDB's semantics.
//!
//! A [`SqlTable`] is anything that can be scanned row by row; a [`PreparedSqlQuery`] is one `SELECT` over such tables. The
//! text is parsed and bound: names are resolved, every expression gets a type, and anything that cannot be
//! given DuckDB's semantics is rejected. SQLite then runs the bound query over virtual tables; functions of
//! ours compute everything beyond comparisons. Nothing is loaded as a whole: rows flow from the scan through
//! SQLite to the caller. Only if SQLite would scan a table repeatedly are the columns that the query uses
//! first copied into a temporary file.

mod advice;
mod aggregates;
mod binder;
mod connection;
mod elements;
mod expression;
mod fields;
mod output;
mod query;
mod query_problems;
mod scalars;
mod scan_plan;
mod scan_table;
mod sqlite_functions;
mod table;
mod unwinding;
mod values;

pub use output::{QueryResultColumn, QueryResultRow};
pub use query::{PreparedSqlQuery, QueryText};
pub use table::{
    ComparisonOperator, ComparisonValue, NamedTable, ScanCondition, ScanRequest, SqlTable, SqlTableColumn,
    SqliteColumnValue, TableScan,
};
pub use values::json_read::{TextInterpretation, sqlite_value_from_json, text_value};
pub use values::sql_type::SqlType;
