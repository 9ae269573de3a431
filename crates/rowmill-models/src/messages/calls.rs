//! Writes model messages that call tools.

use rowmill_types::{Message, ToolCall};

use super::MessageManner;
use crate::files::{MessageShape, PartWriter};
use crate::tool_calls::{is_generated_id, object_or_empty};

/// Gemini accepts this instead of the signature of a call that it did not make itself.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Writes a message in the provider's own form, if it was received in a form that this model understands.
pub(super) fn write_native(writer: &mut PartWriter<'_>, manner: &MessageManner, message: &Message) -> bool {
    let echo = message.native.as_ref().filter(|echo| *echo.format == *manner.form);
    let Some(content) = echo.map(|echo| echo.content.trim()) else { return false };
    if writer.shape == MessageShape::Chat {
        writer.raw(content);
        return true;
    }
    let inside = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::trim);
    let Some(inside) = inside.filter(|inside| !inside.is_empty()) else { return false };
    let (before, after) = match writer.shape {
        MessageShape::Google => (r#"{"role":"model","parts":["#, "]}"),
        MessageShape::Anthropic => (r#"{"role":"assistant","content":["#, "]}"),
        MessageShape::Chat | MessageShape::Responses => ("", ""),
    };
    writer.raw(before);
    writer.raw(inside);
    writer.raw(after);
    true
}

/// Writes a message from its text and its calls.
pub(super) fn write(writer: &mut PartWriter<'_>, manner: &MessageManner, message: &Message) {
    let has_text = !message.text.is_empty();
    match writer.shape {
        MessageShape::Chat => {
            writer.raw(r#"{"role":"assistant","content":"#);
            if has_text {
                writer.string(&message.text);
            } else {
                writer.raw("null");
            }
            writer.raw(r#","tool_calls":["#);
        }
        MessageShape::Responses if has_text => {
            writer.raw(r#"{"role":"assistant","content":"#);
            writer.string(&message.text);
            writer.raw("},");
        }
        MessageShape::Responses => {}
        MessageShape::Anthropic => writer.raw(r#"{"role":"assistant","content":["#),
        MessageShape::Google => writer.raw(r#"{"role":"model","parts":["#),
    }
    if has_text && matches!(writer.shape, MessageShape::Anthropic | MessageShape::Google) {
        writer.text_part(&message.text);
        writer.raw(",");
    }
    for (index, call) in message.calls.iter().enumerate() {
        if index > 0 {
            writer.raw(",");
        }
        write_call(writer, call);
        // If several calls were made at once, Gemini requires a signature on the first one only.
        if writer.shape == MessageShape::Google {
            if manner.is_signed && index == 0 {
                writer.raw(r#","thoughtSignature":"#);
                writer.string(UNSIGNED);
            }
            writer.raw("}");
        }
    }
    writer.raw(if writer.shape == MessageShape::Responses { "" } else { "]}" });
}

/// Writes a call; Gemini's is left open, because a signature may follow.
fn write_call(writer: &mut PartWriter<'_>, call: &ToolCall) {
    match writer.shape {
        MessageShape::Chat => {
            writer.raw(r#"{"id":"#);
            writer.string(&call.id);
            writer.raw(r#","type":"function","function":{"name":"#);
            writer.string(&call.name);
            writer.raw(r#","arguments":"#);
            writer.string(&call.arguments);
            writer.raw("}}");
        }
        MessageShape::Responses => {
            writer.raw(r#"{"type":"function_call","call_id":"#);
            writer.string(&call.id);
            writer.raw(r#","name":"#);
            writer.string(&call.name);
            writer.raw(r#","arguments":"#);
            writer.string(&call.arguments);
            writer.raw("}");
        }
        MessageShape::Anthropic => {
            writer.raw(r#"{"type":"tool_use","id":"#);
            write_anthropic_id(writer, &call.id);
            writer.raw(r#","name":"#);
            writer.string(&call.name);
            writer.raw(r#","input":"#);
            writer.raw(object_or_empty(&call.arguments));
            writer.raw("}");
        }
        MessageShape::Google => {
            writer.raw(r#"{"functionCall":{"#);
            write_google_id(writer, &call.id);
            writer.raw(r#""name":"#);
            writer.string(&call.name);
            writer.raw(r#","args":"#);
            writer.raw(object_or_empty(&call.arguments));
            writer.raw("}");
        }
    }
}

/// Writes an id for Anthropic, which accepts letters, digits, `_` and `-`; a call that another provider made
/// may have other characters.
pub(super) fn write_anthropic_id(writer: &mut PartWriter<'_>, id: &str) {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(fits) {
        writer.string(id);
    } else {
        writer.string(&id.replace(|c| !fits(c), "_"));
    }
}

/// Writes the id field for Gemini, unless the id was generated for a call that had none.
pub(super) fn write_google_id(writer: &mut PartWriter<'_>, id: &str) {
    if !is_generated_id(id) {
        writer.raw(r#""id":"#);
        writer.string(id);
        writer.raw(",");
    }
}
