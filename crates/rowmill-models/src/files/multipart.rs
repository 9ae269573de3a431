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

/// A form with some fields and a file in the field `file`.
pub(super) fn form(fields: &[(&str, &str)], file: &Attachment) -> Result<MultipartForm, CallError> {
    // No file contains its own digest, so no file contains the boundary.
    let boundary = format!("rowmill-{}", file.digest);
    let mut body = Vec::with_capacity(file.bytes.len() + 1024);
    for (name, value) in fields {
        let field =
            format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(field.as_bytes());
    }
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{}\"\r\ncontent-type: {}\r\n\r\n",
        quoted(&file.name),
        file.media_type
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&file.bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let content_type = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"))
        .map_err(|error| CallError::new(CallFailure::Internal, error.to_string()))?;
    Ok(MultipartForm { content_type, body: body.into() })
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
