//! What a row state asks for, and what its nodes want.

use rowmill_types::{Message, RowError, ToolCall};

use super::form::Form;

/// What has to be done next for a row. Steps that are there at the same time can be done at
/// the same time.
#[derive(Debug)]
pub enum Step {
    /// Ask a model.
    CallModel {
        /// Who asks; names the answer.
        node: usize,
        /// With which model role.
        voice: usize,
        /// What is asked. They are given back with the answer.
        messages: Vec<Message>,
    },
    /// Call a tool.
    CallTool {
        /// Who calls.
        node: usize,
        /// Which of its calls of this turn.
        index: usize,
        /// The tool, by its index in the agent graph.
        tool: usize,
        /// The call, with arguments that satisfy the tool's schema.
        call: ToolCall,
    },
    /// Tell when this much time has passed, unless the node has ended by then.
    Watch {
        /// Who is waited for.
        node: usize,
        /// How long.
        limit: std::time::Duration,
    },
}

/// A number of model calls, in words.
pub(super) fn model_calls(count: u32) -> String {
    if count == 1 { "1 model call".to_owned() } else { format!("{count} model calls") }
}

/// How an agent answered.
pub type Answer = Result<String, RowError>;

/// What a node wants next.
pub(super) enum Move {
    /// Nothing, until something it waits for has come.
    Wait,
    /// Its model's answer.
    Ask,
    /// Calls of tools and of agents, all at once.
    Act(Vec<Act>),
    /// To end.
    Done(Answer),
}

/// One of several things at once.
pub(super) enum Act {
    /// Call a tool.
    Tool { index: usize, tool: usize, call: ToolCall },
    /// Have an agent work.
    Start(Begin),
}

/// An agent that is to work for another.
pub(super) struct Begin {
    /// What its answer will be known by.
    pub(super) key: usize,
    pub(super) member: usize,
    pub(super) form: Form,
    /// Whether its own model is asked, though it is a workflow.
    pub(super) own: bool,
    pub(super) messages: Vec<Message>,
    pub(super) limit: Option<std::time::Duration>,
}
