//! Messages in the JSON text that the conventions require in attributes.

use std::borrow::Cow;

use rowmill_core::record::{TracedFile, TracedMessage, TracedRole};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Talk<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { content: &'a str },
    ToolCall { id: &'a str, name: &'a str, arguments: Arguments<'a> },
    ToolCallResponse { id: &'a str, response: &'a str },
    File { modality: &'static str, mime_type: &'a str, file_id: String, name: &'a str },
}

/// The arguments that a model wrote: JSON, or a text that is not valid JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Arguments<'a> {
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
    json(&[Part::Text { content: text }])
}

/// Any value as JSON text.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Cow<'static, str> {
    // Texts and numbers always serialize, so the fallback is never used.
    Cow::Owned(serde_json::to_string(value).unwrap_or_default())
}

fn talk<'t>(message: &'t TracedMessage<'_>, finish_reason: Option<&'static str>) -> Talk<'t> {
    let role = match message.role {
        TracedRole::User => "user",
        TracedRole::Assistant => "assistant",
        TracedRole::Tool => "tool",
    };
    let mut parts = Vec::new();
    match message.answers.as_deref() {
        Some(id) => parts.push(Part::ToolCallResponse { id, response: &message.text }),
        None if message.text.is_empty() => {}
        None => parts.push(Part::Text { content: &message.text }),
    }
    parts.extend(message.files.iter().map(file));
    parts.extend(message.calls.iter().map(|call| Part::ToolCall {
        id: &call.id,
        name: &call.name,
        arguments:
            serde_json::from_str(&call.arguments).map_or(Arguments::Text(&call.arguments), Arguments::Json),
    }));
    Talk { role, parts, finish_reason }
}

fn file<'t>(file: &'t TracedFile<'_>) -> Part<'t> {
    let modality = match file.media_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        _ => "document",
    };
    let file_id = format!("sha256:{}", file.digest);
    Part::File { modality, mime_type: &file.media_type, file_id, name: &file.name }
}
