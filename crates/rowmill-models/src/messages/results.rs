//! Writes the tool results for the calls of one turn.

use std::borrow::Cow;

use rowmill_types::{AnsweredToolCall, Attachment, Message};

use super::MessageManner;
use super::calls::{write_anthropic_id, write_google_id};
use crate::files::{FileForm, MessageShape, PartWriter, UploadedFiles};

/// Writes consecutive results.
pub(super) fn write(
    writer: &mut PartWriter<'_>,
    manner: &MessageManner,
    results: &[Message],
    uploaded: &UploadedFiles,
) {
    match writer.shape {
        MessageShape::Chat => chat(writer, results, uploaded),
        MessageShape::Responses => {
            each(writer, results, |writer, message| responses(writer, message, uploaded))
        }
        MessageShape::Anthropic => {
            writer.raw(r#"{"role":"user","content":["#);
            each(writer, results, |writer, message| anthropic(writer, message, uploaded));
            writer.raw("]}");
        }
        MessageShape::Google => google(writer, manner, results, uploaded),
    }
}

fn each<'a, 'm>(
    writer: &mut PartWriter<'a>,
    results: &'m [Message],
    mut write: impl FnMut(&mut PartWriter<'a>, &'m Message),
) {
    for (index, message) in results.iter().enumerate() {
        if index > 0 {
            writer.raw(",");
        }
        write(writer, message);
    }
}

/// The call that a result answers.
fn answered(message: &Message) -> (&str, &str, bool) {
    let answers = message.answered_call.as_deref();
    answers.map_or(("", "", false), |AnsweredToolCall { call, tool, is_error }| (call, tool, *is_error))
}

/// Writes results for chat completions, which are texts. Other files follow in a user message, because
/// nothing may come between results.
fn chat(writer: &mut PartWriter<'_>, results: &[Message], uploaded: &UploadedFiles) {
    each(writer, results, |writer, message| {
        let (call, ..) = answered(message);
        writer.raw(r#"{"role":"tool","tool_call_id":"#);
        writer.string(call);
        writer.raw(r#","content":"#);
        writer.string(&with_texts(message));
        writer.raw("}");
    });
    let is_shown = |file: &&Attachment| file.text().is_none();
    if !results.iter().any(|message| message.attachments.iter().any(|file| is_shown(&file))) {
        return;
    }
    writer.raw(r#",{"role":"user","content":["#);
    let mut is_first = true;
    for message in results {
        let mut files = message.attachments.iter().filter(is_shown).peekable();
        if files.peek().is_none() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            writer.raw(",");
        }
        let (call, tool, _) = answered(message);
        writer.text_part(&format!("Files that `{tool}` gave for the call `{call}`:"));
        for file in files {
            writer.raw(",");
            writer.attachment(file, uploaded);
        }
    }
    writer.raw("]}");
}

/// The text of a result, with its text files.
fn with_texts(message: &Message) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(message.text.as_str());
    for file in &message.attachments {
        if let Some(note) = file.text() {
            let separator = if text.is_empty() { "" } else { "\n\n" };
            text.to_mut().push_str(&format!("{separator}File: {}\n\n{note}", file.name));
        }
    }
    text
}

/// Writes the text and the files of a result as parts.
fn parts(writer: &mut PartWriter<'_>, message: &Message, uploaded: &UploadedFiles) {
    writer.raw("[");
    if !message.text.is_empty() {
        writer.text_part(&message.text);
    }
    for (index, file) in message.attachments.iter().enumerate() {
        if index > 0 || !message.text.is_empty() {
            writer.raw(",");
        }
        writer.attachment(file, uploaded);
    }
    writer.raw("]");
}

fn responses(writer: &mut PartWriter<'_>, message: &Message, uploaded: &UploadedFiles) {
    let (call, ..) = answered(message);
    writer.raw(r#"{"type":"function_call_output","call_id":"#);
    writer.string(call);
    writer.raw(r#","output":"#);
    if message.attachments.is_empty() {
        writer.string(&message.text);
    } else {
        parts(writer, message, uploaded);
    }
    writer.raw("}");
}

fn anthropic(writer: &mut PartWriter<'_>, message: &Message, uploaded: &UploadedFiles) {
    let (call, _, is_error) = answered(message);
    writer.raw(r#"{"type":"tool_result","tool_use_id":"#);
    write_anthropic_id(writer, call);
    if !message.attachments.is_empty() {
        writer.raw(r#","content":"#);
        parts(writer, message, uploaded);
    } else if !message.text.is_empty() {
        writer.raw(r#","content":"#);
        writer.string(&message.text);
    }
    writer.raw(if is_error { r#","is_error":true}"# } else { "}" });
}

/// Writes results for Gemini as one content. Its newer models accept pictures and PDFs inside a result; other
/// files come after the results.
fn google(
    writer: &mut PartWriter<'_>,
    manner: &MessageManner,
    results: &[Message],
    uploaded: &UploadedFiles,
) {
    let is_inside = |file: &Attachment| {
        manner.is_signed
            && uploaded.reference(file).is_none()
            && matches!(FileForm::from_media_type(&file.media_type), FileForm::Image | FileForm::Pdf)
    };
    writer.raw(r#"{"role":"user","parts":["#);
    each(writer, results, |writer, message| {
        let (call, tool, is_error) = answered(message);
        writer.raw(r#"{"functionResponse":{"#);
        write_google_id(writer, call);
        writer.raw(r#""name":"#);
        writer.string(tool);
        writer.raw(if is_error { r#","response":{"error":"# } else { r#","response":{"output":"# });
        writer.string(&message.text);
        writer.raw("}");
        let mut before = r#","parts":["#;
        for file in message.attachments.iter().filter(|file| is_inside(file)) {
            writer.raw(before);
            writer.attachment(file, uploaded);
            before = ",";
        }
        writer.raw(if before == "," { "]}}" } else { "}}" });
    });
    for file in results.iter().flat_map(|message| &message.attachments).filter(|file| !is_inside(file)) {
        writer.raw(",");
        writer.attachment(file, uploaded);
    }
    writer.raw("]}");
}
