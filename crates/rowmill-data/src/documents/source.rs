//! Makes rows of documents one by one as they are requested.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use rowmill_core::json_text::write_string;
use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{BadRow, FieldSpan, Problem, Row, RowErrorKind, RowReadResult};

use super::file_digest::of_reader;
use super::{DocumentFile, DocumentIdRule, SharedDocuments, SkippedCopies};
use crate::media_type;

/// After this many bytes of files a read returns what it has, so that the first calls do not wait for a batch
/// of large files.
const MOST_WORK: u64 = 32 * 1024 * 1024;

/// The requested parts of a row that are expensive to find.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedFields {
    pub(super) media_type: bool,
    pub(super) digest: bool,
}

/// Reads one row per file. Row numbers are positions in the list.
#[derive(Debug)]
pub(super) struct DocumentRowSource {
    shared: Arc<SharedDocuments>,
    wanted: WantedFields,
    next: usize,
    /// Where each content was found first, for ids by content.
    seen: HashMap<u128, u32>,
    copies: SkippedCopies,
    buffer: Vec<u8>,
}

impl DocumentRowSource {
    pub(super) fn new(shared: Arc<SharedDocuments>, wanted: WantedFields) -> Self {
        Self {
            shared,
            wanted,
            next: 0,
            seen: HashMap::new(),
            copies: SkippedCopies::default(),
            buffer: Vec::new(),
        }
    }

    /// The next row and how many bytes were read for it; `None` at the end.
    fn next_row(&mut self) -> Option<(RowReadResult, u64)> {
        let mut work = 0;
        loop {
            let shared = self.shared.clone();
            let Some(document) = shared.files.get(self.next) else {
                shared.rows.store(self.next as u64 - self.copies.count, Ordering::Relaxed);
                return None;
            };
            self.next += 1;
            let number = self.next as u64;
            match self.describe(document) {
                Ok(description) => {
                    work += description.work;
                    if !self.is_copy(&description) {
                        return Some((Ok(description.row(number)), work));
                    }
                }
                Err(message) => return Some((Err(bad(number, message)), work)),
            }
        }
    }

    fn is_copy(&mut self, description: &FileDescription<'_>) -> bool {
        let (DocumentIdRule::Content, Some(digest)) = (self.shared.ids, &description.full_digest) else {
            return false;
        };
        // Half of the digest is more than enough to distinguish contents.
        let key = digest.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok()).unwrap_or_default();
        let place = u32::try_from(self.next - 1).unwrap_or(u32::MAX);
        let first = *self.seen.entry(key).or_insert(place);
        if first == place {
            return false;
        }
        self.copies.count += 1;
        if self.copies.first.is_none() {
            let original = self.shared.files.get(first as usize).map(|file| file.path.display().to_string());
            self.copies.first = Some((description.path.into(), original.unwrap_or_default()));
        }
        self.shared.note(&self.copies);
        true
    }

    /// Collects what is known about a file; the error is the message of the bad row that takes its place.
    fn describe<'d>(&mut self, document: &'d DocumentFile) -> Result<FileDescription<'d>, String> {
        let shown = document.path.display();
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => format!("file not found: `{shown}`"),
            io::ErrorKind::PermissionDenied => format!("no permission to read the file: `{shown}`"),
            _ => format!("file cannot be read: `{shown}`: {error}"),
        };
        let path =
            document.path.to_str().ok_or_else(|| format!("path of a file is not valid UTF-8: `{shown}`"))?;
        let found = fs::metadata(&document.path).map_err(failed)?;
        if !found.is_file() {
            return Err(format!("path is no longer a file: `{shown}`"));
        }
        let called = document.called.as_deref().unwrap_or(path);
        let name = called.rsplit(std::path::is_separator).next().unwrap_or(called);
        let modified = found.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        let mut description = FileDescription {
            path,
            name,
            media_type: None,
            size: found.len(),
            digest_wanted: self.wanted.digest,
            full_digest: None,
            modified,
            work: 0,
        };
        let hashed = self.wanted.digest || self.shared.ids == DocumentIdRule::Content;
        if self.wanted.media_type || hashed {
            self.look_inside(document, hashed, &mut description).map_err(failed)?;
        }
        Ok(description)
    }

    fn look_inside(
        &mut self,
        document: &DocumentFile,
        hashed: bool,
        into: &mut FileDescription<'_>,
    ) -> io::Result<()> {
        let mut file = File::open(&document.path)?;
        if self.wanted.media_type {
            self.buffer.clear();
            Read::by_ref(&mut file).take(media_type::DETECTION_BYTES as u64).read_to_end(&mut self.buffer)?;
            into.media_type = Some(media_type::media_of(into.name, &self.buffer, BufReader::new(&file)).kind);
            into.work += self.buffer.len() as u64;
        }
        if hashed {
            file.rewind()?;
            let (digest, size) = of_reader(&file, &mut self.buffer)?;
            into.full_digest = Some(digest);
            into.size = size;
            into.work += size;
        }
        Ok(())
    }
}

impl RowSource for DocumentRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let (mut rows, mut bytes, mut work) = (0, 0, 0);
        while let Some((row, done)) = self.next_row() {
            bytes += row.as_ref().map_or(0, |row| row.json_text().len());
            work += done;
            batch.push(row);
            rows += 1;
            if rows >= room.rows || bytes >= room.bytes || work >= MOST_WORK {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        if self.shared.ids == DocumentIdRule::Path {
            let left = self.shared.files.len() - self.next;
            let passed = usize::try_from(rows).unwrap_or(usize::MAX).min(left);
            self.next += passed;
            return Ok(passed as u64);
        }
        // Copies are not rows, and only their content identifies them.
        let mut passed = 0;
        while passed < rows && self.next_row().is_some() {
            passed += 1;
        }
        Ok(passed)
    }

    /// Counts files: their sizes are unknown until they are examined.
    fn position(&self) -> InputReadProgress {
        InputReadProgress { read: self.next as u64, total: Some(self.shared.files.len() as u64) }
    }
}

/// What is known about a file.
#[derive(Debug)]
struct FileDescription<'d> {
    path: &'d str,
    name: &'d str,
    media_type: Option<&'static str>,
    size: u64,
    digest_wanted: bool,
    full_digest: Option<String>,
    modified: Option<Timestamp>,
    /// How many bytes were read to find it.
    work: u64,
}

impl FileDescription<'_> {
    fn row(&self, number: u64) -> Row {
        let mut object =
            RowTextBuilder { text: String::with_capacity(192 + 2 * self.path.len()), fields: Vec::new() };
        if std::path::MAIN_SEPARATOR == '/' {
            object.text_field("path", self.path);
        } else {
            object.text_field("path", &self.path.replace(std::path::MAIN_SEPARATOR, "/"));
        }
        object.text_field("name", self.name);
        if let Some(media_type) = self.media_type {
            object.text_field("media_type", media_type);
        }
        object.field("size", |text| text.push_str(&self.size.to_string()));
        if let Some(digest) = self.full_digest.as_ref().filter(|_| self.digest_wanted) {
            object.text_field("digest", digest);
        }
        // Some file systems do not keep fractions of seconds.
        match self.modified.and_then(|time| Timestamp::from_second(time.as_second()).ok()) {
            Some(time) => object.text_field("modified", &time.to_string()),
            None => object.field("modified", |text| text.push_str("null")),
        }
        object.text.push('}');
        Row::from_parts(number, object.text, object.fields)
    }
}

/// The JSON text of a row under construction, and the positions of its fields.
struct RowTextBuilder {
    text: String,
    fields: Vec<FieldSpan>,
}

impl RowTextBuilder {
    fn text_field(&mut self, name: &str, value: &str) {
        self.field(name, |text| write_string(value, text));
    }

    fn field(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.text.push(if self.fields.is_empty() { '{' } else { ',' });
        let start = self.text.len() + 1;
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
        let value = self.text.len();
        write(&mut self.text);
        self.fields.push(FieldSpan::with_plain_name(start..start + name.len(), value..self.text.len()));
    }
}

fn bad(number: u64, message: String) -> BadRow {
    BadRow { number, kind: RowErrorKind::Attachment, message }
}
