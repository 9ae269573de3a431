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
pub use reusable::{ReusableAnswer, ReusableAnswerEncoding};
pub use row_record::{EnvelopeInput, ReusedAnswerSource, RowRecord, RowReport};
pub use settings::{RedactedTraceFacts, TraceFacts, TracedModelRole};
pub use telemetry::{CallReport, LowRatingReport, ToolCallReport, total_cost, total_usage};
pub use trace::{
    RowTrace, RowTraceData, TracedConversation, TracedConversationCaller, TracedError, TracedFile,
    TracedMessage, TracedMessageRole, TracedRowId, TracedToolCall, TracedToolRequest, TracedTurn,
};
