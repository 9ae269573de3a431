use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use rowmill_core::ports::{
    BatchApi, BatchRules, ExpiredJobResultRule, JobFile, JobKeyReporting, JobReport, JobResult, JobState,
};
use rowmill_testkit::conformance::{BatchFacts, check_batch_api};
use rowmill_testkit::fake_answer;
use rowmill_types::{CallError, CallFailure, Request};
use serde_json::{Value, json};

/// What an implementation does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    WritesTwoLines,
    HidesItsKey,
    ForgetsTheFile,
    IsNotListed,
    ListsEverything,
    LosesAResult,
    MixesUpAnswers,
    LeavesAFile,
    PanicsOnCutLines,
    NeverEndsCancelled,
    FailsToDeleteAgain,
    IsFatalForOneJob,
}

/// A batch API in memory, which answers each prompt with itself.
#[derive(Debug)]
struct FakeBatches {
    fault: Fault,
    rules: BatchRules,
    jobs: Mutex<Vec<(JobReport, String)>>,
}

impl FakeBatches {
    fn new(fault: Fault) -> Self {
        let rules = BatchRules {
            provider: "fake".to_owned(),
            max_requests: 10,
            max_bytes: 10_000,
            max_request_bytes: 1_000,
            max_queued_tokens: None,
            max_queued_requests: None,
            max_jobs: None,
            window: Duration::from_secs(86_400),
            cancel_time: Duration::from_secs(600),
            expiry: ExpiredJobResultRule::KeepsFinished,
            job_key: JobKeyReporting::Reported,
        };
        Self { fault, rules, jobs: Mutex::default() }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn new_job(&self, job: &JobFile, uploaded: Option<&str>) -> JobReport {
        let mut jobs = self.jobs.lock().unwrap();
        let report = JobReport {
            id: format!("job-{}", jobs.len()),
            key: (!self.has(Fault::HidesItsKey)).then(|| job.key.clone()),
            state: JobState::Completed,
            provider_state: "completed".to_owned(),
            counts: None,
            created_at: Some(1_795_000_000),
            expires_at: None,
            input_file: uploaded.map(str::to_owned).filter(|_| !self.has(Fault::ForgetsTheFile)),
            result_files: Vec::new(),
            errors: Vec::new(),
        };
        jobs.push((report.clone(), std::fs::read_to_string(&job.path).unwrap()));
        report
    }

    fn results(&self, report: &JobReport, to: &Path) {
        let jobs = self.jobs.lock().unwrap();
        let (_, lines) = jobs.iter().find(|(known, _)| known.id == report.id).unwrap();
        let mut lines: Vec<&str> = lines.lines().collect();
        if self.has(Fault::LosesAResult) {
            lines.pop();
        }
        if self.has(Fault::LeavesAFile) {
            std::fs::write(to.with_extension("part"), "").unwrap();
        }
        std::fs::write(to, lines.join("\n")).unwrap();
    }
}

fn gone(failure: CallFailure) -> CallError {
    CallError::new(failure, "there is no such job")
}

impl BatchApi for FakeBatches {
    fn rules(&self) -> &BatchRules {
        &self.rules
    }

    fn write_request(&self, custom_id: &str, request: &Request, out: &mut Vec<u8>) -> Result<(), CallError> {
        let line = json!({"id": custom_id, "prompt": request.messages[0].text}).to_string();
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(if self.has(Fault::WritesTwoLines) { b"\n\n" } else { b"\n" });
        Ok(())
    }

    fn upload<'a>(&'a self, job: &'a JobFile) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        ready(Ok(Some(format!("file-{}", job.key)))).boxed()
    }

    fn create<'a>(
        &'a self,
        job: &'a JobFile,
        uploaded: Option<&'a str>,
    ) -> BoxFuture<'a, Result<JobReport, CallError>> {
        ready(Ok(self.new_job(job, uploaded))).boxed()
    }

    fn report<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<JobReport, CallError>> {
        let jobs = self.jobs.lock().unwrap();
        let failure =
            if self.has(Fault::IsFatalForOneJob) { CallFailure::UnknownPath } else { CallFailure::Refused };
        let found = jobs.iter().find(|(known, _)| known.id == id).map(|(known, _)| known.clone());
        ready(found.ok_or_else(|| gone(failure))).boxed()
    }

    fn list(&self, since: i64) -> BoxFuture<'_, Result<Vec<JobReport>, CallError>> {
        let jobs = self.jobs.lock().unwrap();
        let is_shown = |report: &&JobReport| {
            let is_new = report.created_at >= Some(since) || self.has(Fault::ListsEverything);
            is_new && !self.has(Fault::IsNotListed)
        };
        ready(Ok(jobs.iter().map(|(report, _)| report).filter(is_shown).cloned().collect())).boxed()
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), CallError>> {
        let state = if self.has(Fault::NeverEndsCancelled) { JobState::Expired } else { JobState::Cancelled };
        for (report, _) in self.jobs.lock().unwrap().iter_mut().filter(|(report, _)| report.id == id) {
            report.state = state;
        }
        ready(Ok(())).boxed()
    }

    fn download<'a>(&'a self, job: &'a JobReport, to: &'a Path) -> BoxFuture<'a, Result<(), CallError>> {
        self.results(job, to);
        ready(Ok(())).boxed()
    }

    fn read_result(&self, line: &[u8]) -> Result<JobResult, String> {
        let read: Value = match serde_json::from_slice(line) {
            Err(_) if self.has(Fault::PanicsOnCutLines) => panic!("cut"),
            read => read.map_err(|error| error.to_string())?,
        };
        let prompt =
            if self.has(Fault::MixesUpAnswers) { "another" } else { read["prompt"].as_str().unwrap() };
        Ok(JobResult { custom_id: read["id"].as_str().unwrap().to_owned(), outcome: Ok(fake_answer(prompt)) })
    }

    fn delete<'a>(&'a self, job: &'a JobReport) -> BoxFuture<'a, Result<(), CallError>> {
        let mut jobs = self.jobs.lock().unwrap();
        let deleted = jobs.iter_mut().find(|(known, _)| known.id == job.id && !known.id.is_empty());
        let is_gone = deleted.is_none_or(|(known, _)| std::mem::take(&mut known.id).is_empty());
        ready(if is_gone && self.has(Fault::FailsToDeleteAgain) {
            Err(gone(CallFailure::Refused))
        } else {
            Ok(())
        })
        .boxed()
    }
}

async fn deviations(fault: Fault) -> String {
    let folder = tempfile::tempdir().unwrap();
    let belongs = Box::new(|prompt: &str, answer: &str| prompt == answer);
    let facts = BatchFacts { belongs, ..BatchFacts::new(folder.path()) };
    check_batch_api(&FakeBatches::new(fault), &facts).await.join("\n")
}

#[tokio::test]
async fn a_right_batch_api_has_no_deviations() {
    assert_eq!(deviations(Fault::None).await, "");
}

#[tokio::test]
async fn every_broken_guarantee_is_found() {
    for (fault, words) in [
        (Fault::WritesTwoLines, "writing requests: a request is not one line"),
        (Fault::HidesItsKey, "its key in the list is None"),
        (Fault::ForgetsTheFile, "its report names the file None instead of"),
        (Fault::IsNotListed, "it is not in the list"),
        (Fault::ListsEverything, "jobs are listed that were created before the given time"),
        (Fault::LosesAResult, "request 5 has no result"),
        (Fault::MixesUpAnswers, "request 1 got an answer to something else"),
        (Fault::LeavesAFile, "the download left another file behind"),
        (Fault::PanicsOnCutLines, "a job: it panicked: cut"),
        (Fault::NeverEndsCancelled, "a cancelled job: it ended as"),
        (Fault::FailsToDeleteAgain, "it was not deleted for the second time"),
        (Fault::IsFatalForOneJob, "a job that does not exist: its report is not a permanent error"),
    ] {
        let found = deviations(fault).await;
        assert!(found.contains(words), "{fault:?}: {found}");
    }
}
