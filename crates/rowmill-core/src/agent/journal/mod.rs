//! The step events of a row, to be stored and replayed after a crash.

mod json_forms;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rowmill_types::{Completion, RowError, ToolOutput};
use serde::{Deserialize, Serialize};

use self::json_forms::{CompletionJson, ToolOutputJson};
use super::transcript::{ToolCallDetails, TurnDetails};
use crate::record::CallReport;

/// Something that was reported to a row state, or that must be known if nothing more is reported.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most are answers, and none lives longer than it is written")]
pub enum StepEvent {
    /// A model answered.
    #[serde(rename = "answered")]
    ModelAnswered {
        /// The node that asked.
        node: usize,
        /// The replacement of the last message, if a hook changed it before it was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// The answer.
        #[serde(with = "CompletionJson")]
        completion: Completion,
        /// Details of the call.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "json_forms::turn_details")]
        note: Option<TurnDetails>,
        /// All calls that were made for the turn, so that their usage and cost stay known.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json_forms::calls")]
        calls: Vec<CallReport>,
    },
    /// A model gave no answer, and none will come.
    #[serde(rename = "failed")]
    ModelFailed {
        /// The node that asked.
        node: usize,
        /// The error.
        error: RowError,
        /// All calls that were made for the turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json_forms::calls")]
        calls: Vec<CallReport>,
    },
    /// A tool that must not run twice is about to be called.
    ToolStarted {
        /// The calling node.
        node: usize,
        /// The index of the call in the turn.
        index: usize,
        /// The tool.
        tool: String,
        /// The id of the call.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call: String,
        /// The arguments, as JSON text that may be truncated.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
        /// The number of the model call of the row that requested it.
        #[serde(default)]
        turn: u32,
    },
    /// A tool returned a result.
    ToolEnded {
        /// The calling node.
        node: usize,
        /// The index of the call in the turn.
        index: usize,
        /// The result.
        #[serde(with = "ToolOutputJson")]
        output: ToolOutput,
        /// Details of the call.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "json_forms::tool_call_details")]
        note: Option<ToolCallDetails>,
    },
    /// The time limit of a node has passed.
    #[serde(rename = "expired")]
    NodeTimedOut {
        /// The node.
        node: usize,
        /// Its time limit.
        #[serde(with = "json_forms::nanoseconds")]
        limit: Duration,
    },
}

impl StepEvent {
    /// Appends the event as one JSON object on one line, without a newline. The rate limits that came with an answer
    /// are omitted: they are outdated when the event is read.
    pub fn write(&self, out: &mut Vec<u8>) {
        let written = serde_json::to_writer(out, self);
        debug_assert!(written.is_ok(), "writing into memory cannot fail");
    }

    /// Parses an event written by [`StepEvent::write`].
    ///
    /// # Errors
    ///
    /// The text is not such an event; the message says where.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}
