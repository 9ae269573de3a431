//! The index of a job's results: a file beside them, with an entry for each request in the order of the requests.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rowmill_core::jobs::JobKey;
use rowmill_core::ports::BatchApi;
use rowmill_types::{CallRetryClass, Problem, private_file_options};

use super::custom_id::CustomId;
use super::job_files::{JobPaths, read_problem, write_problem};

/// A buffer this large makes reads and writes of small parts cheap.
const BUFFER: usize = 256 * 1024;

/// Where the result of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) request: u128,
    pub(super) attempt: u32,
    /// The length of its line; zero if the job has no result for it.
    pub(super) length: u32,
    pub(super) offset: u64,
}

impl IndexEntry {
    /// The bytes of an entry on disk: request, attempt, position, length.
    const BYTES: usize = 16 + 4 + 8 + 4;

    /// The entry of a request without a result.
    fn missing(id: CustomId) -> Self {
        Self { request: id.request, attempt: id.attempt, length: 0, offset: 0 }
    }

    fn id(&self) -> (u128, u32) {
        (self.request, self.attempt)
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = self.request.to_le_bytes().into_iter().chain(self.attempt.to_le_bytes());
        let parts = parts.chain(self.offset.to_le_bytes()).chain(self.length.to_le_bytes());
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (request, rest) = bytes.split_first_chunk::<16>()?;
        let (attempt, rest) = rest.split_first_chunk::<4>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (length, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            request: u128::from_le_bytes(*request),
            attempt: u32::from_le_bytes(*attempt),
            length: u32::from_le_bytes(*length),
            offset: u64::from_le_bytes(*offset),
        })
    }
}

/// The index of a job, opened to be read.
#[derive(Debug)]
pub(super) struct IndexFile {
    path: PathBuf,
    file: File,
    /// How many entries it has.
    pub(super) entries: u32,
}

impl IndexFile {
    pub(super) fn open(path: PathBuf) -> Result<Self, Problem> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|error| read_problem(&path, &error))?;
        // No provider takes jobs with so many requests that this cuts anything.
        let entries = u32::try_from(bytes / IndexEntry::BYTES as u64).unwrap_or(u32::MAX);
        Ok(Self { path, file, entries })
    }

    /// Reads the requests of all entries, in order.
    pub(super) fn read_requests(&self, mut add: impl FnMut(u128)) -> Result<(), Problem> {
        let mut entries = BufReader::with_capacity(BUFFER, &self.file);
        let mut bytes = [0; IndexEntry::BYTES];
        for _ in 0..self.entries {
            entries.read_exact(&mut bytes).map_err(|error| read_problem(&self.path, &error))?;
            if let Some(entry) = IndexEntry::from_bytes(&bytes) {
                add(entry.request);
            }
        }
        Ok(())
    }

    /// Reads an entry.
    pub(super) fn entry(&self, number: u32) -> Result<Option<IndexEntry>, Problem> {
        let mut bytes = [0; IndexEntry::BYTES];
        let offset = u64::from(number) * IndexEntry::BYTES as u64;
        let read = self.file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| read_problem(&self.path, &error))?;
        Ok(IndexEntry::from_bytes(&bytes))
    }
}

/// What was found in downloaded results.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultCounts {
    /// Requests with an answer.
    pub(super) answered: u64,
    /// Requests with an error that another attempt would meet again.
    pub(super) failed: u64,
    /// Requests without a result, or with an error that may pass: they were not run.
    pub(super) missing: u64,
    /// Lines that belong to no request of the job.
    pub(super) foreign: u64,
}

/// How closely results are looked at when they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultLook {
    /// The provider says that all are answers: only their ids are read.
    Ids,
    /// Errors are told from answers.
    Outcomes,
}

/// What a line of results is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Answer,
    Failure,
    NotRun,
}

/// Writes the index of downloaded results. Whatever the order of the lines is, each belongs to the request whose id it
/// has; requests without a result are recorded as missing.
pub(super) fn write_index(
    paths: &JobPaths,
    key: &JobKey,
    api: &dyn BatchApi,
    look: ResultLook,
) -> Result<ResultCounts, Problem> {
    let (lines, unread) = read_lines(&paths.results(key), api)?;
    let mut counts = ResultCounts::default();
    let (mut found, mut kinds) = (0, KindReader::open(paths.results(key), look)?);
    write_entries(paths, key, |id| {
        let at = lines.binary_search_by_key(&(id.request, id.attempt), IndexEntry::id);
        let line = at.ok().and_then(|at| lines.get(at)).copied();
        found += u64::from(line.is_some());
        match line.map_or(LineKind::NotRun, |line| kinds.kind_of(&line, api)) {
            LineKind::Answer => counts.answered += 1,
            LineKind::Failure => counts.failed += 1,
            LineKind::NotRun => counts.missing += 1,
        }
        line.unwrap_or_else(|| IndexEntry::missing(id))
    })?;
    counts.foreign = unread + (lines.len() as u64).saturating_sub(found);
    Ok(counts)
}

/// Tells answers from errors.
struct KindReader {
    /// The results, if their lines are read.
    results: Option<File>,
}

impl KindReader {
    fn open(path: PathBuf, look: ResultLook) -> Result<Self, Problem> {
        let results = match look {
            ResultLook::Ids => None,
            ResultLook::Outcomes => Some(File::open(&path).map_err(|error| read_problem(&path, &error))?),
        };
        Ok(Self { results })
    }

    fn kind_of(&mut self, entry: &IndexEntry, api: &dyn BatchApi) -> LineKind {
        let Some(results) = &self.results else { return LineKind::Answer };
        let mut line = vec![0; entry.length as usize];
        // A line that cannot be read is reported when its row is worked on.
        let read = results.read_exact_at(&mut line, entry.offset).ok();
        match read.and_then(|()| api.read_result(line.trim_ascii()).ok()).map(|result| result.outcome) {
            Some(Ok(_)) => LineKind::Answer,
            Some(Err(error))
                if matches!(error.retry_class(), CallRetryClass::Permanent | CallRetryClass::Fatal) =>
            {
                LineKind::Failure
            }
            Some(Err(_)) | None => LineKind::NotRun,
        }
    }
}

/// Writes the index of a job that has no results.
pub(super) fn write_empty_index(paths: &JobPaths, key: &JobKey) -> Result<(), Problem> {
    write_entries(paths, key, IndexEntry::missing)
}

/// The places of all results, sorted by their requests, and the number of lines that have no id of ours.
fn read_lines(path: &Path, api: &dyn BatchApi) -> Result<(Vec<IndexEntry>, u64), Problem> {
    let failed = |error: io::Error| read_problem(path, &error);
    let mut results = BufReader::with_capacity(BUFFER, File::open(path).map_err(failed)?);
    let (mut found, mut unread): (Vec<IndexEntry>, u64) = Default::default();
    let (mut line, mut offset) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = results.read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            match api.read_result_id(text).as_deref().and_then(CustomId::parse) {
                Some(CustomId { request, attempt }) => {
                    let length = u32::try_from(read).unwrap_or(u32::MAX);
                    found.push(IndexEntry { request, attempt, length, offset });
                }
                None => unread += 1,
            }
        }
        offset += read as u64;
    }
    // The first result of a request counts.
    found.sort_unstable_by_key(|entry| (entry.id(), entry.offset));
    found.dedup_by_key(|entry| entry.id());
    Ok((found, unread))
}

/// Reads the ids of a job's requests, in the order of its file.
pub(super) fn read_ids(path: &Path) -> Result<impl Iterator<Item = Result<CustomId, Problem>>, Problem> {
    let unread = |error: io::Error| read_problem(path, &error);
    let ids = BufReader::with_capacity(BUFFER, File::open(path).map_err(unread)?);
    Ok(ids.lines().filter_map(move |line| line.map_err(unread).map(|id| CustomId::parse(&id)).transpose()))
}

/// Writes an entry for each request of a job, in the order of its file.
fn write_entries(
    paths: &JobPaths,
    key: &JobKey,
    mut entry_for: impl FnMut(CustomId) -> IndexEntry,
) -> Result<(), Problem> {
    let (ids, index) = (paths.ids(key), paths.index(key));
    let failed = |error: io::Error| write_problem(&index, &error);
    let opened = private_file_options().write(true).create(true).truncate(true).open(&index);
    let mut out = BufWriter::with_capacity(BUFFER, opened.map_err(failed)?);
    for id in read_ids(&ids)? {
        out.write_all(&entry_for(id?).to_bytes()).map_err(failed)?;
    }
    out.flush().and_then(|()| out.get_ref().sync_data()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let entry = IndexEntry { request: u128::MAX - 5, attempt: 3, length: 77, offset: u64::MAX / 3 };
        assert_eq!(IndexEntry::from_bytes(&entry.to_bytes()), Some(entry));
    }
}
