//! The tokens of a whole request.

use rowmill_types::{Message, ToolSpec};

use super::TokenCounter;
use crate::tool_calls::tool_parameters;

/// Tokens that frame a message in OpenAI's chat format, besides its role.
const PER_MESSAGE: u64 = 3;
/// The role of a message, which is one token.
const PER_ROLE: u64 = 1;
/// Tokens that frame a tool call, a result, or an offered tool; a call also has an id.
const PER_TOOL: u64 = 8;
/// Tokens that start the model's answer.
const REPLY: u64 = 3;

/// The prompt tokens of every request of a run, besides its messages.
///
/// The overhead of a message is that of OpenAI's chat format, which is close to that of the others. A schema
/// counts as its text, although a provider may present it to the model in another form.
#[must_use]
pub fn fixed_tokens(counter: &TokenCounter, instruction: Option<&str>, schema: Option<&str>) -> u64 {
    if counter.is_built_in() {
        return 0;
    }
    let instruction_tokens = instruction.map_or(0, |text| PER_MESSAGE + PER_ROLE + counter.count(text));
    let schema = schema.map_or(0, |text| counter.count(&compact(text)));
    instruction_tokens + schema + REPLY
}

/// The prompt tokens of the tools that every request of a run offers.
///
/// A tool counts as its name, its description and the text of its schema, although a provider may present it
/// to the model in another form.
#[must_use]
pub fn tool_tokens(counter: &TokenCounter, tools: &[ToolSpec]) -> u64 {
    if counter.is_built_in() {
        return 0;
    }
    let all = |tool: &ToolSpec| {
        let about = tool.description.as_deref().unwrap_or_default();
        let schema = counter.count(&tool_parameters(tool).to_string());
        PER_TOOL + counter.count(&tool.name) + counter.count(about) + schema
    };
    tools.iter().map(all).sum()
}

/// The prompt tokens of a row's own messages, with their files, calls and results.
#[must_use]
pub fn message_tokens(counter: &TokenCounter, messages: &[Message]) -> u64 {
    let (frame, tool) = if counter.is_built_in() { (0, 0) } else { (PER_MESSAGE + PER_ROLE, PER_TOOL) };
    let all = |message: &Message| {
        let files: u64 = message.attachments.iter().map(|file| counter.count_file(file)).sum();
        let calls = message
            .calls
            .iter()
            .map(|call| tool + counter.count(&call.name) + counter.count(&call.arguments));
        let answers = if message.answered_call.is_some() { tool } else { 0 };
        frame + counter.count(&message.text) + files + calls.sum::<u64>() + answers
    };
    messages.iter().map(all).sum()
}

/// JSON without whitespace between its parts, as it is sent.
fn compact(schema: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(schema).ok();
    value.map_or_else(|| schema.to_owned(), |value| value.to_string())
}
