//! Records of the files that the simulator received.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::Serialize;

use crate::protocol::RequestRefusal;

/// A file that came with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedFile {
    /// Its name, if the protocol has one.
    pub name: Option<String>,
    /// Its declared media type.
    pub media_type: String,
    /// Its size in bytes, without encoding.
    pub size: u64,
    /// The SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
    /// How it was sent.
    pub sent: FileTransfer,
}

/// How a file was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileTransfer {
    /// In the body of the call, in base64.
    Inline,
    /// In the body of the call, as text.
    Text,
    /// Uploaded before the call, which refers to it.
    Upload,
}

impl RecordedFile {
    /// A file of these bytes.
    pub(crate) fn from_bytes(name: Option<&str>, media_type: &str, bytes: &[u8], sent: FileTransfer) -> Self {
        let name = name.map(str::to_owned);
        Self {
            name,
            media_type: media_type.to_owned(),
            size: bytes.len() as u64,
            sha256: sha256(bytes),
            sent,
        }
    }
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes base64 as strictly as providers do.
pub(crate) fn decode_base64(data: &str) -> Result<Vec<u8>, RequestRefusal> {
    let refuse = |error| RequestRefusal::invalid(format!("Invalid base64 data: {error}"));
    let bytes = STANDARD.decode(data).map_err(refuse)?;
    if bytes.is_empty() {
        return Err(RequestRefusal::invalid("The file is empty."));
    }
    Ok(bytes)
}

/// Checks that bytes match their media type, as far as their first bytes show.
pub(crate) fn check_media_type(media_type: &str, bytes: &[u8]) -> Result<(), RequestRefusal> {
    let found = found(bytes);
    let fits = match media_type {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" => found == media_type,
        "audio/wav" => found == "audio/wav",
        _ => true,
    };
    if fits {
        return Ok(());
    }
    Err(RequestRefusal::invalid(format!("The file does not match the provided media type {media_type}.")))
}

fn found(bytes: &[u8]) -> &'static str {
    let part = |range| bytes.get::<std::ops::Range<usize>>(range).unwrap_or_default();
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        "image/jpeg"
    } else if bytes.starts_with(b"GIF8") {
        "image/gif"
    } else if bytes.starts_with(b"RIFF") && part(8..12) == b"WEBP" {
        "image/webp"
    } else if bytes.starts_with(b"RIFF") && part(8..12) == b"WAVE" {
        "audio/wav"
    } else if memchr::memmem::find(bytes.get(..1024).unwrap_or(bytes), b"%PDF-").is_some() {
        "application/pdf"
    } else {
        "unknown"
    }
}
