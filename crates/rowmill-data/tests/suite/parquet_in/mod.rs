//! Rows from Parquet files: types, tables of several files, parts, and damage.
mod damage;
mod files;
mod parts;
pub(crate) mod support;
mod types;
