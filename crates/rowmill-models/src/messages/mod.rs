//! Writes messages for each protocol: plain ones, tool calls, and tool results.

mod calls;
mod results;

use std::sync::Arc;

use rowmill_types::{Message, MessageRole};

use crate::body::write_text;
use crate::files::{MessageShape, PartWriter, UploadedFiles, write_message};

/// What differs between models of one protocol.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageManner {
    /// The form of model messages that are sent back unchanged.
    pub(crate) form: Arc<str>,
    /// Whether calls must be signed and results may contain pictures: Gemini from 3 on.
    pub(crate) is_signed: bool,
}

/// Whether a message consists only of its text.
pub(crate) fn is_plain(message: &Message) -> bool {
    message.role != MessageRole::Tool
        && message.attachments.is_empty()
        && message.calls.is_empty()
        && message.native.is_none()
}

/// The approximate size of a message in a body, besides its text and its files.
pub(crate) fn extra_bytes(message: &Message) -> usize {
    if is_plain(message) {
        return 0;
    }
    let calls = message.calls.iter().map(|call| call.arguments.len() * 9 / 8 + call.name.len() + 128);
    128 + calls.sum::<usize>() + message.native.as_ref().map_or(0, |echo| echo.content.len())
}

/// Writes a message that consists only of its text.
pub(crate) fn write_plain(body: &mut Vec<u8>, shape: MessageShape, message: &Message) {
    let (before, after): (&[u8], &[u8]) = match (shape, message.role) {
        (MessageShape::Google, MessageRole::User | MessageRole::Tool) => {
            (br#"{"role":"user","parts":[{"text":"#, b"}]}")
        }
        (MessageShape::Google, MessageRole::Assistant) => (br#"{"role":"model","parts":[{"text":"#, b"}]}"),
        (_, MessageRole::User | MessageRole::Tool) => (br#"{"role":"user","content":"#, b"}"),
        (_, MessageRole::Assistant) => (br#"{"role":"assistant","content":"#, b"}"),
    };
    body.extend_from_slice(before);
    write_text(body, &message.text);
    body.extend_from_slice(after);
}

/// How many messages at the start of a conversation are written together: consecutive tool results, or one
/// message.
pub(crate) fn result_group_length(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role == MessageRole::Tool).count().max(1)
}

/// Writes a message with more than text, or a group of results.
pub(crate) fn write_group(
    body: &mut Vec<u8>,
    shape: MessageShape,
    manner: &MessageManner,
    group: &[Message],
    uploaded: &UploadedFiles,
) {
    let Some(message) = group.first() else { return };
    let mut writer = PartWriter { body: &mut *body, shape };
    match message.role {
        MessageRole::Tool => results::write(&mut writer, manner, group, uploaded),
        MessageRole::Assistant if calls::write_native(&mut writer, manner, message) => {}
        MessageRole::Assistant if !message.calls.is_empty() => calls::write(&mut writer, manner, message),
        _ if !message.attachments.is_empty() => write_message(body, shape, message, uploaded),
        _ => write_plain(body, shape, message),
    }
}
