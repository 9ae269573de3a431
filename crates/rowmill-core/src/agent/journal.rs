//! What happened to a course, to be kept and applied again after a crash.

use std::time::Duration;

use rowmill_types::{Completion, RowError, ToolOutput};

use super::transcript::{ToolNote, TurnNote};

/// Something that a course was told, or that must be known should nothing more be told.
#[derive(Debug, Clone)]
pub enum Happening {
    /// A model answered.
    Answered {
        /// Who had asked.
        node: usize,
        /// What the last message was changed to before it was sent, if a hook changed it.
        prompt: Option<String>,
        /// The answer.
        completion: Completion,
        /// What is known of the call.
        note: Option<TurnNote>,
    },
    /// A model gave no answer, and none will come.
    Failed {
        /// Who had asked.
        node: usize,
        /// Why.
        error: RowError,
    },
    /// A tool that must not run twice is about to be called.
    ToolStarted {
        /// Who calls.
        node: usize,
        /// Which of its calls of the turn.
        index: usize,
        /// The tool.
        tool: String,
    },
    /// A tool gave something.
    ToolEnded {
        /// Who had called.
        node: usize,
        /// Which of its calls of the turn.
        index: usize,
        /// What it gave.
        output: ToolOutput,
        /// What is known of the call.
        note: Option<ToolNote>,
    },
    /// The time of a node was up.
    Expired {
        /// Which node.
        node: usize,
        /// How long it had.
        limit: Duration,
    },
}
