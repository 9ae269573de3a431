//! Conversations as the simulator understands them, whatever their protocol.

use serde::Serialize;
use serde_json::Value;

/// Who speaks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeenRole {
    /// The client.
    User,
    /// The model, before.
    Assistant,
    /// Tools, for what the model called just before.
    Tool,
}

/// One message of a conversation. Results of tools that come together are one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenMessage {
    /// Who speaks.
    pub role: SeenRole,
    /// What is said, without files; for tools the texts of their results, a line each.
    pub text: String,
    /// The tools that a message of the model calls, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SeenCall>,
    /// What tools gave, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<SeenResult>,
}

/// A tool call that a conversation holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenCall {
    /// Its id; Google's calls need none.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments; a string when they are no JSON.
    pub arguments: Value,
}

/// What a tool gave for a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenResult {
    /// The id of the call.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// What it gave, without files.
    pub text: String,
    /// Whether it is said to have failed, where the protocol can say so.
    pub is_error: bool,
}

/// A tool that is offered to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenTool {
    /// Its name.
    pub name: String,
    /// What it is said to do; empty when nothing is said.
    pub description: String,
    /// The JSON Schema of its arguments; `null` when there is none.
    pub schema: Value,
}

/// A call as [`crate::Script::reply`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// The model that it names.
    pub model: &'a str,
    /// The system text.
    pub system: &'a str,
    /// The first text of the user.
    pub prompt: &'a str,
    /// The last text of the user or of tools.
    pub last: &'a str,
    /// Which turn of the model this is: 1 and the messages of the model so far.
    pub turn: u64,
    /// The conversation without the system text.
    pub messages: &'a [SeenMessage],
    /// The tools that are offered.
    pub tools: &'a [SeenTool],
    /// The offered tools that run at the provider, such as `web_search`.
    pub hosted: &'a [String],
    /// The schema that the answer must satisfy.
    pub schema: Option<&'a Value>,
    /// How often a conversation with this prompt has come, from 1.
    pub of_prompt: u64,
    /// How often exactly this conversation has come, from 1: more than once when a call is made again.
    pub of_turn: u64,
}
