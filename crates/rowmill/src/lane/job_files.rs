//! Job files on disk: requests are appended as rows are read.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rowmill_core::jobs::{JobKey, JobSize};
use rowmill_core::limits::Spend;
use rowmill_types::settings::RESUME;
use rowmill_types::{Problem, ProblemCode, private_file_options};

use super::custom_id::CustomId;

/// A buffer this large makes writes of requests cheap.
const BUFFER: usize = 256 * 1024;

/// The problem that a file of the lane cannot be written.
pub(super) fn write_problem(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", path.display()))
        .cause(error)
        .hint(format!("make room or check the permissions, and continue with {RESUME}"))
}

/// The problem that a file of the lane cannot be read.
pub(super) fn read_problem(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::LedgerUnusable, format!("cannot read `{}`", path.display())).cause(error)
}

/// Where the files of a job are.
#[derive(Debug, Clone)]
pub(super) struct JobPaths {
    folder: PathBuf,
}

impl JobPaths {
    /// The files of the jobs of a run with this work folder.
    pub(super) fn in_work_folder(work_folder: &Path) -> Self {
        Self { folder: work_folder.join("jobs") }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The requests of a job.
    pub(super) fn requests(&self, key: &JobKey) -> PathBuf {
        self.folder.join(format!("{}.requests.jsonl", key.0))
    }

    /// The ids of its requests, one per line, in the same order.
    pub(super) fn ids(&self, key: &JobKey) -> PathBuf {
        self.folder.join(format!("{}.ids", key.0))
    }

    /// Its results.
    pub(super) fn results(&self, key: &JobKey) -> PathBuf {
        self.folder.join(format!("{}.results.jsonl", key.0))
    }

    /// Where in its results each of its requests is.
    pub(super) fn index(&self, key: &JobKey) -> PathBuf {
        self.folder.join(format!("{}.index", key.0))
    }

    /// Which of its results were read.
    pub(super) fn read_marks(&self, key: &JobKey) -> PathBuf {
        self.folder.join(format!("{}.read", key.0))
    }

    /// The failures that rows have met.
    pub(super) fn failures(&self) -> PathBuf {
        self.folder.join("failures.jsonl")
    }

    /// The truncated answers that rows have met.
    pub(super) fn truncated(&self) -> PathBuf {
        self.folder.join("truncated.txt")
    }

    /// Removes the files of a job that is no longer needed.
    pub(super) fn remove(&self, key: &JobKey) {
        let results = [self.results(key), self.index(key), self.read_marks(key)];
        for path in [self.requests(key), self.ids(key)].into_iter().chain(results) {
            // A missing file needs no removal, and a leftover does no harm.
            drop(fs::remove_file(path));
        }
    }

    /// Removes all files of jobs that `is_known` does not name: a process was ended before it recorded them.
    pub(super) fn remove_unknown(&self, is_known: impl Fn(&str) -> bool) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.split_once('.')).map(|(key, _)| key);
            if key.is_some_and(|key| !["failures", "truncated"].contains(&key) && !is_known(key)) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Removes everything, and the folder if nothing else is in it.
    pub(super) fn remove_all(&self) {
        self.remove_unknown(|_| false);
        drop(fs::remove_file(self.failures()));
        drop(fs::remove_file(self.truncated()));
        drop(fs::remove_dir(&self.folder));
    }
}

/// A job file that requests are still added to.
#[derive(Debug)]
pub(super) struct OpenJob {
    pub(super) key: JobKey,
    pub(super) size: JobSize,
    pub(super) worst_case: Spend,
    requests: (PathBuf, BufWriter<File>),
    ids: (PathBuf, BufWriter<File>),
}

impl OpenJob {
    /// Creates the files of a job.
    pub(super) fn create(paths: &JobPaths, key: JobKey) -> Result<Self, Problem> {
        let open = |path: PathBuf, buffer| {
            let opened = private_file_options().write(true).create(true).truncate(true).open(&path);
            let file = opened.map_err(|error| write_problem(&path, &error))?;
            Ok::<_, Problem>((path, BufWriter::with_capacity(buffer, file)))
        };
        let requests = open(paths.requests(&key), BUFFER)?;
        let ids = open(paths.ids(&key), BUFFER / 16)?;
        Ok(Self { size: JobSize::default(), worst_case: Spend::default(), requests, ids, key })
    }

    /// Adds a request, which is one line.
    pub(super) fn add(
        &mut self,
        id: CustomId,
        line: &[u8],
        size: JobSize,
        worst: Spend,
    ) -> Result<(), Problem> {
        let (path, file) = &mut self.requests;
        file.write_all(line).map_err(|error| write_problem(path, &error))?;
        let (path, file) = &mut self.ids;
        writeln!(file, "{id}").map_err(|error| write_problem(path, &error))?;
        self.size = self.size.plus(size);
        self.worst_case = self.worst_case.plus(worst);
        Ok(())
    }

    /// Completes the files: they are on disk when this returns.
    pub(super) fn complete(mut self) -> Result<(JobKey, JobSize, Spend), Problem> {
        for (path, file) in [&mut self.requests, &mut self.ids] {
            let written = file.flush().and_then(|()| file.get_ref().sync_data());
            written.map_err(|error| write_problem(path, &error))?;
        }
        Ok((self.key, self.size, self.worst_case))
    }
}
