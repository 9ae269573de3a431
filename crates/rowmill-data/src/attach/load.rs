//! Loads the files of a row.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rowmill_core::ports::AttachmentLoader;
use rowmill_http::{HttpAnswer, HttpClient, Url};
use rowmill_types::{Attachment, Row, RowError, RowErrorKind};
use tokio::task::spawn_blocking;

use super::AttachmentSpec;
use super::archive::SentFileArchive;
use super::attached_file::{self, AttachedFile, FileLocation};
use super::file_checks::{self, CheckedFile, FileChecks};
use super::file_memory::{FileMemory, FileMemoryShare, hold_share};
use crate::extract::{ExtractionPool, is_extractable};
use crate::{digest, media_type};

/// How much memory is reserved for a fetched file whose size the server does not report.
const UNTOLD_SIZE: u64 = 32 * 1024 * 1024;

/// Loads the files of rows.
#[derive(Debug)]
pub(super) struct RowFileLoader {
    spec: AttachmentSpec,
    extraction: Option<ExtractionPool>,
    archive: Option<Arc<SentFileArchive>>,
    memory: FileMemory,
}

/// A file that may be read.
#[derive(Debug)]
struct ReadableFile {
    wanted: FileOrigin,
    content: FileContent,
    /// Its size in bytes, or the most that it may be.
    size: u64,
}

/// The name of a file, and the digest that it must have.
#[derive(Debug)]
struct FileOrigin {
    shown: String,
    name: String,
    known_digest: Option<String>,
}

#[derive(Debug)]
enum FileContent {
    File(PathBuf, &'static str),
    Memory(Bytes, &'static str),
    /// An HTTP answer whose body has not been read yet.
    Answer(Box<HttpAnswer>),
}

/// A file that was read completely.
#[derive(Debug)]
struct LoadedFile {
    wanted: FileOrigin,
    bytes: Bytes,
    kind: &'static str,
    digest: String,
}

impl AttachmentLoader for RowFileLoader {
    fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>> {
        async move { self.files(row).await.map_err(|message| RowError::new(RowErrorKind::Attachment, message)) }
            .boxed()
    }
}

impl RowFileLoader {
    pub(super) fn new(mut spec: AttachmentSpec) -> Self {
        let extraction = spec.extract.take().map(ExtractionPool::new);
        let archive = spec.archive.take().map(|folder| Arc::new(SentFileArchive::new(folder)));
        Self { spec, extraction, archive, memory: FileMemory::new() }
    }

    fn checks(&self) -> FileChecks<'_> {
        FileChecks { rules: &self.spec.rules, extracts: self.extraction.is_some() }
    }

    async fn files(&self, row: &Row) -> Result<Vec<Attachment>, String> {
        let wanted = attached_file::files_of(&self.spec, row)?;
        self.checks().check_count(wanted.len())?;
        let mut found = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            found.push(self.find(wanted).await?);
        }
        let size = found.iter().map(|found| found.size).sum();
        // Extraction and fetching change the size.
        let is_known = |found: &ReadableFile| !matches!(found.content, FileContent::Answer(_));
        if self.extraction.is_none() && found.iter().all(is_known) {
            self.checks().check_total(size)?;
        }
        let mut share = self.memory.reserve(size).await;
        let mut files = Vec::with_capacity(found.len());
        for found in found {
            let whole = self.read(found).await?;
            files.push(self.as_sent(whole).await?);
        }
        let size = files.iter().map(|(file, _)| file.bytes.len() as u64).sum();
        self.checks().check_total(size)?;
        share.shrink(size);
        self.keep_and_hold(files, share).await
    }

    /// Finds a file and checks what can be checked before it is read.
    async fn find(&self, wanted: AttachedFile) -> Result<ReadableFile, String> {
        let AttachedFile { shown, name, place, known_digest } = wanted;
        let (content, size) = match place {
            FileLocation::File(path) => {
                let head_of_dataset = {
                    let (path, name) = (path.clone(), name.clone());
                    move || file_checks::detect_file(&path, &name)
                };
                let (media, size) = blocking(head_of_dataset).await?;
                let CheckedFile { kind, size } = self.checks().check_file(&shown, &name, media, size)?;
                (FileContent::File(path, kind), size)
            }
            FileLocation::Row(bytes) => {
                let CheckedFile { kind, size } = self.examine_bytes(&shown, &name, &bytes)?;
                (FileContent::Memory(bytes, kind), size)
            }
            FileLocation::Web(url) => {
                let (answer, size) = self.ask(&shown, url).await?;
                (FileContent::Answer(Box::new(answer)), size)
            }
        };
        Ok(ReadableFile { wanted: FileOrigin { shown, name, known_digest }, content, size })
    }

    fn examine_bytes(&self, shown: &str, name: &str, bytes: &Bytes) -> Result<CheckedFile, String> {
        let media = file_checks::detect_bytes(name, bytes);
        self.checks().check_file(shown, name, media, bytes.len() as u64)
    }

    /// Requests a remote file. A failure belongs to the row: when to retry is decided where all retries are.
    async fn ask(&self, shown: &str, url: Url) -> Result<(HttpAnswer, u64), String> {
        let http: &HttpClient = self
            .spec
            .http
            .as_ref()
            .ok_or_else(|| format!("`{shown}` is a URL, and only local files are read; use a path"))?;
        let answer =
            http.get(url).await.map_err(|failure| format!("no response from `{shown}`: {failure}"))?;
        let status = answer.status();
        if !(200..300).contains(&status) {
            return Err(format!("`{shown}` returned status {status}"));
        }
        let reply = answer.headers().get("content-length");
        let reply = reply.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let largest = self.checks().max_file_bytes();
        match reply {
            Some(size) if size > largest => Err(format!(
                "`{shown}` is too large: it has {size} bytes, and the model accepts at most {largest}"
            )),
            Some(size) => Ok((answer, size)),
            None => Ok((answer, largest.min(UNTOLD_SIZE))),
        }
    }

    /// Reads a file completely.
    async fn read(&self, found: ReadableFile) -> Result<LoadedFile, String> {
        let ReadableFile { wanted, content, size } = found;
        let (content, kind) = match content {
            FileContent::File(path, kind) => {
                let shown = wanted.shown.clone();
                let read = move || {
                    let bytes = file_checks::read(&path, size)?;
                    file_checks::complete(&shown, kind, &bytes)?;
                    let digest = digest::of_bytes(&bytes);
                    Ok((Bytes::from(bytes), digest))
                };
                let (bytes, digest) = blocking(read).await?;
                if wanted.known_digest.as_ref().is_some_and(|known| *known != digest) {
                    return Err(format!("`{}` changed after its row was created", wanted.shown));
                }
                return Ok(LoadedFile { wanted, bytes, kind, digest });
            }
            FileContent::Memory(bytes, kind) => (bytes, kind),
            FileContent::Answer(answer) => {
                let largest = usize::try_from(self.checks().max_file_bytes()).unwrap_or(usize::MAX);
                let shown = &wanted.shown;
                let body = answer.body(largest).await;
                let body = body
                    .map_err(|failure| format!("`{shown}` could not be downloaded completely: {failure}"))?;
                let kind = self.examine_bytes(shown, &wanted.name, &body)?.kind;
                (body, kind)
            }
        };
        file_checks::complete(&wanted.shown, kind, &content)?;
        let digest = digest::of_bytes(&content);
        Ok(LoadedFile { wanted, bytes: content, kind, digest })
    }

    /// The file in the form in which the model gets it, and where it came from.
    async fn as_sent(&self, whole: LoadedFile) -> Result<(Attachment, String), String> {
        let LoadedFile { wanted: FileOrigin { shown, name, .. }, bytes, kind, digest } = whole;
        let Some(extraction) = self.extraction.as_ref().filter(|_| is_extractable(kind)) else {
            file_checks::readable(&shown, kind, &bytes)?;
            let media_type = media_type::sent_as(kind).to_owned();
            return Ok((Attachment { name, media_type, bytes, digest }, shown));
        };
        let text = extraction.extract(kind, bytes).await.map_err(|reason| format!("`{shown}` {reason}"))?;
        self.spec.rules.check(&shown, media_type::PLAIN, text.len() as u64)?;
        let digest = digest::of_bytes(text.as_bytes());
        let file = Attachment { name, media_type: media_type::PLAIN.into(), bytes: text.into(), digest };
        Ok((file, shown))
    }

    /// Archives the files if requested, and ties their bytes to the row's share of the memory.
    async fn keep_and_hold(
        &self,
        files: Vec<(Attachment, String)>,
        share: FileMemoryShare,
    ) -> Result<Vec<Attachment>, String> {
        let share = Arc::new(share);
        let mut held = Vec::with_capacity(files.len());
        for (file, shown) in files {
            let file = Attachment { bytes: hold_share(file.bytes, share.clone()), ..file };
            if let Some(archive) = &self.archive {
                let (archive, copy) = (archive.clone(), file.clone());
                blocking(move || archive.store(&copy, &shown)).await?;
            }
            held.push(file);
        }
        Ok(held)
    }
}

/// Runs work that may block on the disk on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let stopped = |error| Err(format!("a file of the row could not be read: {error}"));
    spawn_blocking(work).await.unwrap_or_else(stopped)
}
