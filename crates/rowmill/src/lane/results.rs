//! The results of finished jobs, found by the ids of their requests.
//!
//! An index is written beside the results when they are downloaded, so that a pass need not read them all before it
//! begins.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rowmill_core::jobs::{JobKey, JobRecord, JobStage, LostResults};
use rowmill_core::ports::BatchApi;
use rowmill_types::{Problem, private_file_options};

use super::custom_id::CustomId;
use super::job_files::{JobPaths, read_problem, write_problem};

/// The bytes of an entry on disk: request, attempt, position, length.
const ENTRY: usize = 16 + 4 + 8 + 4;

/// Where the result of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResultPlace {
    attempt: u32,
    /// Its job, by its position in the index.
    job: u32,
    offset: u64,
    /// The length of its line; zero if the job has no result for it.
    length: u32,
}

/// The results that a pass can use.
#[derive(Debug, Default)]
pub(super) struct ResultIndex {
    jobs: Vec<IndexedJob>,
    places: HashMap<u64, ResultPlace>,
    /// Requests in jobs that are out, by the position of their jobs in `out`.
    waiting: HashMap<u64, u32>,
    out: Vec<JobKey>,
}

#[derive(Debug)]
struct IndexedJob {
    origin: ResultOrigin,
    results: Option<File>,
    /// Why none of its requests will ever be answered, if the provider has refused all of them.
    refused: Option<String>,
}

/// The job that a result comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultOrigin {
    pub(super) key: JobKey,
    pub(super) provider_id: String,
    pub(super) round: u32,
}

/// What a finished job has for a request.
#[derive(Debug)]
pub(super) enum StoredResult {
    /// The line of its result.
    Line(Vec<u8>),
    /// Nothing: the request was not answered, and may be sent again.
    Missing,
    /// Nothing: the provider has refused the job, for this reason.
    Refused(String),
}

/// A result that was found.
#[derive(Debug)]
pub(super) struct FoundResult {
    pub(super) attempt: u32,
    pub(super) origin: ResultOrigin,
    pub(super) result: StoredResult,
}

impl ResultIndex {
    /// Adds the results of a job that rows are collected from.
    pub(super) fn add(&mut self, job: &JobRecord, paths: &JobPaths) -> Result<(), Problem> {
        let origin = ResultOrigin {
            key: job.key.clone(),
            provider_id: job.provider_id().unwrap_or_default().to_owned(),
            round: job.round,
        };
        let number = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        match &job.stage {
            JobStage::Downloaded { .. } => {
                let path = paths.results(&job.key);
                let results = File::open(&path).map_err(|error| read_problem(&path, &error))?;
                self.jobs.push(IndexedJob { origin, results: Some(results), refused: None });
                self.read_entries(&paths.index(&job.key), number)
            }
            JobStage::Refused { reason, lost, .. } => {
                let refused = (*lost == LostResults::Fail).then(|| reason.clone());
                self.jobs.push(IndexedJob { origin, results: None, refused });
                for id in read_ids(&paths.ids(&job.key))? {
                    self.insert(id?, ResultPlace { attempt: 0, job: number, offset: 0, length: 0 });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds the requests of a job that is out. A row that waits for several jobs asks again for what is in a job already.
    pub(super) fn add_job_out(&mut self, job: &JobRecord, paths: &JobPaths) -> Result<(), Problem> {
        let number = u32::try_from(self.out.len()).unwrap_or(u32::MAX);
        self.out.push(job.key.clone());
        for id in read_ids(&paths.ids(&job.key))? {
            self.waiting.insert(id?.request as u64, number);
        }
        Ok(())
    }

    /// The job that is out and has this request.
    pub(super) fn job_out_with(&self, request: u128) -> Option<&JobKey> {
        self.out.get(*self.waiting.get(&(request as u64))? as usize)
    }

    /// Reads an index from disk.
    fn read_entries(&mut self, path: &Path, job: u32) -> Result<(), Problem> {
        let file = File::open(path).map_err(|error| read_problem(path, &error))?;
        let entries = file.metadata().map_or(0, |found| found.len() as usize / ENTRY);
        self.places.reserve(entries);
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut entry = [0; ENTRY];
        for _ in 0..entries {
            file.read_exact(&mut entry).map_err(|error| read_problem(path, &error))?;
            if let Some((id, offset, length)) = parse_entry(&entry) {
                self.insert(id, ResultPlace { attempt: 0, job, offset, length });
            }
        }
        Ok(())
    }

    /// Adds a place, unless there is one of the same or a later attempt.
    fn insert(&mut self, id: CustomId, place: ResultPlace) {
        let place = ResultPlace { attempt: id.attempt, ..place };
        let known = self.places.entry(id.request as u64).or_insert(place);
        if known.attempt < place.attempt {
            *known = place;
        }
    }

    /// The result of the latest attempt at a request.
    pub(super) fn find(&self, request: u128) -> Result<Option<FoundResult>, Problem> {
        let Some(place) = self.places.get(&(request as u64)) else { return Ok(None) };
        let Some(job) = self.jobs.get(place.job as usize) else { return Ok(None) };
        let result = match (&job.results, &job.refused) {
            (Some(results), _) if place.length > 0 => {
                let mut line = vec![0; place.length as usize];
                let read = results.read_exact_at(&mut line, place.offset);
                read.map_err(|error| read_problem(Path::new(&job.origin.key.0), &error))?;
                StoredResult::Line(line)
            }
            (None, Some(reason)) => StoredResult::Refused(reason.clone()),
            _ => StoredResult::Missing,
        };
        Ok(Some(FoundResult { attempt: place.attempt, origin: job.origin.clone(), result }))
    }
}

/// What was found in downloaded results.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultCounts {
    /// Requests with a result.
    pub(super) found: u64,
    /// Requests without one.
    pub(super) missing: u64,
    /// Lines that belong to no request of the job.
    pub(super) foreign: u64,
}

/// Writes the index of downloaded results. Whatever the order of the lines is, each belongs to the request whose id it
/// has; requests without a result are recorded as missing.
pub(super) fn write_index(
    paths: &JobPaths,
    key: &JobKey,
    api: &dyn BatchApi,
) -> Result<ResultCounts, Problem> {
    let path = paths.results(key);
    let file = File::open(&path).map_err(|error| read_problem(&path, &error))?;
    let mut lines = BufReader::with_capacity(1 << 18, file);
    let mut found: HashMap<CustomId, (u64, u32)> = HashMap::new();
    let (mut line, mut offset, mut counts) = (Vec::new(), 0, ResultCounts::default());
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(|error| read_problem(&path, &error))?;
        if read == 0 {
            break;
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            match api.read_result_id(text).as_deref().and_then(CustomId::parse) {
                // The first result of a request counts.
                Some(id) => {
                    found.entry(id).or_insert((offset, u32::try_from(read).unwrap_or(u32::MAX)));
                }
                None => counts.foreign += 1,
            }
        }
        offset += read as u64;
    }
    let index = paths.index(key);
    let opened = private_file_options().write(true).create(true).truncate(true).open(&index);
    let mut out = BufWriter::with_capacity(1 << 18, opened.map_err(|error| write_problem(&index, &error))?);
    for id in read_ids(&paths.ids(key))? {
        let id = id?;
        let place = found.remove(&id);
        counts.found += u64::from(place.is_some());
        counts.missing += u64::from(place.is_none());
        let (offset, length) = place.unwrap_or_default();
        out.write_all(&entry_of(id, offset, length)).map_err(|error| write_problem(&index, &error))?;
    }
    counts.foreign += found.len() as u64;
    let written = out.flush().and_then(|()| out.get_ref().sync_data());
    written.map_err(|error| write_problem(&index, &error))?;
    Ok(counts)
}

/// The ids of a job's requests, in the order of its file.
fn read_ids(path: &Path) -> Result<impl Iterator<Item = Result<CustomId, Problem>> + use<'_>, Problem> {
    let file = File::open(path).map_err(|error| read_problem(path, &error))?;
    let ids = BufReader::new(file).lines().filter_map(move |line| match line {
        Ok(line) => CustomId::parse(&line).map(Ok),
        Err(error) => Some(Err(read_problem(path, &error))),
    });
    Ok(ids)
}

fn entry_of(id: CustomId, offset: u64, length: u32) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    let parts = id.request.to_le_bytes().into_iter().chain(id.attempt.to_le_bytes());
    let parts = parts.chain(offset.to_le_bytes()).chain(length.to_le_bytes());
    entry.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
    entry
}

fn parse_entry(entry: &[u8; ENTRY]) -> Option<(CustomId, u64, u32)> {
    let (request, rest) = entry.split_first_chunk::<16>()?;
    let (attempt, rest) = rest.split_first_chunk::<4>()?;
    let (offset, rest) = rest.split_first_chunk::<8>()?;
    let (length, _) = rest.split_first_chunk::<4>()?;
    let id = CustomId { request: u128::from_le_bytes(*request), attempt: u32::from_le_bytes(*attempt) };
    Some((id, u64::from_le_bytes(*offset), u32::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let id = CustomId { request: u128::MAX - 5, attempt: 3 };
        assert_eq!(parse_entry(&entry_of(id, u64::MAX / 3, 77)), Some((id, u64::MAX / 3, 77)));
    }

    #[test]
    fn the_latest_attempt_at_a_request_counts_whatever_the_order_of_jobs() {
        let mut index = ResultIndex::default();
        let place = |offset| ResultPlace { attempt: 0, job: 0, offset, length: 1 };
        index.insert(CustomId { request: 9, attempt: 2 }, place(200));
        index.insert(CustomId { request: 9, attempt: 1 }, place(100));
        index.insert(CustomId { request: 9, attempt: 2 }, place(300));
        assert_eq!(index.places[&9], ResultPlace { attempt: 2, ..place(200) });
    }
}
