//! Answers that were truncated by the limit of their request, kept until the run ends: the request is sent again with a
//! higher limit, and a row meets the truncated answer again in every pass, though the job that it comes from is gone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use rowmill_types::{BatchAnswerOrigin, Problem, private_file_options};

use super::job_files::write_problem;

/// The truncated answers of a run, by request.
#[derive(Debug)]
pub(super) struct TruncatedAnswers {
    path: PathBuf,
    known: HashMap<u128, TruncatedAnswer>,
}

/// A truncated answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TruncatedAnswer {
    /// The job that it comes from.
    pub(super) origin: BatchAnswerOrigin,
    /// The line of the job's results.
    pub(super) line: Vec<u8>,
}

impl TruncatedAnswers {
    /// Reads the answers in the file at `path`, which need not exist. A line that was cut by a crash is skipped: its job
    /// is still there then.
    pub(super) fn read(path: PathBuf) -> Self {
        let mut known = HashMap::new();
        if let Ok(file) = File::open(&path) {
            let mut lines = BufReader::new(file);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                known.extend(parse(&line));
                line.clear();
            }
        }
        Self { path, known }
    }

    /// The truncated answer to a request. Every pass has counted it that ended in good order.
    pub(super) fn find(&self, request: u128) -> Option<&TruncatedAnswer> {
        self.known.get(&request)
    }

    /// Keeps an answer, unless it is known.
    pub(super) fn keep(&mut self, request: u128, answer: TruncatedAnswer) -> Result<(), Problem> {
        if self.known.contains_key(&request) {
            return Ok(());
        }
        let BatchAnswerOrigin { job, round, attempt, .. } = &answer.origin;
        let mut text = format!("{request:032x} {job} {round} {attempt} ").into_bytes();
        text.extend_from_slice(&answer.line);
        text.push(b'\n');
        let opened = private_file_options().append(true).create(true).open(&self.path);
        let written = opened.and_then(|mut file| file.write_all(&text));
        written.map_err(|error| write_problem(&self.path, &error))?;
        self.known.insert(request, answer);
        Ok(())
    }
}

fn parse(line: &[u8]) -> Option<(u128, TruncatedAnswer)> {
    let mut parts = line.strip_suffix(b"\n")?.splitn(5, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let request = u128::from_str_radix(text()?, 16).ok()?;
    let job = text()?.to_owned();
    let (round, attempt) = (text()?.parse().ok()?, text()?.parse().ok()?);
    let origin = BatchAnswerOrigin { job, round, attempt, is_counted: false };
    Some((request, TruncatedAnswer { origin, line: parts.next()?.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_answers_are_known_to_the_next_process_and_a_cut_line_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("truncated");
        let mut first = TruncatedAnswers::read(path.clone());
        let origin = BatchAnswerOrigin { job: "batch_1".into(), round: 2, attempt: 3, is_counted: false };
        let answer = |line: &[u8]| TruncatedAnswer { origin: origin.clone(), line: line.to_vec() };
        first.keep(5, answer(b"{\"a\": 1}")).unwrap();
        first.keep(6, answer(b"{\"b\": 2}")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, whole.get(..whole.len() - 3).unwrap()).unwrap();
        let next = TruncatedAnswers::read(path);
        assert_eq!((next.find(5), next.find(6)), (Some(&answer(b"{\"a\": 1}")), None));
    }
}
