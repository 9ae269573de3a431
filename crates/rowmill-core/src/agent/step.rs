//! The steps that a row state requests, and the moves that its nodes make.

use rowmill_types::{Completion, Message, RowError, ToolCall, ToolOutput};

use super::answer_format::AnswerFormat;
use super::transcript::{ToolCallDetails, TurnDetails};

/// The next thing to do for a row. Steps that are available at the same time can be carried out concurrently.
#[derive(Debug)]
pub enum RowStep {
    /// Ask a model.
    CallModel {
        /// The node that asks; identifies the answer.
        node: usize,
        /// The model role to use.
        model_role: usize,
        /// The messages. They are returned with the answer.
        messages: Vec<Message>,
    },
    /// Call a tool.
    CallTool {
        /// The calling node.
        node: usize,
        /// The index of the call in the turn.
        index: usize,
        /// The tool, by its index in the agent graph.
        tool: usize,
        /// The call, with arguments that satisfy the tool's schema.
        call: ToolCall,
    },
    /// Report when this much time has passed, unless the node has ended by then.
    StartTimer {
        /// The node that is timed.
        node: usize,
        /// The time limit.
        limit: std::time::Duration,
    },
}

/// A model's answer to a step.
#[derive(Debug)]
pub struct ModelAnswer {
    /// The messages that were sent.
    pub messages: Vec<Message>,
    /// What the model answered.
    pub completion: Completion,
    /// What a transcript tells of the turn, if transcripts are kept.
    pub note: Option<TurnDetails>,
}

/// The result of a tool call that a step asked for.
#[derive(Debug)]
pub struct ToolResult {
    /// The index of the call in the turn.
    pub index: usize,
    /// What the tool returned.
    pub output: ToolOutput,
    /// What a transcript tells of the call, if transcripts are kept.
    pub note: Option<ToolCallDetails>,
}

/// A number of model calls, in words.
pub(super) fn model_calls_text(count: u32) -> String {
    if count == 1 { "1 model call".to_owned() } else { format!("{count} model calls") }
}

/// An agent's answer.
pub type AgentAnswer = Result<String, RowError>;

/// What a node does next.
pub(super) enum NodeAction {
    /// Wait for something that is under way.
    Wait,
    /// Ask its model.
    Ask,
    /// Call tools and agents, all at once.
    StartTasks(Vec<NodeTask>),
    /// End.
    Done(AgentAnswer),
}

/// One of several concurrent actions.
pub(super) enum NodeTask {
    /// Call a tool.
    Tool { index: usize, tool: usize, call: ToolCall },
    /// Start an agent.
    Start(StartAgent),
}

/// An agent to be started for another.
pub(super) struct StartAgent {
    /// The key of its answer.
    pub(super) key: usize,
    pub(super) agent_index: usize,
    pub(super) answer_format: AnswerFormat,
    /// Whether to ask its own model, though it is a workflow.
    pub(super) uses_own_model: bool,
    pub(super) messages: Vec<Message>,
    pub(super) limit: Option<std::time::Duration>,
}
