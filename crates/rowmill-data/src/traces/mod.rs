//! Traces of rows: a folder with one file per row, a manifest and spans.
//!
//! `docs/traces.md` describes the files. All are derived from a row's ledger entries, so writing them again
//! gives the same files.

mod codex;
mod conventions;
mod folder;
mod name;
mod said;
mod sink;
mod spans;
mod talk;
#[cfg(test)]
mod tests;

pub use folder::{TraceFolder, settle_traces};
pub use sink::TraceSink;
