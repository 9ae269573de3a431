//! Selects rows by queries and conditions: `--sql` and `--where`, each as a dataset over another one.

mod batches;
mod column_values;
mod condition;
mod duckdb;
mod duckdb_environment;
mod duckdb_view;
mod handoff;
mod infer;
mod query;
mod query_warnings;
mod result_row;
mod scan;
mod shape;
mod table;
mod text_hints;

pub use condition::where_dataset;
pub use duckdb::duckdb_dataset;
pub use query::sql_dataset;
