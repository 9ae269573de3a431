//! Failures that rows have met, kept until the run ends: a row that goes on with a fallback model meets them again in
//! every pass, though the job that they come from is gone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use rowmill_types::{BatchAnswerOrigin, CallError, CallFailure, Problem, private_file_options};
use serde::{Deserialize, Serialize};

use super::job_files::write_problem;

/// The failures that a request may end with, and their names on disk.
const NAMES: [(CallFailure, &str); 11] = [
    (CallFailure::RateLimited, "rate_limited"),
    (CallFailure::QuotaExhausted, "quota_exhausted"),
    (CallFailure::Server, "server"),
    (CallFailure::Timeout, "timeout"),
    (CallFailure::Malformed, "malformed"),
    (CallFailure::Refused, "refused"),
    (CallFailure::Filtered, "filtered"),
    (CallFailure::Unauthorized, "unauthorized"),
    (CallFailure::UnknownModel, "unknown_model"),
    (CallFailure::UnknownPath, "unknown_path"),
    (CallFailure::Cancelled, "cancelled"),
];

/// The failures of a run, by request.
#[derive(Debug)]
pub(super) struct KnownFailures {
    path: PathBuf,
    file: Option<File>,
    known: HashMap<u128, CallError>,
}

#[derive(Serialize, Deserialize)]
struct FailureLine {
    request: String,
    failure: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<Box<BatchAnswerOrigin>>,
}

impl KnownFailures {
    /// Reads the failures in the file at `path`, which need not exist. A line that was cut by a crash is skipped: its
    /// failure is met again.
    pub(super) fn read(path: PathBuf) -> Self {
        let lines =
            File::open(&path).into_iter().flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
        let parsed = lines.filter_map(|line| serde_json::from_str::<FailureLine>(&line).ok());
        let known = parsed.filter_map(FailureLine::into_error).collect();
        Self { path, file: None, known }
    }

    /// The failure that a request has met.
    pub(super) fn find(&self, request: u128) -> Option<&CallError> {
        self.known.get(&request)
    }

    /// Keeps a failure.
    pub(super) fn keep(&mut self, request: u128, error: &CallError) -> Result<(), Problem> {
        let Some(line) = FailureLine::new(request, error) else { return Ok(()) };
        // Plain data is always valid JSON, so the fallback is never used.
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        if self.file.is_none() {
            let opened = private_file_options().append(true).create(true).open(&self.path);
            self.file = Some(opened.map_err(|error| write_problem(&self.path, &error))?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&text).map_err(|error| write_problem(&self.path, &error))?;
        }
        self.known.insert(request, error.clone());
        Ok(())
    }

    /// Forgets all failures: every row is tried again.
    pub(super) fn clear(&mut self) {
        self.file = None;
        self.known.clear();
        // A missing file needs no removal.
        drop(std::fs::remove_file(&self.path));
    }
}

impl FailureLine {
    fn new(request: u128, error: &CallError) -> Option<Self> {
        let (_, failure) = NAMES.iter().find(|(failure, _)| *failure == error.failure)?;
        Some(Self {
            request: format!("{request:032x}"),
            failure: (*failure).to_owned(),
            message: error.message.to_string(),
            status: error.status,
            code: error.code.clone(),
            batch: error.batch.clone(),
        })
    }

    fn into_error(self) -> Option<(u128, CallError)> {
        let (failure, _) = NAMES.iter().find(|(_, name)| **name == *self.failure)?;
        let request = u128::from_str_radix(&self.request, 16).ok()?;
        let error = CallError::new(*failure, self.message);
        let Self { status, code, batch, .. } = self;
        Some((request, CallError { status, code, batch, ..error }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_known_to_the_next_process_and_a_cut_line_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("failures.jsonl");
        let origin = BatchAnswerOrigin { job: "batch_1".into(), round: 2, attempt: 3, is_counted: false };
        let error = CallError {
            status: Some(400),
            batch: Some(Box::new(origin)),
            ..CallError::new(CallFailure::Refused, "no \"x\"")
        };
        let mut first = KnownFailures::read(path.clone());
        first.keep(5, &error).unwrap();
        first.keep(6, &error).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, whole.get(..whole.len() - 9).unwrap()).unwrap();
        let mut next = KnownFailures::read(path.clone());
        assert_eq!((next.find(5), next.find(6)), (Some(&error), None));
        next.clear();
        assert!(KnownFailures::read(path).find(5).is_none());
    }

    #[test]
    fn every_kind_of_failure_is_read_back() {
        for (failure, _) in NAMES {
            let line = FailureLine::new(1, &CallError::new(failure, "m")).unwrap();
            assert_eq!(line.into_error().unwrap().1.failure, failure);
        }
    }
}
