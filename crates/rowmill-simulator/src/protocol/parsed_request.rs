//! The content of a request.

use rowmill_schema_faker::seed_from;
use serde_json::Value;

use super::VendorProtocol;
use crate::conversation::{
    RecordedMessage, RecordedRole, RecordedToolCall, RecordedToolResult, RecordedToolSpec, SimulatedCallView,
};
use crate::recorded_file::RecordedFile;

/// The content of a request, whatever its protocol.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParsedRequest {
    pub(crate) protocol: VendorProtocol,
    pub(crate) model: String,
    pub(crate) system: String,
    /// The first user message: the row's prompt, even if an answer is requested again.
    pub(crate) prompt: String,
    /// The last text of the user or of tools.
    pub(crate) last: String,
    /// All texts, each with its sender.
    pub(crate) spoken: Vec<(&'static str, String)>,
    /// The conversation without the system text.
    pub(crate) messages: Vec<RecordedMessage>,
    /// The offered tools.
    pub(crate) tools: Vec<RecordedToolSpec>,
    /// The offered tools that run at the provider.
    pub(crate) hosted: Vec<String>,
    /// The files of all messages, in order.
    pub(crate) files: Vec<RecordedFile>,
    /// Whether the system prompt is marked for the cache.
    pub(crate) marks_cache: bool,
    /// The maximum tokens that may be generated, if the request states it.
    pub(crate) max_tokens: Option<u64>,
    /// The schema that the answer must satisfy.
    pub(crate) schema: Option<Value>,
    /// The tool that must be called, if the schema is that of a tool.
    pub(crate) tool: Option<String>,
    /// Whether JSON without a schema is requested.
    pub(crate) wants_json: bool,
    pub(crate) stream: bool,
    /// Whether a chat stream ends with the usage.
    pub(crate) usage_in_stream: bool,
    /// Whether a Google stream is one JSON array instead of events.
    pub(crate) stream_is_array: bool,
    /// Whether thoughts are shown (Google), or returned for later requests (Responses).
    pub(crate) gives_thoughts: bool,
}

impl ParsedRequest {
    pub(crate) fn new_for(protocol: VendorProtocol, model: String) -> Self {
        Self { protocol, model, ..Self::default() }
    }

    pub(crate) fn say_system(&mut self, text: &str) {
        if !text.is_empty() {
            self.spoken.push(("system", text.to_owned()));
        }
        self.system.push_str(text);
    }

    pub(crate) fn say_user(&mut self, text: String) {
        self.spoken.push(("user", text.clone()));
        if self.prompt.is_empty() {
            self.prompt.clone_from(&text);
        }
        self.last.clone_from(&text);
        self.messages.push(message(RecordedRole::User, text));
    }

    /// Adds a message of the model with tool calls.
    pub(super) fn say_assistant(&mut self, text: String, calls: Vec<RecordedToolCall>) {
        self.spoken.push(("assistant", text.clone()));
        self.messages.push(message(RecordedRole::Assistant, text));
        for call in calls {
            self.add_call(call);
        }
    }

    /// Adds a text of the model that is a part of its own.
    pub(super) fn add_text(&mut self, text: String) {
        if let Some(last) = self.messages.last_mut().filter(|last| last.role == RecordedRole::Assistant) {
            last.text.push_str(&text);
            self.spoken.push(("assistant", text));
        } else {
            self.say_assistant(text, Vec::new());
        }
    }

    /// Adds a tool call to the model's last message.
    pub(super) fn add_call(&mut self, call: RecordedToolCall) {
        if self.messages.last().is_none_or(|last| last.role != RecordedRole::Assistant) {
            self.messages.push(message(RecordedRole::Assistant, String::new()));
        }
        self.spoken.push(("assistant", format!("{}{}", call.name, call.arguments)));
        if let Some(last) = self.messages.last_mut() {
            last.calls.push(call);
        }
    }

    /// Adds a tool result. Results that come together are one message.
    pub(super) fn add_result(&mut self, result: RecordedToolResult) {
        self.spoken.push(("tool", result.text.clone()));
        if self.messages.last().is_none_or(|last| last.role != RecordedRole::Tool) {
            self.messages.push(message(RecordedRole::Tool, String::new()));
        }
        if let Some(last) = self.messages.last_mut() {
            if !last.answers.is_empty() {
                last.text.push('\n');
            }
            last.text.push_str(&result.text);
            last.answers.push(result);
            self.last.clone_from(&last.text);
        }
    }

    /// The name of the tool of a call, if the conversation contains the call.
    pub(super) fn tool_of(&self, call: &str) -> Option<&str> {
        let mut calls = self.messages.iter().rev().flat_map(|message| &message.calls);
        calls.find(|held| held.id == call).map(|held| held.name.as_str())
    }

    /// Whether a call with this id is in the conversation.
    pub(super) fn has_call(&self, id: &str) -> bool {
        self.tool_of(id).is_some()
    }

    /// Requires that this tool is called; the answer is then a value for its schema.
    pub(super) fn require_tool(&mut self, tool: &RecordedToolSpec) {
        self.tool = Some(tool.name.clone());
        if !tool.schema.is_null() {
            self.schema = Some(tool.schema.clone());
        }
    }

    /// The number of this turn of the model, from 1.
    pub(crate) fn turn(&self) -> u64 {
        1 + self.messages.iter().filter(|message| message.role == RecordedRole::Assistant).count() as u64
    }

    /// How many turns of the model called tools.
    pub(crate) fn turns_with_calls(&self) -> usize {
        self.messages.iter().filter(|message| !message.calls.is_empty()).count()
    }

    /// A hash of all texts, which identifies this conversation.
    pub(crate) fn conversation(&self) -> u64 {
        let texts = self.spoken.iter().flat_map(|(role, text)| [*role, text.as_str()]);
        let all: Vec<&str> = std::iter::once(self.model.as_str()).chain(texts).collect();
        seed_from(&all)
    }

    /// The request as a script sees it.
    pub(crate) fn view(&self, of_prompt: u64, of_turn: u64) -> SimulatedCallView<'_> {
        SimulatedCallView {
            model: &self.model,
            system: &self.system,
            prompt: &self.prompt,
            last: &self.last,
            turn: self.turn(),
            messages: &self.messages,
            tools: &self.tools,
            hosted: &self.hosted,
            schema: self.schema.as_ref(),
            prompt_count: of_prompt,
            conversation_count: of_turn,
        }
    }
}

fn message(role: RecordedRole, text: String) -> RecordedMessage {
    RecordedMessage { role, text, calls: Vec::new(), answers: Vec::new() }
}
