//! Traces of rows: a folder with one file per row, a manifest and spans.
//!
//! `docs/traces.md` describes the files. All are derived from a row's ledger entries, so writing them again
//! gives the same files.

mod codex;
mod codex_records;
mod folder;
mod message_attributes;
mod name;
mod otel_names;
mod sink;
mod spans;
#[cfg(test)]
mod tests;
mod timed_messages;

pub use folder::{TraceFolder, settle_traces};
pub use sink::TraceSink;
