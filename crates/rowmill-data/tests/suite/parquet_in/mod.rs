//! Rows from Parquet files: types, tables of several files, parts, and damage.
mod damage;
mod files;
mod parts;
mod support;
mod types;
