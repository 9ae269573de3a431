//! The single record of a row: its envelope, telemetry and trace inside a ledger line.
//!
//! The line is built once; sinks get slices of it.

mod envelope;
mod head;
mod reusable;
mod settings;
mod telemetry;
mod trace;
mod whole;

pub use head::EnvelopeHead;
pub(crate) use head::IdField;
pub use reusable::{AnswerForm, ReusableAnswer};
pub use settings::{TraceFacts, TraceSettings, TracedVoice};
pub use telemetry::{CallReport, RatingReport, ToolReport, total_cost, total_usage};
pub use trace::{
    RowTrace, TraceReport, TracedCall, TracedCaller, TracedConversation, TracedError, TracedFile, TracedId,
    TracedMessage, TracedRole, TracedTool, TracedTurn,
};
pub use whole::{InputField, Record, Reused, RowReport};
