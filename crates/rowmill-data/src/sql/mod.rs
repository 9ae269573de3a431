//! Selects rows and columns: `--sql`, `--where` and `--columns`, each as a dataset over another one.

mod batches;
mod column_checks;
mod column_values;
mod condition;
mod duckdb;
mod duckdb_environment;
mod duckdb_view;
mod field_name;
mod handoff;
mod infer;
mod projection;
mod query;
mod query_warnings;
mod repeatable;
mod result_row;
mod sample;
mod scan;
mod shape;
mod table;
mod text_hints;

pub use column_checks::{
    WantedColumn, check_columns, check_stream_columns, column_list_text, find_empty_columns,
};
pub use condition::where_dataset;
pub use duckdb::{DuckDbInput, SqlEngine, duckdb_dataset};
pub use projection::columns_dataset;
pub use query::{SqlSettings, sql_dataset};
pub use query_warnings::WarnFn;
pub use repeatable::{is_repeatable_condition, is_repeatable_query};
pub use shape::ColumnType;
