//! What can be found out about a file before it is read completely.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use rowmill_types::AttachmentRules;
use rowmill_types::settings::EXTRACT;

use crate::extract::is_extractable;
use crate::media_type::{self, DetectedMedia};

/// The largest document from which text is extracted.
const MOST_EXTRACTED_FROM: u64 = 256 * 1024 * 1024;

/// The checks on attached files: what the model accepts, and whether it gets their extracted text instead.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileChecks<'a> {
    pub(super) rules: &'a AttachmentRules,
    pub(super) extracts: bool,
}

/// The type and size of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedFile {
    pub(super) kind: &'static str,
    pub(super) size: u64,
}

/// Looks at a file without reading more than its beginning.
pub(super) fn detect_file(path: &Path, name: &str) -> Result<(DetectedMedia, u64), String> {
    let shown = path.display();
    let failed = |error: io::Error| unreadable(path, &error);
    let found = fs::metadata(path).map_err(failed)?;
    if found.is_dir() {
        return Err(format!("`{shown}` is a folder, not a file"));
    }
    // Opening a pipe would wait for somebody to write into it.
    if !found.is_file() {
        return Err(format!("`{shown}` is not a file"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut head = Vec::new();
    Read::by_ref(&mut file)
        .take(media_type::DETECTION_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    Ok((media_type::media_of(name, &head, BufReader::new(&file)), found.len()))
}

/// Looks at bytes that are in memory already.
pub(super) fn detect_bytes(name: &str, bytes: &[u8]) -> DetectedMedia {
    let head = bytes.get(..bytes.len().min(media_type::DETECTION_BYTES)).unwrap_or_default();
    media_type::media_of(name, head, Cursor::new(bytes))
}

impl FileChecks<'_> {
    /// Checks whether a file may be sent with the row, as far as its beginning and its size show.
    pub(super) fn check_file(
        self,
        shown: &str,
        name: &str,
        media: DetectedMedia,
        size: u64,
    ) -> Result<CheckedFile, String> {
        let DetectedMedia { kind, .. } = media;
        if size == 0 {
            return Err(format!("`{shown}` is empty"));
        }
        if let Some(reason) = media_type::broken_promise(name, media) {
            return Err(format!("`{shown}` {reason}"));
        }
        if kind == media_type::UNKNOWN_MEDIA_TYPE {
            return Err(format!(
                "`{shown}` has an unknown type: neither its content nor its extension is recognized"
            ));
        }
        if !self.extracts || media_type::is_text(kind) && !is_extractable(kind) {
            self.rules.check(shown, media_type::sent_as(kind), size)?;
        } else if !is_extractable(kind) {
            return Err(format!(
                "`{shown}` is {kind}, from which no text can be extracted; omit {extract} to send it as it \
                 is",
                extract = EXTRACT.with_value("text")
            ));
        } else if size > MOST_EXTRACTED_FROM {
            let most = MOST_EXTRACTED_FROM >> 20;
            return Err(format!(
                "`{shown}` is too large: it has {size} bytes, and text can be extracted from at most {most} \
                 MiB"
            ));
        }
        Ok(CheckedFile { kind, size })
    }

    /// Checks whether this many files may be sent with one row.
    pub(super) fn check_count(self, files: usize) -> Result<(), String> {
        let most = self.rules.max_count;
        if files > most {
            return Err(format!("the row has {files} files, and the model accepts at most {most}"));
        }
        Ok(())
    }

    /// Checks whether files of this total size may be sent with one row.
    pub(super) fn check_total(self, bytes: u64) -> Result<(), String> {
        let most = self.rules.max_total;
        if bytes > most {
            return Err(format!(
                "the files of the row are too large: they have {bytes} bytes together, and the model accepts \
                 at most {most}"
            ));
        }
        Ok(())
    }

    /// The maximum size of any file, in bytes.
    pub(super) fn max_file_bytes(self) -> u64 {
        if self.extracts {
            return MOST_EXTRACTED_FROM;
        }
        let kinds = self.rules.kinds.iter().map(|kind| kind.max_bytes);
        kinds.max().unwrap_or(0).max(self.rules.max_total)
    }
}

/// Checks that a file is complete.
pub(super) fn complete(shown: &str, kind: &str, bytes: &[u8]) -> Result<(), String> {
    match media_type::missing_end(kind, bytes) {
        Some(end) => Err(format!("`{shown}` is broken or truncated: its end ({end}) is missing")),
        None => Ok(()),
    }
}

/// Checks that a file that is sent as text is text.
pub(super) fn readable(shown: &str, kind: &str, bytes: &[u8]) -> Result<(), String> {
    match std::str::from_utf8(bytes) {
        Err(error) if media_type::is_text(kind) => {
            let at = error.valid_up_to() + 1;
            Err(format!("`{shown}` is {kind}, but not valid UTF-8 at byte {at}; save it as UTF-8"))
        }
        _ => Ok(()),
    }
}

/// Reads a file whose size is known.
pub(super) fn read(path: &Path, size: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    File::open(path)
        .and_then(|file| file.take(size + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 != size {
        return Err(format!("`{}` changed while it was being read", path.display()));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => format!("file not found: `{shown}`"),
        io::ErrorKind::PermissionDenied => format!("permission denied: `{shown}`"),
        _ => format!("file cannot be read: `{shown}`: {error}"),
    }
}
