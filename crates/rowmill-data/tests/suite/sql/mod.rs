//! Selecting by SQL, by condition and by columns, on real files.

mod duckdb;
mod json_columns;
mod meaning;
mod parquet_rows;
mod random;
mod results;
mod select;
mod support;
