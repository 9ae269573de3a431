//! The conversations and tool calls of a row, for its trace.

use std::time::Duration;

use rowmill_types::{FinishReason, HostedToolUse, Message, Money, TokenUsage};

use super::graph::AnswerRating;

/// All conversations of a row, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowTranscript {
    /// The conversations; the first one without a parent belongs to the worker, if the worker is an agent.
    pub conversations: Vec<ConversationTranscript>,
}

/// An answer that an evaluator-optimizer gave although it is rated below its `min_rating`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowRating {
    /// The evaluator-optimizer, by its index in the agent graph.
    pub agent_index: usize,
    /// The rating of the answer.
    pub rating: AnswerRating,
    /// The rating that was required.
    pub min_rating: AnswerRating,
}

/// One agent's conversation with its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationTranscript {
    /// The agent, by its index in the agent graph.
    pub agent_index: usize,
    /// The model role that asked.
    pub model_role: usize,
    /// The caller, if another conversation caused this one.
    pub caller: Option<CallingConversation>,
    /// All messages, in order.
    pub messages: Vec<Message>,
    /// The model calls, in order.
    pub turns: Vec<TurnDetails>,
    /// The tool calls that were made, in the order in which they ended.
    pub tools: Vec<ToolCallDetails>,
}

/// The conversation that caused another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallingConversation {
    /// Its index among the conversations of the row.
    pub conversation: usize,
    /// The id of the causing call, if the called agent is a tool of the caller and no workflow stands between them.
    pub call: Option<String>,
}

/// Details of a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnDetails {
    /// When it was sent, counted from the start of the run.
    pub start: Duration,
    /// When its answer arrived.
    pub end: Duration,
    /// The model that answered, if the provider reported it; otherwise the model that was asked.
    pub model: String,
    /// Tokens, if the provider reported them.
    pub usage: Option<TokenUsage>,
    /// The cost, if it is known.
    pub cost: Option<Money>,
    /// The finish reason of the answer.
    pub finish: FinishReason,
    /// Activity of tools that run at the provider.
    pub hosted: Option<Box<HostedToolUse>>,
}

/// Details of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallDetails {
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
