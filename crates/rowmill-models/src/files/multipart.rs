//! Forms with a file, encoded as `multipart/form-data`.

use bytes::Bytes;
use rowmill_http::HeaderValue;
use rowmill_types::{Attachment, CallError, CallFailure};

/// A form: the value of its `content-type`, and its body.
#[derive(Debug)]
pub(super) struct MultipartForm {
    pub(super) content_type: HeaderValue,
    pub(super) body: Bytes,
}

/// What surrounds a file in a form.
#[derive(Debug)]
pub(crate) struct FormFrame {
    pub(crate) content_type: HeaderValue,
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
}

/// The file of a form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FormFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) media_type: &'a str,
    /// Text that the file does not contain after a line break and two hyphens.
    pub(crate) boundary: &'a str,
}

impl FormFrame {
    /// Surrounds a file in the field `file` with some other fields.
    pub(crate) fn new(fields: &[(&str, &str)], file: FormFile<'_>) -> Result<Self, CallError> {
        let FormFile { name, media_type, boundary } = file;
        let mut head = Vec::new();
        for (name, value) in fields {
            let field =
                format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            head.extend_from_slice(field.as_bytes());
        }
        let start = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{}\"\r\ncontent-type: {media_type}\r\n\r\n",
            quoted(name),
        );
        head.extend_from_slice(start.as_bytes());
        let tail = format!("\r\n--{boundary}--\r\n").into_bytes();
        let content_type = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"))
            .map_err(|error| CallError::new(CallFailure::Internal, error.to_string()))?;
        Ok(Self { content_type, head, tail })
    }
}

/// A form with some fields and a file in the field `file`.
pub(super) fn form(fields: &[(&str, &str)], file: &Attachment) -> Result<MultipartForm, CallError> {
    // No file contains its own digest, so no file contains the boundary.
    let boundary = format!("rowmill-{}", file.digest);
    let about = FormFile { name: &file.name, media_type: &file.media_type, boundary: &boundary };
    let FormFrame { content_type, mut head, tail } = FormFrame::new(fields, about)?;
    head.reserve(file.bytes.len() + tail.len());
    head.extend_from_slice(&file.bytes);
    head.extend_from_slice(&tail);
    Ok(MultipartForm { content_type, body: head.into() })
}

/// A file name, escaped as browsers do in forms.
fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '"' => text.push_str("%22"),
            '\r' => text.push_str("%0D"),
            '\n' => text.push_str("%0A"),
            letter => text.push(letter),
        }
    }
    text
}
