//! The results of finished jobs, found by the ids of their requests.
//!
//! Where each result is stays on disk, in the indexes of the jobs; in memory there are eight bytes for each request.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rowmill_core::jobs::{JobKey, JobRecord, JobStage, RefusedJobHandling};
use rowmill_types::{Problem, private_file_options};

use super::job_files::{JobPaths, read_problem, write_problem};
use super::result_files::{IndexEntry, IndexFile, write_empty_index};

/// The mark of a result that was read.
const READ: u8 = 1;

/// The results that a pass can use.
#[derive(Debug, Default)]
pub(super) struct ResultIndex {
    jobs: Vec<IndexedJob>,
    /// All entries of all jobs, sorted.
    places: Vec<EntryPlace>,
}

#[derive(Debug)]
struct IndexedJob {
    origin: ResultOrigin,
    index: IndexFile,
    /// The number of its first entry among those of all jobs.
    first_entry: u32,
    results: Option<JobResults>,
    /// Why it has no results, and what becomes of its requests.
    refused: Option<(String, RefusedJobHandling)>,
}

/// The results of a job, and which of them were read.
#[derive(Debug)]
struct JobResults {
    key: JobKey,
    path: PathBuf,
    lines: File,
    /// A byte for each entry that was read. It is on disk because a later process reads only what this one did not.
    marks: (PathBuf, File),
}

/// Which entry a request may have: the start of the request, then the number of the entry among those of all jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EntryPlace {
    start: u32,
    number: u32,
}

impl EntryPlace {
    /// The part of a request that is kept in memory. Requests are digests, so that few have the same one.
    fn start_of(request: u128) -> u32 {
        (request >> 96) as u32
    }
}

/// The job that a result comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultOrigin {
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
    /// Nothing: the request was not sent, and goes into another job.
    NotSent,
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
    /// The results of all jobs among these that rows are collected from.
    pub(super) fn open(jobs: &[JobRecord], paths: &JobPaths) -> Result<Self, Problem> {
        let mut opened: Vec<IndexedJob> = Vec::new();
        let mut entries = 0;
        for job in jobs {
            opened.extend(IndexedJob::open(job, paths, entries)?);
            entries = opened.last().map_or(0, |job| job.first_entry.saturating_add(job.index.entries));
        }
        let mut places = Vec::with_capacity(entries as usize);
        for job in &opened {
            let mut number = job.first_entry;
            job.index.read_requests(|request| {
                places.push(EntryPlace { start: EntryPlace::start_of(request), number });
                number = number.saturating_add(1);
            })?;
        }
        places.sort_unstable();
        Ok(Self { jobs: opened, places })
    }

    /// The result of the latest attempt at a request.
    pub(super) fn find(&self, request: u128) -> Result<Option<FoundResult>, Problem> {
        let start = EntryPlace::start_of(request);
        let from = self.places.partition_point(|place| place.start < start);
        let alike = self.places.get(from..).unwrap_or_default().iter();
        let mut latest: Option<(&IndexedJob, u32, IndexEntry)> = None;
        for place in alike.take_while(|place| place.start == start) {
            let after = self.jobs.partition_point(|job| job.first_entry <= place.number);
            let Some(job) = after.checked_sub(1).and_then(|at| self.jobs.get(at)) else { continue };
            let number = place.number - job.first_entry;
            let Some(entry) = job.index.entry(number)? else { continue };
            let is_latest = latest.is_none_or(|(_, _, known)| known.attempt < entry.attempt);
            if entry.request == request && is_latest {
                latest = Some((job, number, entry));
            }
        }
        let Some((job, number, entry)) = latest else { return Ok(None) };
        if let Some(results) = &job.results {
            results.mark_read(number)?;
        }
        Ok(Some(FoundResult {
            attempt: entry.attempt,
            origin: job.origin.clone(),
            result: job.result(&entry)?,
        }))
    }

    /// Visits the lines of all results that nobody has read, with the names of their jobs.
    pub(super) fn visit_unread(&self, mut visit: impl FnMut(&JobKey, &[u8])) -> Result<(), Problem> {
        for job in &self.jobs {
            let Some(results) = &job.results else { continue };
            let marks = results.read_marks()?;
            for number in 0..job.index.entries {
                if marks.get(number as usize).is_some_and(|mark| *mark == READ) {
                    continue;
                }
                let entry = job.index.entry(number)?.filter(|entry| entry.length > 0);
                if let Some(entry) = entry {
                    visit(&results.key, &results.line(&entry)?);
                }
            }
        }
        Ok(())
    }
}

impl JobResults {
    fn open(job: &JobRecord, paths: &JobPaths) -> Result<Self, Problem> {
        let path = paths.results(&job.key);
        let lines = File::open(&path).map_err(|error| read_problem(&path, &error))?;
        let marks = paths.read_marks(&job.key);
        let opened = private_file_options().read(true).write(true).create(true).truncate(false).open(&marks);
        let opened = opened.map_err(|error| write_problem(&marks, &error))?;
        Ok(Self { key: job.key.clone(), path, lines, marks: (marks, opened) })
    }

    fn mark_read(&self, number: u32) -> Result<(), Problem> {
        let (path, file) = &self.marks;
        file.write_all_at(&[READ], u64::from(number)).map_err(|error| write_problem(path, &error))
    }

    fn read_marks(&self) -> Result<Vec<u8>, Problem> {
        let (path, _) = &self.marks;
        std::fs::read(path).map_err(|error| read_problem(path, &error))
    }

    fn line(&self, entry: &IndexEntry) -> Result<Vec<u8>, Problem> {
        let mut line = vec![0; entry.length as usize];
        let read = self.lines.read_exact_at(&mut line, entry.offset);
        read.map_err(|error| read_problem(&self.path, &error))?;
        Ok(line)
    }
}

impl IndexedJob {
    /// Opens the results of a job; `None` if rows are not collected from it.
    fn open(job: &JobRecord, paths: &JobPaths, first_entry: u32) -> Result<Option<Self>, Problem> {
        let (results, refused) = match &job.stage {
            JobStage::Downloaded { .. } => (Some(JobResults::open(job, paths)?), None),
            JobStage::Refused { reason, lost, .. } => {
                write_empty_index(paths, &job.key)?;
                (None, Some((reason.clone(), *lost)))
            }
            _ => return Ok(None),
        };
        let origin =
            ResultOrigin { provider_id: job.provider_id().unwrap_or_default().to_owned(), round: job.round };
        let index = IndexFile::open(paths.index(&job.key))?;
        Ok(Some(Self { origin, index, first_entry, results, refused }))
    }

    fn result(&self, entry: &IndexEntry) -> Result<StoredResult, Problem> {
        match (&self.results, &self.refused) {
            (Some(results), _) if entry.length > 0 => Ok(StoredResult::Line(results.line(entry)?)),
            (None, Some((reason, RefusedJobHandling::Fail))) => Ok(StoredResult::Refused(reason.clone())),
            (None, Some((_, RefusedJobHandling::Split))) => Ok(StoredResult::NotSent),
            _ => Ok(StoredResult::Missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rowmill_core::jobs::JobSize;
    use rowmill_core::limits::Spend;
    use rowmill_core::ports::JobState;

    use super::*;
    use crate::lane::custom_id::CustomId;

    /// Requests whose digests start alike, so that only their entries tell them apart.
    const ALIKE: u128 = 9 << 96;

    fn job(name: &str, stage: JobStage) -> JobRecord {
        JobRecord {
            key: JobKey(name.into()),
            endpoint: "e".into(),
            model: "m".into(),
            provider: "p".into(),
            round: 1,
            size: JobSize::default(),
            worst_case: Spend::default(),
            price: None,
            stage,
            submitted_at: None,
            created_at: None,
            expires_at: None,
            counts: None,
        }
    }

    /// A job whose results are on disk, with the line `request-attempt` for each id.
    fn downloaded(paths: &JobPaths, name: &str, ids: &[(u128, u32)]) -> JobRecord {
        let stage = JobStage::Downloaded { id: name.into(), state: JobState::Completed };
        let job = job(name, stage);
        let (mut results, mut index) = (String::new(), Vec::new());
        for (request, attempt) in ids.iter().copied() {
            let line = format!("{}-{attempt}\n", request % 1_000);
            let (length, offset) = (line.len() as u32, results.len() as u64);
            index.extend(IndexEntry { request, attempt, length, offset }.to_bytes());
            results.push_str(&line);
        }
        fs::write(paths.results(&job.key), results).unwrap();
        fs::write(paths.index(&job.key), index).unwrap();
        job
    }

    fn line(index: &ResultIndex, request: u128) -> Option<String> {
        match index.find(request).unwrap()?.result {
            StoredResult::Line(line) => Some(String::from_utf8(line).unwrap()),
            StoredResult::Missing => Some("missing".into()),
            StoredResult::NotSent => Some("not sent".into()),
            StoredResult::Refused(reason) => Some(reason),
        }
    }

    fn folder() -> (tempfile::TempDir, JobPaths) {
        let folder = tempfile::tempdir().unwrap();
        let paths = JobPaths::in_work_folder(folder.path());
        fs::create_dir_all(paths.folder()).unwrap();
        (folder, paths)
    }

    #[test]
    fn the_latest_attempt_at_a_request_counts_whatever_the_order_of_jobs() {
        let (_folder, paths) = folder();
        let jobs = [
            downloaded(&paths, "second", &[(ALIKE + 1, 2), (ALIKE + 2, 1)]),
            downloaded(&paths, "empty", &[]),
            downloaded(&paths, "first", &[(5, 1), (ALIKE + 1, 1)]),
            downloaded(&paths, "third", &[(5, 3)]),
        ];
        let index = ResultIndex::open(&jobs, &paths).unwrap();
        let known = [5, ALIKE + 1, ALIKE + 2].map(|request| line(&index, request));
        assert_eq!(known, ["5-3\n", "25-2\n", "26-1\n"].map(|line| Some(line.to_owned())));
        assert_eq!([6, ALIKE, ALIKE + 3].map(|request| line(&index, request)), [None, None, None]);
    }

    #[test]
    fn a_request_of_a_refused_job_has_the_reason_or_nothing() {
        let (_folder, paths) = folder();
        let refused = |name, lost| job(name, JobStage::Refused { id: None, reason: "no".into(), lost });
        let jobs = [
            refused("failed", RefusedJobHandling::Fail),
            refused("cancelled", RefusedJobHandling::Retry),
            refused("split", RefusedJobHandling::Split),
        ];
        for (job, request) in jobs.iter().zip(1..) {
            fs::write(paths.ids(&job.key), format!("{}\n", CustomId { request, attempt: 1 })).unwrap();
        }
        let index = ResultIndex::open(&jobs, &paths).unwrap();
        let found = [1, 2, 3, 4].map(|request| line(&index, request));
        assert_eq!(found, [Some("no".into()), Some("missing".into()), Some("not sent".into()), None]);
    }
}
