//! The one record that a row leaves: its envelope and telemetry inside a ledger line.
//!
//! The line is built once; output, errors and telemetry are slices of it.

mod envelope;
mod head;
mod telemetry;
mod whole;

pub use head::EnvelopeHead;
pub use telemetry::{CallReport, ToolReport, total_cost, total_usage};
pub use whole::{InputField, Record, Reused, RowReport};
