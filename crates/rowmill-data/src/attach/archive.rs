//! Keeps every attached file that was sent, by its digest.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rowmill_types::{Attachment, make_private_folder, private_file_options};
use serde::Serialize;

use crate::media_type::extension_for;

/// A folder of the files that were sent: `ab/abcdef….pdf`, and `index.jsonl` with one line per file.
#[derive(Debug)]
pub(super) struct SentFileArchive {
    folder: PathBuf,
    /// Lets only one row at a time decide whether a content is new.
    deciding: Mutex<()>,
}

/// A line of the index.
#[derive(Debug, Serialize)]
struct IndexLine<'a> {
    digest: &'a str,
    name: &'a str,
    path: &'a str,
    media_type: &'a str,
    size: usize,
}

impl SentFileArchive {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, deciding: Mutex::new(()) }
    }

    /// Keeps a file unless the same content is already kept. `path` is where it came from.
    pub(super) fn store(&self, file: &Attachment, path: &str) -> Result<(), String> {
        self.try_keep(file, path).map_err(|error| {
            format!(
                "`{path}` was not sent, because it cannot be archived in `{}`: {error}",
                self.folder.display()
            )
        })
    }

    fn try_keep(&self, file: &Attachment, path: &str) -> io::Result<()> {
        let digest = file.digest.as_str();
        let folder = self.folder.join(digest.get(..2).unwrap_or("00"));
        let kept = folder.join(format!("{digest}.{}", extension_for(&file.media_type)));
        if kept.try_exists()? {
            return Ok(());
        }
        // Each level separately: folders above a private folder are created with default permissions.
        make_private_folder(&self.folder)?;
        make_private_folder(&folder)?;
        let mut copy = tempfile::Builder::new().prefix(".new-").tempfile_in(&folder)?;
        copy.write_all(&file.bytes)?;
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.try_exists()? {
            return Ok(());
        }
        // The line is written first: if the process ends in between, the content is kept by the next attempt,
        // and a duplicate line does no harm.
        self.append(&IndexLine {
            digest,
            name: &file.name,
            path,
            media_type: &file.media_type,
            size: file.bytes.len(),
        })?;
        copy.persist(&kept)?;
        Ok(())
    }

    /// Appends one line with a single write, so that lines of several processes do not mix.
    fn append(&self, line: &IndexLine<'_>) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let path = self.folder.join("index.jsonl");
        private_file_options().append(true).create(true).open(path)?.write_all(&text)
    }
}
