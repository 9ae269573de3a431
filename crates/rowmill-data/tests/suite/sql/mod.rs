//! Selecting by SQL, by condition and by columns, on real files.

mod duckdb;
mod meaning;
mod parquet_rows;
mod random;
mod results;
mod select;
mod support;
