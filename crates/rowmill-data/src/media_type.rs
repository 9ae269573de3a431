//! Detects the type of a file: by its content first, then by its extension.

use std::io::{Read, Seek};

use memchr::memmem;

use crate::office_archive::kind_of_archive;

/// How many bytes at the beginning of a file are examined.
pub(crate) const DETECTION_BYTES: usize = 8 * 1024;

/// The media type of unrecognized bytes.
pub(crate) const UNKNOWN_MEDIA_TYPE: &str = "application/octet-stream";
/// The media type of PDF.
pub(crate) const PDF: &str = "application/pdf";
/// The media type of DOCX.
pub(crate) const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/// The media type of XLSX.
pub(crate) const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
/// The media type of PPTX.
pub(crate) const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
/// The media type of HTML.
pub(crate) const HTML: &str = "text/html";
/// The media type of plain text.
pub(crate) const PLAIN: &str = "text/plain";
/// The media type of ZIP.
pub(crate) const ZIP: &str = "application/zip";

/// Types that are reliably detected from their first bytes, so that a file with their extension can be
/// checked.
const CERTAIN: &[&str] =
    &[PDF, DOCX, XLSX, PPTX, "image/png", "image/jpeg", "image/gif", "image/webp", "image/tiff", "image/bmp"];

/// The detected type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DetectedMedia {
    /// The media type.
    pub(crate) kind: &'static str,
    /// How it was detected.
    pub(crate) by: MediaEvidence,
}

/// How a media type was detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaEvidence {
    /// From the bytes.
    Content,
    /// From the extension, because the bytes are not conclusive.
    Name,
}

/// Detects the type of a file. `head` holds its first bytes, at most [`DETECTION_BYTES`]; `content` is read only to look
/// into a ZIP archive.
pub(crate) fn media_of(name: &str, head: &[u8], content: impl Read + Seek) -> DetectedMedia {
    let by_name = media_type_from_name(name);
    let certain = |kind| DetectedMedia { kind, by: MediaEvidence::Content };
    if head.starts_with(b"PK\x03\x04") {
        return certain(kind_of_archive(head, content));
    }
    let start = head.get(..head.len().min(1024)).unwrap_or_default();
    if by_name == Some(PDF) && memmem::find(start, b"%PDF-").is_some() {
        return certain(PDF);
    }
    let found =
        infer::get(head).map(|kind| usual(kind.mime_type())).filter(|kind| *kind != UNKNOWN_MEDIA_TYPE);
    let is_markup = found.is_some_and(is_text);
    // Some types are text in form but not in content; others are detected in any text that begins like them.
    let is_own_kind = matches!(found, Some(PDF | "application/rtf" | "application/postscript"));
    if is_markup || is_plain(head) && !is_own_kind {
        let text = |kind: &&'static str| is_text(kind);
        return certain(by_name.filter(text).or(found.filter(text)).unwrap_or(PLAIN));
    }
    match found {
        Some(kind) => certain(kind),
        None => DetectedMedia { kind: by_name.unwrap_or(UNKNOWN_MEDIA_TYPE), by: MediaEvidence::Name },
    }
}

/// The type for the extension of a name.
pub(crate) fn media_type_from_name(name: &str) -> Option<&'static str> {
    mime_guess::from_path(name).first_raw().map(usual)
}

/// Why the bytes certainly do not match the extension, if so.
///
/// An image of another type than its extension is no error: it is sent as the type that it has.
pub(crate) fn broken_promise(name: &str, media: DetectedMedia) -> Option<String> {
    let promised = media_type_from_name(name).filter(|kind| CERTAIN.contains(kind))?;
    if media.by == MediaEvidence::Name {
        return Some(format!("is broken: its name says {promised}, but it does not start like one"));
    }
    let pictures = promised.starts_with("image/") && media.kind.starts_with("image/");
    (media.kind != promised && !pictures)
        .then(|| format!("is broken: its name says {promised}, but its content is {}", media.kind))
}

/// What is missing at the end of a truncated file.
pub(crate) fn missing_end(kind: &str, bytes: &[u8]) -> Option<&'static str> {
    let has = |mark: &[u8]| memmem::rfind(bytes, mark).is_some();
    match kind {
        PDF if !has(b"%%EOF") && !has(b"startxref") => Some("`%%EOF`"),
        "image/png" if !has(b"IEND") => Some("`IEND`"),
        _ => None,
    }
}

/// Whether files of this type are text, whatever the media type is called.
pub(crate) fn is_text(kind: &str) -> bool {
    const CALLED_OTHERWISE: &[&str] = &[
        "application/json",
        "application/javascript",
        "application/sql",
        "application/toml",
        "application/x-httpd-php",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-tex",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
        "message/rfc822",
    ];
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || CALLED_OTHERWISE.contains(&kind)
}

/// The media type with which a file is sent: for text of any kind it begins with `text/`.
pub(crate) fn sent_as(kind: &'static str) -> &'static str {
    if is_text(kind) && !kind.starts_with("text/") { PLAIN } else { kind }
}

/// The extension with which a file of this type is archived.
pub(crate) fn extension_for(kind: &str) -> &'static str {
    match kind {
        PDF => "pdf",
        DOCX => "docx",
        XLSX => "xlsx",
        PPTX => "pptx",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/tiff" => "tif",
        "image/bmp" => "bmp",
        "image/heif" => "heif",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/flac" => "flac",
        "audio/ogg" => "ogg",
        "audio/mp4" => "m4a",
        "video/mp4" => "mp4",
        kind if is_text(kind) => "txt",
        _ => "bin",
    }
}

/// One name for types that have several.
fn usual(kind: &'static str) -> &'static str {
    match kind {
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        "audio/m4a" | "audio/x-m4a" => "audio/mp4",
        "audio/mp3" => "audio/mpeg",
        "image/jpg" | "image/pjpeg" => "image/jpeg",
        other => other,
    }
}

/// Whether these first bytes of a file are UTF-8 text; they may end inside a character.
fn is_plain(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && head.len() >= DETECTION_BYTES,
    };
    valid
        && !head.is_empty()
        && !head.iter().any(|byte| matches!(byte, 0..=7 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn kind(name: &str, bytes: &[u8]) -> &'static str {
        media_of(name, bytes, Cursor::new(bytes)).kind
    }

    #[test]
    fn content_tells_more_than_the_name() {
        for (name, bytes, expected) in [
            ("a.pdf", &b"%PDF-1.7\n"[..], PDF),
            ("a", b"%PDF-1.7\n", PDF),
            ("a.pdf", b"junk before\n%PDF-1.4\n\x80", PDF),
            ("a.txt", b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
            ("a.jpg", b"\xff\xd8\xff\xe0\0", "image/jpeg"),
            ("a.bin", b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
            ("a.md", b"<!-- note -->\n# Title", "text/markdown"),
            ("a", b"<!DOCTYPE html><p>x", HTML),
            ("page", b"<!DOCTYPE html><p>caf\xe9", HTML),
            ("a.csv", b"a,b\n1,2\n", "text/csv"),
            ("a.json", b"{}", "application/json"),
            ("a.ts", b"let x: number = 1;", PLAIN),
            ("a.unknown", b"BM is no picture", PLAIN),
            ("a.pdf", b"only text", PLAIN),
            ("a.pdf", b"\0\x01\x02", PDF),
            ("a", b"\0\x01\x02", UNKNOWN_MEDIA_TYPE),
            ("a.txt", b"caf\xe9", PLAIN),
            ("empty.png", b"", "image/png"),
            ("a.docx", b"PK\x03\x04 cut", ZIP),
        ] {
            assert_eq!(kind(name, bytes), expected, "{name} {bytes:?}");
        }
    }

    #[test]
    fn a_name_that_promises_another_content_is_reported() {
        for (name, bytes, broken) in [
            ("a.pdf", &b"%PDF-1.7\n"[..], false),
            ("a.pdf", b"only text", true),
            ("a.pdf", b"\0\x01\x02", true),
            ("a.png", b"\xff\xd8\xff\xe0\0", false),
            ("a.png", b"%PDF-1.7\n", true),
            ("a.png", b"\x88PNG\r\n", true),
            ("a.docx", b"PK\x03\x04 cut", true),
            ("a.txt", b"%PDF-1.7\n", false),
        ] {
            let media = media_of(name, bytes, Cursor::new(bytes));
            assert_eq!(broken_promise(name, media).is_some(), broken, "{name} {bytes:?}");
        }
    }

    #[test]
    fn text_may_be_cut_within_a_character_only_where_the_file_goes_on() {
        let mut long = vec![b'x'; DETECTION_BYTES - 1];
        long.push(0xc3);
        assert_eq!(kind("a", &long), PLAIN);
        assert_eq!(kind("a", b"x\xc3"), UNKNOWN_MEDIA_TYPE);
    }

    #[test]
    fn a_cut_file_lacks_its_end() {
        assert_eq!(missing_end(PDF, b"%PDF-1.7\n1 0 obj"), Some("`%%EOF`"));
        assert_eq!(missing_end(PDF, b"%PDF-1.7\nstartxref\n1\n%%EOF"), None);
        assert_eq!(missing_end("image/png", b"\x89PNG"), Some("`IEND`"));
        assert_eq!(missing_end("image/jpeg", b"\xff\xd8"), None);
    }
}
