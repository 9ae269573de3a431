//! Converts bytes to a tool's output: text if they are valid text, otherwise a file.

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use rowmill_types::{Attachment, ToolOutput};

/// Bytes as an output. `name` is the file name; without an extension it gets the standard one.
pub(crate) fn output_from_bytes(bytes: Vec<u8>, name: &str) -> ToolOutput {
    let kind = infer::get(&bytes);
    let is_file = kind.is_some_and(|kind| {
        let kind = kind.mime_type();
        kind.starts_with("image/") || kind == "application/pdf"
    });
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !is_file => return ToolOutput::from_text(text),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let media_type = kind.map_or("application/octet-stream", |kind| kind.mime_type());
    let ending = kind.map_or("bin", |kind| kind.extension());
    let name = if name.contains('.') { name.to_owned() } else { format!("{name}.{ending}") };
    let attachment = attachment(name, media_type.to_owned(), bytes.into());
    let text = format!("{}: {}, {} bytes", attachment.name, attachment.media_type, attachment.bytes.len());
    ToolOutput { attachments: vec![attachment], ..ToolOutput::from_text(text) }
}

/// A file with its digest.
pub(crate) fn attachment(name: String, media_type: String, bytes: Bytes) -> Attachment {
    let digest = hex(digest(&SHA256, &bytes).as_ref());
    Attachment { name, media_type, bytes, digest }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
