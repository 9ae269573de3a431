//! All integration tests of this crate in one program, which is linked only once.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what fails here fails the test")]

mod attach;
mod conformance;
mod csv_in;
mod documents;
mod extract;
mod fetch;
mod folders;
mod hub;
mod inputs;
mod json;
mod packed;
mod parquet_in;
mod printed;
mod remote_support;
mod rows;
mod several;
mod skipping;
mod sql;
mod tables;
mod tables_support;
mod texts;
