//! Agents: how a row is worked on in several turns, as a pure state machine.
//!
//! A [`AgentGraph`] defines who works on every row: agents with tools, and workflows of agents. A [`RowState`] is the state of
//! one row in its agent graph. It requests [`RowStep`]s (call a model, call a tool), is notified of their results, and
//! ends with an outcome. It has no clock and no network, and the only order of arrival that it knows is the order of
//! the notifications.
//!
//! Each notification is a [`StepEvent`]. The same step events in the same order lead to the same row state, so a list
//! of them is all that must be kept to continue after a crash.

mod answer_format;
mod conversation;
mod graph;
mod journal;
mod model_roles;
mod replay;
mod row_state;
mod step;
mod transcript;
mod workflow;

pub use answer_format::AnswerFormat;
pub use graph::{
    AgentDefinition, AgentGraph, AgentGraphTool, AgentKind, AgentSettings, AnswerEquality, AnswerRating,
    ChildAgent, ModelRole, OrchestratorPlanType, ToolCallAction,
};
pub use journal::StepEvent;
pub use row_state::RowState;
pub use step::{AgentAnswer, ModelAnswer, RowStep, ToolResult};
pub use transcript::{
    CallingConversation, ConversationTranscript, LowRating, RowTranscript, ToolCallDetails, TurnDetails,
};
pub use workflow::system_instruction;
