//! Selecting by SQL, by condition and by columns, on real files.

#![expect(clippy::unwrap_used, reason = "tests stop at the first thing that is not as it should be")]

mod duckdb;
mod parquet_rows;
mod results;
mod select;
mod support;
