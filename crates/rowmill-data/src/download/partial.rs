//! A file that is partly downloaded.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use rowmill_http::{HeaderMap, header};
use rowmill_types::Problem;
use serde::{Deserialize, Serialize};

use super::digest::{ExpectedFile, FileDigest, FileDigester};
use super::download_entry::{DownloadEntry, open_private_file, write_problem};

/// How many bytes of an earlier download are read at once.
const BLOCK: usize = 1 << 20;

/// What a partial file will be when complete, so that a later command can continue it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartialInfo {
    /// What was known before the download.
    pub(super) expected: ExpectedFile,
    /// The server's entity tag of this version.
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Its name, with its extension.
    pub(super) name: String,
    /// Its size, if known.
    pub(super) total: Option<u64>,
}

impl PartialInfo {
    /// The condition in the request, so that the server sends the rest of the same file or all of a different
    /// one. Weak tags do not guarantee the same bytes.
    pub(super) fn condition(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        strong.or(self.last_modified.as_deref())
    }

    /// Whether the rest can be requested and is certain to belong to the downloaded part.
    pub(super) fn can_continue(&self) -> bool {
        self.condition().is_some() || self.expected.digest.is_some()
    }

    /// Takes over the version information in the headers of an answer.
    pub(super) fn take_tags(&mut self, headers: &HeaderMap) {
        self.etag = header_text(headers, &header::ETAG);
        self.last_modified = header_text(headers, &header::LAST_MODIFIED);
    }
}

/// A file that is partly downloaded, and its cache entry.
#[derive(Debug)]
pub(super) struct PartialDownload<'a> {
    entry: &'a DownloadEntry,
    path: PathBuf,
    file: File,
    digester: FileDigester,
    pub(super) promise: PartialInfo,
    /// Bytes downloaded so far.
    pub(super) done: u64,
}

impl<'a> PartialDownload<'a> {
    /// Continues the partial download of the same file that an earlier command left, or starts one.
    pub(super) async fn open(entry: &'a DownloadEntry, expected: &ExpectedFile) -> Result<Self, Problem> {
        let path = entry.file_path(&entry.own_file_name("partial"));
        let file = open_private_file(&path).map_err(|error| write_problem(&path, &error))?;
        let left: Option<PartialInfo> = entry.read(&entry.own_file_name("partial.json"));
        let digester = FileDigester::new(expected);
        let begin = PartialInfo { expected: expected.clone(), ..PartialInfo::default() };
        let mut partial = Self { entry, path, file, digester, promise: begin, done: 0 };
        match left.filter(|promise| promise.expected == *expected && promise.can_continue()) {
            Some(promise) => {
                partial.promise = promise;
                partial.read_again().await?;
            }
            None => partial.forget()?,
        }
        Ok(partial)
    }

    /// Digests the part that was downloaded earlier.
    async fn read_again(&mut self) -> Result<(), Problem> {
        let mut block = vec![0; BLOCK];
        loop {
            let read = self.file.read(&mut block).map_err(|error| write_problem(&self.path, &error))?;
            if read == 0 {
                return Ok(());
            }
            self.digester.update(block.get(..read).unwrap_or_default());
            self.done += read as u64;
            // For a large file this takes seconds, during which Ctrl-C must be handled.
            tokio::task::yield_now().await;
        }
    }

    /// Starts over, with nothing known about what will be downloaded.
    pub(super) fn forget(&mut self) -> Result<(), Problem> {
        let expected = self.promise.expected.clone();
        let cut = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        cut.map_err(|error| write_problem(&self.path, &error))?;
        self.digester = FileDigester::new(&expected);
        self.promise = PartialInfo { expected, ..PartialInfo::default() };
        self.done = 0;
        Ok(())
    }

    /// Records what the following bytes belong to.
    pub(super) fn record_info(&mut self, promise: PartialInfo) -> Result<(), Problem> {
        self.promise = promise;
        self.entry.write(&self.entry.own_file_name("partial.json"), &self.promise)
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        self.file.write_all(bytes).map_err(|error| write_problem(&self.path, &error))?;
        self.digester.update(bytes);
        self.done += bytes.len() as u64;
        Ok(())
    }

    /// The digest of a complete file, which is on disk at that point.
    pub(super) fn finish(&self) -> Result<FileDigest, Problem> {
        self.file.sync_all().map_err(|error| write_problem(&self.path, &error))?;
        Ok(self.digester.clone().finish())
    }

    /// The path of the partial file.
    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Removes it.
    pub(super) fn discard(self) {
        // Anything left of it is truncated when the next command starts.
        drop(fs::remove_file(&self.path));
        drop(fs::remove_file(self.entry.file_path(&self.entry.own_file_name("partial.json"))));
    }
}

/// A header as text.
pub(super) fn header_text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
