//! Messages with files, as each protocol writes them. Files come before the text.
//!
//! Text files are sent as text if the protocol has no form of its own for them: a line `File: NAME`, an empty
//! line, and the text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowmill_types::{Attachment, Message, MessageRole};

use super::UploadedFiles;
use super::forms::{FileForm, is_wave, name_for_google};
use crate::body::write_text;

/// How a protocol writes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageShape {
    /// Chat completions: `{"role":"user","content":"…"}`; the model's role is `assistant`.
    Chat,
    /// The Responses API: like chat completions, with other names for parts.
    Responses,
    /// The Messages API: like chat completions, with blocks instead of parts.
    Anthropic,
    /// Gemini: `{"role":"user","parts":[{"text":"…"}]}`; the model's role is `model`.
    Google,
}

impl MessageShape {
    /// Whether a request can refer to an uploaded file of this kind.
    pub(crate) fn refers_to(self, form: FileForm) -> bool {
        match self {
            Self::Chat => form == FileForm::Pdf,
            Self::Responses | Self::Anthropic => matches!(form, FileForm::Image | FileForm::Pdf),
            Self::Google => form != FileForm::Text,
        }
    }
}

/// The approximate size of a message's files in a body.
pub(crate) fn message_file_bytes(message: &Message, uploaded: &UploadedFiles) -> usize {
    let files = message.attachments.iter().filter(|file| uploaded.reference(file).is_none());
    files.map(|file| file.bytes.len() * 4 / 3 + 256).sum()
}

/// Writes the content of a message with files: an array of parts.
pub(crate) fn write_message(
    body: &mut Vec<u8>,
    shape: MessageShape,
    message: &Message,
    uploaded: &UploadedFiles,
) {
    let (before, after): (&[u8], &[u8]) = match (shape, message.role) {
        (MessageShape::Google, MessageRole::User | MessageRole::Tool) => {
            (br#"{"role":"user","parts":["#, b"]}")
        }
        (MessageShape::Google, MessageRole::Assistant) => (br#"{"role":"model","parts":["#, b"]}"),
        (_, MessageRole::User | MessageRole::Tool) => (br#"{"role":"user","content":["#, b"]}"),
        (_, MessageRole::Assistant) => (br#"{"role":"assistant","content":["#, b"]}"),
    };
    body.extend_from_slice(before);
    let mut writer = PartWriter { body, shape };
    for (index, file) in message.attachments.iter().enumerate() {
        if index > 0 {
            writer.raw(",");
        }
        writer.attachment(file, uploaded);
    }
    // Some providers reject an empty text part.
    if !message.text.is_empty() {
        writer.raw(",");
        writer.text_part(&message.text);
    }
    body.extend_from_slice(after);
}

/// Writes the parts of one message.
pub(crate) struct PartWriter<'a> {
    pub(crate) body: &'a mut Vec<u8>,
    pub(crate) shape: MessageShape,
}

impl PartWriter<'_> {
    pub(crate) fn raw(&mut self, text: &str) {
        self.body.extend_from_slice(text.as_bytes());
    }

    /// Writes `text` as a JSON string.
    pub(crate) fn string(&mut self, text: &str) {
        write_text(self.body, text);
    }

    /// Writes base64 directly into the body, inside an open string.
    fn base64(&mut self, bytes: &[u8]) {
        let start = self.body.len();
        self.body.resize(start + bytes.len().div_ceil(3) * 4, 0);
        let written = STANDARD.encode_slice(bytes, self.body.get_mut(start..).unwrap_or_default());
        debug_assert!(written.is_ok(), "the room is what base64 needs");
    }

    pub(crate) fn text_part(&mut self, text: &str) {
        self.raw(match self.shape {
            MessageShape::Chat | MessageShape::Anthropic => r#"{"type":"text","text":"#,
            MessageShape::Responses => r#"{"type":"input_text","text":"#,
            MessageShape::Google => r#"{"text":"#,
        });
        self.string(text);
        self.raw("}");
    }

    /// Writes a file, or a reference to it if it is uploaded.
    pub(crate) fn attachment(&mut self, file: &Attachment, uploaded: &UploadedFiles) {
        match uploaded.reference(file) {
            Some(reference) => self.reference(file, reference),
            None => self.file(file),
        }
    }

    /// Writes a file inline.
    fn file(&mut self, file: &Attachment) {
        if let Some(text) = file.text() {
            return self.text_file(file, text);
        }
        match self.shape {
            MessageShape::Chat | MessageShape::Responses => self.openai(file),
            MessageShape::Anthropic => self.block(file),
            MessageShape::Google => {
                self.raw(r#"{"inlineData":{"mimeType":"#);
                self.string(name_for_google(&file.media_type));
                self.raw(r#","data":""#);
                self.base64(&file.bytes);
                self.raw(r#""}}"#);
            }
        }
    }

    fn text_file(&mut self, file: &Attachment, text: &str) {
        if self.shape != MessageShape::Anthropic {
            return self.text_part(&format!("File: {}\n\n{text}", file.name));
        }
        self.raw(r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"#);
        self.string(text);
        self.raw(r#"},"title":"#);
        self.string(&file.name);
        self.raw("}");
    }

    fn openai(&mut self, file: &Attachment) {
        let chat = self.shape == MessageShape::Chat;
        match FileForm::from_media_type(&file.media_type) {
            FileForm::Image => {
                self.raw(if chat {
                    r#"{"type":"image_url","image_url":{"url":""#
                } else {
                    r#"{"type":"input_image","detail":"auto","image_url":""#
                });
                self.data_url(file);
                self.raw(if chat { r#""}}"# } else { r#""}"# });
            }
            FileForm::Audio => {
                self.raw(r#"{"type":"input_audio","input_audio":{"data":""#);
                self.base64(&file.bytes);
                self.raw(r#"","format":"#);
                self.string(if is_wave(&file.media_type) { "wav" } else { "mp3" });
                self.raw("}}");
            }
            FileForm::Pdf | FileForm::Text | FileForm::Other => {
                self.raw(if chat {
                    r#"{"type":"file","file":{"filename":"#
                } else {
                    r#"{"type":"input_file","filename":"#
                });
                self.string(&file.name);
                self.raw(r#","file_data":""#);
                self.data_url(file);
                self.raw(if chat { r#""}}"# } else { r#""}"# });
            }
        }
    }

    fn data_url(&mut self, file: &Attachment) {
        self.raw("data:");
        // The check before the call admits only media types that need no escapes.
        self.raw(&file.media_type);
        self.raw(";base64,");
        self.base64(&file.bytes);
    }

    fn block(&mut self, file: &Attachment) {
        let is_image = FileForm::from_media_type(&file.media_type) == FileForm::Image;
        self.raw(if is_image {
            r#"{"type":"image","source":{"type":"base64","media_type":"#
        } else {
            r#"{"type":"document","source":{"type":"base64","media_type":"#
        });
        self.string(&file.media_type);
        self.raw(r#","data":""#);
        self.base64(&file.bytes);
        self.raw(r#""}"#);
        self.title(file, is_image);
    }

    /// Writes the title of a document and closes its block.
    fn title(&mut self, file: &Attachment, is_image: bool) {
        if !is_image {
            self.raw(r#","title":"#);
            self.string(&file.name);
        }
        self.raw("}");
    }

    /// Writes a reference to an uploaded file.
    fn reference(&mut self, file: &Attachment, reference: &str) {
        let is_image = FileForm::from_media_type(&file.media_type) == FileForm::Image;
        match self.shape {
            MessageShape::Chat => {
                self.raw(r#"{"type":"file","file":{"file_id":"#);
                self.string(reference);
                self.raw("}}");
            }
            MessageShape::Responses => {
                self.raw(if is_image {
                    r#"{"type":"input_image","detail":"auto","file_id":"#
                } else {
                    r#"{"type":"input_file","file_id":"#
                });
                self.string(reference);
                self.raw("}");
            }
            MessageShape::Anthropic => {
                self.raw(if is_image { r#"{"type":"image""# } else { r#"{"type":"document""# });
                self.raw(r#","source":{"type":"file","file_id":"#);
                self.string(reference);
                self.raw("}");
                self.title(file, is_image);
            }
            MessageShape::Google => {
                self.raw(r#"{"fileData":{"mimeType":"#);
                self.string(name_for_google(&file.media_type));
                self.raw(r#","fileUri":"#);
                self.string(reference);
                self.raw("}}");
            }
        }
    }
}
