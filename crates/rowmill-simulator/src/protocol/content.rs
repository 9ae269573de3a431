//! The content of a message: texts and files, in every vendor's format.

use serde_json::Value;

use super::{ParsedRequest, RequestRefusal, VendorProtocol, text};
use crate::recorded_file::{FileTransfer, RecordedFile, check_media_type, decode_base64};
use crate::recorder::RecordedRequest;
use crate::stored_uploads::{FILES_BETA, StoredUploads, unknown_file_refusal};
use crate::thought::ThoughtRegistry;

const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The maximum size of an image at Anthropic.
const ANTHROPIC_IMAGE: usize = 10 << 20;

/// Parses the content of messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContentReader<'a> {
    pub(super) protocol: VendorProtocol,
    pub(super) request: &'a RecordedRequest,
    pub(super) stored: &'a StoredUploads,
    pub(super) thoughts: &'a ThoughtRegistry,
}

impl ContentReader<'_> {
    /// Parses a user message: texts are added to the prompt, files to the list of files.
    pub(super) fn user(
        &self,
        ask: &mut ParsedRequest,
        content: Option<&Value>,
    ) -> Result<(), RequestRefusal> {
        match content {
            Some(Value::Array(parts)) => self.parts_of_user(ask, parts),
            content => {
                ask.say_user(super::text_of(content));
                Ok(())
            }
        }
    }

    /// Parses the parts of a user message.
    pub(super) fn parts_of_user(
        &self,
        ask: &mut ParsedRequest,
        parts: &[Value],
    ) -> Result<(), RequestRefusal> {
        let reported = self.content(ask, parts)?;
        ask.say_user(reported);
        Ok(())
    }

    /// Parses parts: returns their texts and adds the files to the list.
    pub(super) fn content(&self, ask: &mut ParsedRequest, parts: &[Value]) -> Result<String, RequestRefusal> {
        let mut texts = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            match self.part(part)? {
                ContentPart::Text(text) => match text_file(text).filter(|_| !is_last) {
                    Some(file) => {
                        ask.spoken.push(("user", text.to_owned()));
                        ask.files.push(file);
                    }
                    None => texts.push(text),
                },
                ContentPart::File(file) => ask.files.push(file),
                ContentPart::Nothing => {}
            }
        }
        Ok(texts.join("\n"))
    }

    fn part<'v>(&self, part: &'v Value) -> Result<ContentPart<'v>, RequestRefusal> {
        match self.protocol {
            VendorProtocol::Google => self.google(part),
            VendorProtocol::Messages => self.block(part),
            VendorProtocol::Chat | VendorProtocol::Responses => self.openai(part),
        }
    }

    fn openai<'v>(&self, part: &'v Value) -> Result<ContentPart<'v>, RequestRefusal> {
        let is_chat = self.protocol == VendorProtocol::Chat;
        let kind = text(part, "type").unwrap_or_default();
        match kind {
            "text" if is_chat => Ok(ContentPart::Text(text(part, "text").unwrap_or_default())),
            "input_text" | "output_text" if !is_chat => {
                Ok(ContentPart::Text(text(part, "text").unwrap_or_default()))
            }
            "image_url" if is_chat => self.data_url(part.pointer("/image_url/url"), None, IMAGES),
            "input_image" if !is_chat => match text(part, "file_id") {
                Some(id) => self.stored_file(id),
                None => self.data_url(part.get("image_url"), None, IMAGES),
            },
            "file" if is_chat => self.file(part.get("file").unwrap_or(part)),
            "input_file" if !is_chat => self.file(part),
            "input_audio" => {
                let audio = part.get("input_audio").unwrap_or(part);
                let media_type = match text(audio, "format") {
                    Some("wav") => "audio/wav",
                    Some("mp3") => "audio/mpeg",
                    _ => {
                        return Err(RequestRefusal::invalid(
                            "Invalid value: 'format' must be 'wav' or 'mp3'.",
                        ));
                    }
                };
                inline(None, media_type, text(audio, "data").unwrap_or_default())
            }
            "refusal" => Ok(ContentPart::Nothing),
            other => {
                Err(RequestRefusal::invalid(format!("Invalid value: '{other}' is no type of content part.")))
            }
        }
    }

    /// A file in OpenAI's format: its data, or its id.
    fn file<'v>(&self, file: &'v Value) -> Result<ContentPart<'v>, RequestRefusal> {
        if let Some(id) = text(file, "file_id") {
            return self.stored_file(id);
        }
        let Some(name) = text(file, "filename") else {
            return Err(RequestRefusal::invalid("Missing required parameter: 'filename'."));
        };
        self.data_url(file.get("file_data"), Some(name), &["application/pdf"])
    }

    fn data_url<'v>(
        &self,
        url: Option<&'v Value>,
        name: Option<&str>,
        media_types: &[&str],
    ) -> Result<ContentPart<'v>, RequestRefusal> {
        let url = url.and_then(Value::as_str).unwrap_or_default();
        if url.starts_with("https://") {
            // Remote files are not read.
            return Ok(ContentPart::Nothing);
        }
        let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let Some((media_type, data)) = parts else {
            return Err(RequestRefusal::invalid("Invalid data URL: expected 'data:<type>;base64,<data>'."));
        };
        if !media_types.contains(&media_type) {
            return Err(RequestRefusal::invalid(format!("Unsupported MIME type: '{media_type}'.")));
        }
        inline(name, media_type, data)
    }

    fn block<'v>(&self, block: &'v Value) -> Result<ContentPart<'v>, RequestRefusal> {
        let kind = text(block, "type").unwrap_or_default();
        let source = block.get("source").unwrap_or(&Value::Null);
        let media_type = text(source, "media_type").unwrap_or_default();
        let data = text(source, "data").unwrap_or_default();
        let title = text(block, "title");
        match (kind, text(source, "type")) {
            ("text", _) if text(block, "text").is_none_or(str::is_empty) => {
                Err(RequestRefusal::invalid("messages: text content blocks must be non-empty"))
            }
            ("text", _) => Ok(ContentPart::Text(text(block, "text").unwrap_or_default())),
            ("image" | "document", Some("file")) => {
                let beta = self.request.header("anthropic-beta").unwrap_or_default();
                if !beta.split(',').any(|one| one.trim() == FILES_BETA) {
                    return Err(RequestRefusal::invalid(
                        "messages: source: Input tag 'file' needs a beta header",
                    ));
                }
                self.stored_file(text(source, "file_id").unwrap_or_default())
            }
            ("image", Some("base64")) if IMAGES.contains(&media_type) => {
                if data.len() / 4 * 3 > ANTHROPIC_IMAGE {
                    return Err(RequestRefusal::invalid("messages: image exceeds 10 MB maximum"));
                }
                inline(None, media_type, data)
            }
            ("document", Some("base64")) if media_type == "application/pdf" => {
                inline(title, media_type, data)
            }
            ("document", Some("text")) if media_type == "text/plain" => Ok(ContentPart::File(
                RecordedFile::from_bytes(title, media_type, data.as_bytes(), FileTransfer::Text),
            )),
            (kind, _) => Err(RequestRefusal::invalid(format!(
                "messages: content: Input tag '{kind}' is not supported"
            ))),
        }
    }

    fn google<'v>(&self, part: &'v Value) -> Result<ContentPart<'v>, RequestRefusal> {
        let either = |names: [&str; 2]| names.into_iter().find_map(|name| part.get(name));
        if let Some(content) = text(part, "text") {
            return Ok(ContentPart::Text(content));
        }
        let kind = |data: &'v Value| text(data, "mimeType").or_else(|| text(data, "mime_type"));
        if let Some(data) = either(["inlineData", "inline_data"]) {
            let media_type = kind(data).unwrap_or_default();
            let takes =
                ["image/", "audio/", "video/", "text/"].iter().any(|start| media_type.starts_with(start));
            if media_type == "image/gif" || !(takes || media_type == "application/pdf") {
                return Err(RequestRefusal::invalid(format!("Unsupported MIME type: {media_type}")));
            }
            return inline(None, media_type, text(data, "data").unwrap_or_default());
        }
        if let Some(data) = either(["fileData", "file_data"]) {
            let uri = text(data, "fileUri").or_else(|| text(data, "file_uri")).unwrap_or_default();
            return self.stored_file(uri.rsplit('/').next().unwrap_or_default());
        }
        match part.as_object().and_then(|fields| fields.keys().next()) {
            Some(name) if !name.starts_with("function") && !name.starts_with("thought") => Err(
                RequestRefusal::invalid(format!("Invalid JSON payload received. Unknown name \"{name}\"")),
            ),
            _ => Ok(ContentPart::Nothing),
        }
    }

    fn stored_file<'v>(&self, id: &str) -> Result<ContentPart<'v>, RequestRefusal> {
        self.stored.find(id).map(ContentPart::File).ok_or_else(|| unknown_file_refusal(self.protocol, id))
    }
}

/// A part of a message.
#[derive(Debug)]
enum ContentPart<'v> {
    Text(&'v str),
    File(RecordedFile),
    /// A part that is accepted and ignored.
    Nothing,
}

fn inline<'v>(name: Option<&str>, media_type: &str, data: &str) -> Result<ContentPart<'v>, RequestRefusal> {
    let bytes = decode_base64(data)?;
    check_media_type(media_type, &bytes)?;
    Ok(ContentPart::File(RecordedFile::from_bytes(name, media_type, &bytes, FileTransfer::Inline)))
}

/// A text file sent as text: its name in the first line, its content after an empty one.
fn text_file(text: &str) -> Option<RecordedFile> {
    let (name, text) = text.strip_prefix("File: ")?.split_once("\n\n")?;
    Some(RecordedFile::from_bytes(Some(name), "text/plain", text.as_bytes(), FileTransfer::Text))
}
