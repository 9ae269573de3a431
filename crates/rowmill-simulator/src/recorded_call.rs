//! Records of the calls that the simulator received.

use serde::Serialize;

use crate::conversation::{RecordedMessage, RecordedRole, RecordedToolCall, RecordedToolResult};
use crate::protocol::ParsedRequest;
use crate::recorded_file::RecordedFile;

/// A model call and its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedCall {
    /// Its number among all calls, from 1.
    pub call: u64,
    /// The path with its query.
    pub path: String,
    /// The requested model.
    pub model: String,
    /// The system text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The first user message, without its files.
    pub prompt: String,
    /// The number of the requested turn: 1 plus the messages of the model so far.
    pub turn: u64,
    /// The names of the offered tools, with the provider's tools last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The model's calls in the previous turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RecordedToolCall>,
    /// The results of those calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<RecordedToolResult>,
    /// The whole conversation; in a log only if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<RecordedMessage>,
    /// The files of all its messages, in order.
    pub files: Vec<RecordedFile>,
}

impl RecordedCall {
    /// The record of a call, without the conversation.
    pub(crate) fn from_request(call: u64, path: &str, ask: &ParsedRequest) -> Self {
        let last = ask.messages.iter().rposition(|message| message.role == RecordedRole::Assistant);
        let since = last.and_then(|at| ask.messages.get(at..)).unwrap_or_default();
        let names = ask.tools.iter().map(|tool| &tool.name).chain(&ask.hosted);
        Self {
            call,
            path: path.to_owned(),
            model: ask.model.clone(),
            system: ask.system.clone(),
            prompt: ask.prompt.clone(),
            turn: ask.turn(),
            tools: names.cloned().collect(),
            calls: since.iter().flat_map(|message| message.calls.clone()).collect(),
            results: since.iter().flat_map(|message| message.answers.clone()).collect(),
            messages: Vec::new(),
            files: ask.files.clone(),
        }
    }
}
