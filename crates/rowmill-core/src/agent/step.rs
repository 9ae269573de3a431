//! The steps that a row state requests, and the moves that its nodes make.

use rowmill_types::{Message, RowError, ToolCall};

use super::form::Form;

/// The next thing to do for a row. Steps that are available at the same time can be carried out concurrently.
#[derive(Debug)]
pub enum Step {
    /// Ask a model.
    CallModel {
        /// The node that asks; identifies the answer.
        node: usize,
        /// The model role to use.
        voice: usize,
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
    Watch {
        /// The node that is timed.
        node: usize,
        /// The time limit.
        limit: std::time::Duration,
    },
}

/// A number of model calls, in words.
pub(super) fn model_calls(count: u32) -> String {
    if count == 1 { "1 model call".to_owned() } else { format!("{count} model calls") }
}

/// An agent's answer.
pub type Answer = Result<String, RowError>;

/// What a node does next.
pub(super) enum Move {
    /// Wait for something that is under way.
    Wait,
    /// Ask its model.
    Ask,
    /// Call tools and agents, all at once.
    Act(Vec<Act>),
    /// End.
    Done(Answer),
}

/// One of several concurrent actions.
pub(super) enum Act {
    /// Call a tool.
    Tool { index: usize, tool: usize, call: ToolCall },
    /// Start an agent.
    Start(Begin),
}

/// An agent to be started for another.
pub(super) struct Begin {
    /// The key of its answer.
    pub(super) key: usize,
    pub(super) member: usize,
    pub(super) form: Form,
    /// Whether to ask its own model, though it is a workflow.
    pub(super) own: bool,
    pub(super) messages: Vec<Message>,
    pub(super) limit: Option<std::time::Duration>,
}
