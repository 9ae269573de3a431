//! What happened to a row state, to be kept and applied again after a crash.

mod form;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rowmill_types::{Completion, RowError, ToolOutput};
use serde::{Deserialize, Serialize};

use self::form::{CompletionForm, ToolOutputForm};
use super::transcript::{ToolNote, TurnNote};
use crate::record::CallReport;

/// Something that a row state was told, or that must be known should nothing more be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most are answers, and none lives longer than it is written")]
pub enum Happening {
    /// A model answered.
    Answered {
        /// Who had asked.
        node: usize,
        /// What the last message was changed to before it was sent, if a hook changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// The answer.
        #[serde(with = "CompletionForm")]
        completion: Completion,
        /// What is known of the call.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "form::turn_note")]
        note: Option<TurnNote>,
        /// Every call that was made for the turn, so that what it used and cost stays known.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "form::calls")]
        calls: Vec<CallReport>,
    },
    /// A model gave no answer, and none will come.
    Failed {
        /// Who had asked.
        node: usize,
        /// Why.
        error: RowError,
        /// Every call that was made for the turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "form::calls")]
        calls: Vec<CallReport>,
    },
    /// A tool that must not run twice is about to be called.
    ToolStarted {
        /// Who calls.
        node: usize,
        /// Which of its calls of the turn.
        index: usize,
        /// The tool.
        tool: String,
        /// The id of the call.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call: String,
        /// What it is called with, as JSON text that may be cut.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
        /// Which model call of the row wanted it.
        #[serde(default)]
        turn: u32,
    },
    /// A tool gave something.
    ToolEnded {
        /// Who had called.
        node: usize,
        /// Which of its calls of the turn.
        index: usize,
        /// What it gave.
        #[serde(with = "ToolOutputForm")]
        output: ToolOutput,
        /// What is known of the call.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "form::tool_note")]
        note: Option<ToolNote>,
    },
    /// The time of a node was up.
    Expired {
        /// Which node.
        node: usize,
        /// How long it had.
        #[serde(with = "form::nanoseconds")]
        limit: Duration,
    },
}

impl Happening {
    /// Appends it as one JSON object on one line, without a newline at the end. Of an answer,
    /// the rate limits that came with it are not kept: they are old when it is read.
    pub fn write(&self, out: &mut Vec<u8>) {
        let written = serde_json::to_writer(out, self);
        debug_assert!(written.is_ok(), "writing into memory cannot fail");
    }

    /// Reads what [`Happening::write`] wrote.
    ///
    /// # Errors
    ///
    /// It is something else; the message says where.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}
