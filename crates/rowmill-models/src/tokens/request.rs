//! The tokens of a whole request.

use rowmill_types::Message;

use super::TokenCounter;

/// What frames a message in OpenAI's chat format, besides its role.
const PER_MESSAGE: u64 = 3;
/// The role of a message, which is one token.
const PER_ROLE: u64 = 1;
/// What makes the model answer.
const REPLY: u64 = 3;

/// The prompt tokens that every request of a run has besides its messages.
///
/// The overhead of a message is that of OpenAI's chat format, which is about that of the others.
/// A schema counts as its text; how a provider shows it to the model is its own affair.
#[must_use]
pub fn fixed_tokens(counter: &TokenCounter, instruction: Option<&str>, schema: Option<&str>) -> u64 {
    if counter.is_built_in() {
        return 0;
    }
    let said = instruction.map_or(0, |text| PER_MESSAGE + PER_ROLE + counter.count(text));
    let schema = schema.map_or(0, |text| counter.count(&compact(text)));
    said + schema + REPLY
}

/// The prompt tokens of a row's own messages, with their files.
#[must_use]
pub fn message_tokens(counter: &TokenCounter, messages: &[Message]) -> u64 {
    let frame = if counter.is_built_in() { 0 } else { PER_MESSAGE + PER_ROLE };
    let files =
        |message: &Message| -> u64 { message.attachments.iter().map(|file| counter.count_file(file)).sum() };
    let all = |message: &Message| frame + counter.count(&message.text) + files(message);
    messages.iter().map(all).sum()
}

/// JSON without the space between its parts, as it is sent.
fn compact(schema: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(schema).ok();
    value.map_or_else(|| schema.to_owned(), |value| value.to_string())
}
