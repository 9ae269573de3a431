//! Finds the files of a row from its fields.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rowmill_http::Url;
use rowmill_types::Row;
use serde_json::Value;

use super::AttachmentSpec;
use crate::media_type::{PLAIN, extension_for};

/// A file to send with a row.
#[derive(Debug)]
pub(super) struct AttachedFile {
    /// Its name in messages.
    pub(super) shown: String,
    /// Its name without folders.
    pub(super) name: String,
    /// Its location.
    pub(super) place: FileLocation,
    /// The digest that it had when its row was made, if the row is a document.
    pub(super) known_digest: Option<String>,
}

/// The location of a file.
#[derive(Debug)]
pub(super) enum FileLocation {
    /// On the local disk.
    File(PathBuf),
    /// In the row itself.
    Row(Bytes),
    /// At an address.
    Web(Url),
}

/// The files of a row, in the order in which they are sent.
pub(super) fn files_of(spec: &AttachmentSpec, row: &Row) -> Result<Vec<AttachedFile>, String> {
    let mut files = Vec::new();
    if spec.documents {
        files.push(own_file(row)?);
    }
    for field in &spec.fields {
        let value = row.field(field).map(serde_json::from_str::<Value>);
        let nothing = |what: &str| Err(format!("field `{field}` {what}, so there is no file to send"));
        match value {
            None => return nothing("is missing"),
            Some(Ok(Value::Null)) => return nothing("is null"),
            Some(Ok(Value::String(text))) => files.push(named(spec, field, &text)?),
            Some(Ok(Value::Array(values))) if values.is_empty() => return nothing("is an empty list"),
            Some(Ok(Value::Array(values))) => {
                for value in &values {
                    let text = value.as_str().ok_or_else(|| no_path(field))?;
                    files.push(named(spec, field, text)?);
                }
            }
            Some(_) => return Err(no_path(field)),
        }
    }
    Ok(files)
}

fn no_path(field: &str) -> String {
    format!("field `{field}` must hold a path or a list of paths")
}

/// The file of a document's row.
fn own_file(row: &Row) -> Result<AttachedFile, String> {
    let text = |field: &str| row.field(field).and_then(|json| serde_json::from_str::<String>(json).ok());
    let path = text("path").ok_or("the row has no `path`, so there is no file to send")?;
    // A fetched document is stored under a name other than its own.
    let name = text("name").unwrap_or_else(|| last_part(&path));
    Ok(AttachedFile {
        name,
        place: FileLocation::File(PathBuf::from(&path)),
        shown: path,
        known_digest: text("digest"),
    })
}

/// The file that a text in the row names.
fn named(spec: &AttachmentSpec, field: &str, text: &str) -> Result<AttachedFile, String> {
    if text.trim().is_empty() {
        return Err(format!("field `{field}` is empty, so there is no file to send"));
    }
    if let Some(data) = text.strip_prefix("data:") {
        return in_row(field, data);
    }
    let on_disk = |path: PathBuf| {
        let shown = path.display().to_string();
        AttachedFile { name: last_part(&shown), shown, place: FileLocation::File(path), known_digest: None }
    };
    let Some((scheme, _)) = text.split_once("://") else { return Ok(on_disk(spec.base.join(text))) };
    let shown = crate::redacted_source(text);
    let no_address = || format!("`{shown}` in field `{field}` is not a valid URL");
    match scheme.to_ascii_lowercase().as_str() {
        "file" => {
            let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            path.map(on_disk).ok_or_else(no_address)
        }
        "http" | "https" => {
            let url = Url::parse(text).map_err(|_| no_address())?;
            let name = last_part(url.path());
            Ok(AttachedFile { shown, name, place: FileLocation::Web(url), known_digest: None })
        }
        _ => Err(format!("field `{field}`: files cannot be read from `{scheme}://`; use a path")),
    }
}

/// Bytes that are embedded in the row: `data:image/png;base64,iVBOR…`.
fn in_row(field: &str, data: &str) -> Result<AttachedFile, String> {
    let unusable = |why: &str| format!("invalid `data:` URL in field `{field}`: {why}");
    let (head, body) = data.split_once(',').ok_or_else(|| unusable("it has no comma"))?;
    let kind = head.split(';').next().unwrap_or_default();
    let bytes = match head.strip_suffix(";base64") {
        Some(_) => {
            let body: String = body.split_ascii_whitespace().collect();
            STANDARD.decode(body).map_err(|error| unusable(&error.to_string()))?
        }
        None => unescape(body).ok_or_else(|| unusable("a `%` is not followed by two digits"))?,
    };
    let name = match extension_for(if kind.is_empty() { PLAIN } else { kind }) {
        "bin" => field.to_owned(),
        ending => format!("{field}.{ending}"),
    };
    Ok(AttachedFile {
        shown: format!("{field} (data: {kind})"),
        name,
        place: FileLocation::Row(bytes.into()),
        known_digest: None,
    })
}

/// Decodes percent-encoded bytes.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = rest.get(2..)?;
    }
    Some(bytes)
}

fn last_part(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or_default();
    if name.is_empty() { "file".into() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_in_the_row_is_read_in_both_spellings() {
        for (data, name, bytes) in [
            ("image/png;base64,iVBO", "scan.png", Some(&b"\x89PN"[..])),
            ("image/jpeg;base64, /9j/ \n", "scan.jpg", Some(b"\xff\xd8\xff")),
            ("text/plain;charset=utf-8,a%20b%C3%A9", "scan.txt", Some("a bé".as_bytes())),
            (",plain", "scan.txt", Some(b"plain")),
            ("x/unheard-of,a", "scan", Some(b"a")),
            ("image/png;base64,%%%", "", None),
            ("text/plain,50%", "", None),
            ("no comma", "", None),
        ] {
            match (in_row("scan", data), bytes) {
                (Ok(AttachedFile { name: found, place: FileLocation::Row(content), .. }), Some(bytes)) => {
                    assert_eq!((found.as_str(), &content[..]), (name, bytes), "{data}");
                }
                (Err(message), None) => assert!(message.contains("field `scan`"), "{message}"),
                (other, _) => panic!("{data}: {other:?}"),
            }
        }
    }
}
