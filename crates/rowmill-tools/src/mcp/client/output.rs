//! Converts a server's answer to a tool output for the model.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ResourceContents, Role, ServerResult};
use rowmill_types::{Attachment, ToolOutput};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Translates an answer.
pub(super) fn of(result: ServerResult) -> ToolOutput {
    match result {
        ServerResult::CallToolResult(result) => of_call(result),
        ServerResult::ReadResourceResult(result) => {
            let mut parts = OutputParts::default();
            for contents in result.contents {
                parts.resource(contents);
            }
            parts.output(false)
        }
        ServerResult::GetPromptResult(result) => of_prompt(result),
        ServerResult::InputRequiredResult(_) => {
            ToolOutput::error("the tool asks for user input, which is not available in a batch run")
        }
        ServerResult::CreateTaskResult(_) => ToolOutput::error(
            "the tool gave a task to be polled instead of a result, which was not asked for",
        ),
        ServerResult::EmptyResult(_) => ToolOutput::default(),
        other => match serde_json::to_string(&other) {
            Ok(text) => ToolOutput::from_text(text),
            Err(error) => ToolOutput::error(format!("the tool's answer cannot be shown: {error}")),
        },
    }
}

fn of_call(result: CallToolResult) -> ToolOutput {
    let mut parts = OutputParts::default();
    for block in result.content {
        parts.block(block);
    }
    // Servers normally repeat structured content as text; if they do not, it is the only content.
    if parts.texts.is_empty()
        && let Some(value) = result.structured_content
    {
        parts.texts.push(value.to_string());
    }
    parts.output(result.is_error == Some(true))
}

fn of_prompt(result: GetPromptResult) -> ToolOutput {
    let mut parts = OutputParts::default();
    let several = result.messages.len() > 1;
    for message in result.messages {
        let before = parts.texts.len();
        parts.block(message.content);
        if several && let Some(text) = parts.texts.get_mut(before) {
            let role = if message.role == Role::Assistant { "assistant" } else { "user" };
            *text = format!("{role}: {text}");
        }
    }
    parts.output(false)
}

#[derive(Debug, Default)]
struct OutputParts {
    texts: Vec<String>,
    attachments: Vec<Attachment>,
}

impl OutputParts {
    fn block(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.file(&image.data, image.mime_type, None),
            ContentBlock::Audio(audio) => self.file(&audio.data, audio.mime_type, None),
            ContentBlock::Resource(embedded) => self.resource(embedded.resource),
            ContentBlock::ResourceLink(link) => self.texts.push(format!("{}: {}", link.name, link.uri)),
            other => self.texts.push(serde_json::to_string(&other).unwrap_or_default()),
        }
    }

    fn resource(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { text, .. } => self.texts.push(text),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let media_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                self.file(&blob, media_type, Some(&uri));
            }
            _ => self.texts.push("(a resource of an unknown kind)".to_owned()),
        }
    }

    fn file(&mut self, encoded: &str, media_type: String, uri: Option<&str>) {
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let Ok(bytes) = BASE64.decode(encoded.trim()) else {
            self.texts.push(format!("(a file of type {media_type} that is not valid base64)"));
            return;
        };
        let number = self.attachments.len() + 1;
        let name = uri.and_then(last_part).unwrap_or_else(|| made_up_name(&media_type, number));
        let digest = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        self.attachments.push(Attachment { name, media_type, bytes: Bytes::from(bytes), digest });
    }

    fn output(self, is_error: bool) -> ToolOutput {
        ToolOutput { text: self.texts.join("\n"), attachments: self.attachments, is_error, is_final: false }
    }
}

/// The last part of a URI, if it can be a file name.
fn last_part(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    (name.contains('.') && !name.contains(':')).then(|| name.to_owned())
}

fn made_up_name(media_type: &str, number: usize) -> String {
    let (family, form) = media_type.split_once('/').unwrap_or(("file", "bin"));
    let family = if matches!(family, "image" | "audio" | "video" | "text") { family } else { "file" };
    let ending = match form {
        "jpeg" => "jpg",
        "mpeg" => "mp3",
        "x-wav" => "wav",
        "svg+xml" => "svg",
        "plain" => "txt",
        form if form.len() <= 5 && form.chars().all(|c| c.is_ascii_alphanumeric()) => form,
        _ => "bin",
    };
    format!("{family}-{number}.{ending}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn output(result: Value) -> ToolOutput {
        of(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn texts_are_joined_and_links_and_embedded_texts_are_among_them() {
        let given = output(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}},
            {"type": "resource_link", "name": "three", "uri": "a://c"},
        ], "structuredContent": {"not": "shown"}}));
        assert_eq!(given, ToolOutput::from_text("one\ntwo\nthree: a://c"));
    }

    #[test]
    fn what_is_structured_is_the_text_where_there_is_none() {
        let given = output(json!({"content": [], "structuredContent": {"b": [1, 2.50], "a": null}}));
        assert_eq!(given, ToolOutput::from_text(r#"{"b":[1,2.5],"a":null}"#));
    }

    #[test]
    fn images_sounds_and_blobs_become_files() {
        let given = output(json!({"isError": true, "content": [
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk", "mimeType": "audio/mpeg; x=y"},
            {"type": "resource", "resource": {"uri": "f:///d/report.pdf", "blob": "aGk=", "mimeType": "application/pdf"}},
            {"type": "resource", "resource": {"uri": "demo://blob/1", "blob": "aGk="}},
            {"type": "image", "data": "§", "mimeType": "image/png"},
        ]}));
        assert!(given.is_error);
        assert_eq!(given.text, "(a file of type image/png that is not valid base64)");
        let names: Vec<_> =
            given.attachments.iter().map(|file| format!("{} {}", file.name, file.media_type)).collect();
        assert_eq!(
            names,
            [
                "image-1.png image/png",
                "audio-2.mp3 audio/mpeg",
                "report.pdf application/pdf",
                "file-4.bin application/octet-stream"
            ]
        );
        let digest = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
        assert!(given.attachments.iter().all(|file| &file.bytes[..] == b"hi" && file.digest == digest));
    }

    #[test]
    fn a_prompt_is_reported_with_who_speaks_where_several_do() {
        let message =
            |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
        let one = output(json!({"messages": [message("user", "hello")]}));
        assert_eq!(one.text, "hello");
        let two = output(json!({"messages": [message("user", "hello"), message("assistant", "hi")]}));
        assert_eq!(two.text, "user: hello\nassistant: hi");
    }

    #[test]
    fn an_answer_of_no_known_form_is_shown_as_it_is() {
        assert_eq!(output(json!({"odd": 1})).text, r#"{"odd":1}"#);
    }
}
