//! Selects rows and columns: `--sql`, `--where` and `--columns`, each as a dataset over another one.

mod batches;
mod condition;
mod duckdb;
mod duckdb_environment;
mod duckdb_view;
mod field_name;
mod found;
mod handoff;
mod infer;
mod other_form;
mod projection;
mod query;
mod record;
mod repeatable;
mod sample;
mod scan;
mod shape;
mod table;
mod wanted;
mod watch;

pub use condition::where_dataset;
pub use duckdb::{DuckDbInput, SqlEngine, duckdb_dataset};
pub use projection::columns_dataset;
pub use query::{SqlSettings, sql_dataset};
pub use repeatable::{is_repeatable_condition, is_repeatable_query};
pub use shape::ColumnType;
pub use wanted::{WantedColumn, check_columns, checked_stream, empty_columns, listed_columns};
pub use watch::Notice;
