//! What was said and done for a row, for its trace.

use std::time::Duration;

use rowmill_types::{Finish, Hosted, Message, Money, Usage};

use super::cast::Rating;

/// All conversations of a row, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The conversations; the first one that has no parent belongs to the worker, where the
    /// worker is an agent.
    pub conversations: Vec<Conversation>,
}

/// An answer that an evaluator-optimizer gave although it is rated below its `min_rating`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// The evaluator-optimizer, by its index in the agent graph.
    pub member: usize,
    /// How the answer was rated.
    pub rating: Rating,
    /// What was asked for.
    pub min_rating: Rating,
}

/// One agent's talk with its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Whose, by its index in the agent graph.
    pub member: usize,
    /// Which model role asked.
    pub voice: usize,
    /// Who had it asked, where another conversation did.
    pub caller: Option<Caller>,
    /// Everything that was said, in order.
    pub messages: Vec<Message>,
    /// The model calls, in order.
    pub turns: Vec<TurnNote>,
    /// The tool calls that were made, in the order in which they ended.
    pub tools: Vec<ToolNote>,
}

/// The conversation that another one began from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its place among the conversations of the row.
    pub conversation: usize,
    /// The id of the call by which it asked, where the one that it asked is its tool and no
    /// workflow stands between them.
    pub call: Option<String>,
}

/// What is known of a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnNote {
    /// When it was sent, counted from the start of the run.
    pub start: Duration,
    /// When its answer was there.
    pub end: Duration,
    /// The model that answered, where the provider told, else the one that was asked.
    pub model: String,
    /// Tokens, where the provider told.
    pub usage: Option<Usage>,
    /// What it cost, where that is known.
    pub cost: Option<Money>,
    /// How the answer ended.
    pub finish: Finish,
    /// What tools did that run at the provider.
    pub hosted: Option<Box<Hosted>>,
}

/// What is known of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNote {
    /// The id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// When it was called, counted from the start of the run.
    pub start: Duration,
    /// When it had answered.
    pub end: Duration,
    /// Whether it failed.
    pub is_error: bool,
}
