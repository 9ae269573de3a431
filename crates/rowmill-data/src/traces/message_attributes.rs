//! Messages in the JSON text that the conventions require in attributes.

use std::borrow::Cow;

use rowmill_core::record::{TracedFile, TracedMessage, TracedMessageRole};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct AttributeMessage<'a> {
    role: &'static str,
    parts: Vec<MessagePart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagePart<'a> {
    Text { content: &'a str },
    ToolCall { id: &'a str, name: &'a str, arguments: CallArguments<'a> },
    ToolCallResponse { id: &'a str, response: &'a str },
    File { modality: &'static str, mime_type: &'a str, file_id: String, name: &'a str },
}

/// The arguments that a model wrote: JSON, or a text that is not valid JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum CallArguments<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

/// Messages to a model.
pub(super) fn input<'t, 'a: 't>(messages: impl Iterator<Item = &'t TracedMessage<'a>>) -> Cow<'static, str> {
    json(&messages.map(|message| talk(message, None)).collect::<Vec<_>>())
}

/// The answer of a model.
pub(super) fn output(message: &TracedMessage<'_>, finish_reason: &'static str) -> Cow<'static, str> {
    json(&[talk(message, Some(finish_reason))])
}

/// An instruction.
pub(super) fn instruction(text: &str) -> Cow<'static, str> {
    json(&[MessagePart::Text { content: text }])
}

/// Any value as JSON text.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Cow<'static, str> {
    // Texts and numbers always serialize, so the fallback is never used.
    Cow::Owned(serde_json::to_string(value).unwrap_or_default())
}

fn talk<'t>(message: &'t TracedMessage<'_>, finish_reason: Option<&'static str>) -> AttributeMessage<'t> {
    let role = match message.role {
        TracedMessageRole::User => "user",
        TracedMessageRole::Assistant => "assistant",
        TracedMessageRole::Tool => "tool",
    };
    let mut parts = Vec::new();
    match message.answers.as_deref() {
        Some(id) => parts.push(MessagePart::ToolCallResponse { id, response: &message.text }),
        None if message.text.is_empty() => {}
        None => parts.push(MessagePart::Text { content: &message.text }),
    }
    parts.extend(message.files.iter().map(file));
    parts.extend(message.calls.iter().map(|call| {
        MessagePart::ToolCall {
            id: &call.id,
            name: &call.name,
            arguments: serde_json::from_str(&call.arguments)
                .map_or(CallArguments::Text(&call.arguments), CallArguments::Json),
        }
    }));
    AttributeMessage { role, parts, finish_reason }
}

fn file<'t>(file: &'t TracedFile<'_>) -> MessagePart<'t> {
    let modality = match file.media_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        _ => "document",
    };
    let file_id = format!("sha256:{}", file.digest);
    MessagePart::File { modality, mime_type: &file.media_type, file_id, name: &file.name }
}
