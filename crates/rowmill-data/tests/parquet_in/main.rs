//! Rows from Parquet files: types, tables of several files, parts, and damage.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod damage;
mod files;
mod parts;
mod support;
mod types;
