//! The single record of a row: its envelope, telemetry and trace inside a ledger line.
//!
//! The line is built once; sinks get slices of it.

mod envelope;
mod envelope_head;
mod reusable;
mod row_record;
mod settings;
mod telemetry;
mod trace;

pub use envelope_head::EnvelopeHead;
pub(crate) use envelope_head::IdField;
pub use reusable::{ReusableAnswer, StoredAnswerForm};
pub use row_record::{AnswerReuse, InputField, RowRecord, RowReport};
pub use settings::{TraceFacts, TraceSettings, TracedModelRole};
pub use telemetry::{CallReport, RatingReport, ToolReport, total_cost, total_usage};
pub use trace::{
    RowTrace, TraceReport, TracedCall, TracedCaller, TracedConversation, TracedError, TracedFile, TracedId,
    TracedMessage, TracedMessageRole, TracedTool, TracedTurn,
};
