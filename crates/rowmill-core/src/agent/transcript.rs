//! The conversations and tool calls of a row, for its trace.

use std::time::Duration;

use rowmill_types::{Finish, Hosted, Message, Money, Usage};

use super::cast::Rating;

/// All conversations of a row, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The conversations; the first one without a parent belongs to the worker, if the worker is an agent.
    pub conversations: Vec<Conversation>,
}

/// An answer that an evaluator-optimizer gave although it is rated below its `min_rating`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// The evaluator-optimizer, by its index in the agent graph.
    pub member: usize,
    /// The rating of the answer.
    pub rating: Rating,
    /// The rating that was required.
    pub min_rating: Rating,
}

/// One agent's conversation with its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The agent, by its index in the agent graph.
    pub member: usize,
    /// The model role that asked.
    pub voice: usize,
    /// The caller, if another conversation caused this one.
    pub caller: Option<Caller>,
    /// All messages, in order.
    pub messages: Vec<Message>,
    /// The model calls, in order.
    pub turns: Vec<TurnNote>,
    /// The tool calls that were made, in the order in which they ended.
    pub tools: Vec<ToolNote>,
}

/// The conversation that caused another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its index among the conversations of the row.
    pub conversation: usize,
    /// The id of the causing call, if the called agent is a tool of the caller and no workflow stands between them.
    pub call: Option<String>,
}

/// Details of a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnNote {
    /// When it was sent, counted from the start of the run.
    pub start: Duration,
    /// When its answer arrived.
    pub end: Duration,
    /// The model that answered, if the provider reported it; otherwise the model that was asked.
    pub model: String,
    /// Tokens, if the provider reported them.
    pub usage: Option<Usage>,
    /// The cost, if it is known.
    pub cost: Option<Money>,
    /// The finish reason of the answer.
    pub finish: Finish,
    /// Activity of tools that run at the provider.
    pub hosted: Option<Box<Hosted>>,
}

/// Details of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNote {
    /// The id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// When it was called, counted from the start of the run.
    pub start: Duration,
    /// When it returned.
    pub end: Duration,
    /// Whether it failed.
    pub is_error: bool,
}
