//! Conversations in the simulator's form, whatever their protocol.

use serde::Serialize;
use serde_json::Value;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedRole {
    /// The client.
    User,
    /// The model, in an earlier turn.
    Assistant,
    /// Tools, answering the calls just before.
    Tool,
}

/// One message of a conversation. Tool results that come together are one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedMessage {
    /// The sender.
    pub role: RecordedRole,
    /// The text, without files; for tools the texts of their results, a line each.
    pub text: String,
    /// The model's tool calls in this message, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RecordedToolCall>,
    /// The tool results, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<RecordedToolResult>,
}

/// A tool call in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedToolCall {
    /// Its id; Google's calls need none.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments; a string if they are not JSON.
    pub arguments: Value,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedToolResult {
    /// The id of the call.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// The result, without files.
    pub text: String,
    /// Whether it is marked as failed, if the protocol allows that.
    pub is_error: bool,
}

/// A tool that is offered to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedToolSpec {
    /// Its name.
    pub name: String,
    /// Its description; may be empty.
    pub description: String,
    /// The JSON Schema of its arguments; `null` if there is none.
    pub schema: Value,
}

/// A call as [`crate::SimulatorScript::answer_calls`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SimulatedCallView<'a> {
    /// The requested model.
    pub model: &'a str,
    /// The system text.
    pub system: &'a str,
    /// The first user text.
    pub prompt: &'a str,
    /// The last text of the user or of tools.
    pub last: &'a str,
    /// The number of this turn: 1 plus the messages of the model so far.
    pub turn: u64,
    /// The conversation without the system text.
    pub messages: &'a [RecordedMessage],
    /// The offered tools.
    pub tools: &'a [RecordedToolSpec],
    /// The offered tools that run at the provider, such as `web_search`.
    pub hosted: &'a [String],
    /// The schema that the answer must satisfy.
    pub schema: Option<&'a Value>,
    /// How often a conversation with this prompt was received, from 1.
    pub prompt_count: u64,
    /// How often exactly this conversation was received, from 1: more than once if a call is retried.
    pub conversation_count: u64,
}
