//! The contract of batch APIs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_core::ports::{BatchApi, JobFile, JobKeyReporting, JobReport, JobResult, JobState};
use rowmill_types::{CallRetryClass, Message, Request};

use super::check_suite::{CheckResult, CheckSuite, ensure};
use super::model::AnswerMatchFn;

/// The interval between two reports of a job.
const LOOK: Duration = Duration::from_millis(5);
/// A moment that no job is created after, in seconds since 1970: the year 2200.
const FAR_FUTURE: i64 = 7_258_118_400;

/// The facts about a batch API that only its author knows.
pub struct BatchFacts<'a> {
    /// An empty folder for job files and results.
    pub folder: &'a Path,
    /// How many requests a job has.
    pub requests: usize,
    /// Which answers, the second argument, belong to which prompts, the first.
    pub belongs: AnswerMatchFn<'a>,
    /// Lets the provider work on its jobs, if it does that only when told; called before each report.
    pub advance: Box<dyn Fn() + Send + Sync + 'a>,
}

impl<'a> BatchFacts<'a> {
    /// Facts about a provider that works on its jobs by itself, and whose answers may be anything.
    #[must_use]
    pub fn new(folder: &'a Path) -> Self {
        Self { folder, requests: 5, belongs: Box::new(|_, _| true), advance: Box::new(|| ()) }
    }
}

impl fmt::Debug for BatchFacts<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BatchFacts")
            .field("folder", &self.folder)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// Checks `api` against the contract of the port; returns every violation, nothing if it satisfies the contract.
///
/// A job is written, uploaded and created; it ends, is found in the list, and every custom id has one answer. No part of
/// its results makes reading panic. Another job is cancelled and ends. A job that does not exist is an error that makes
/// no other call pointless. Both jobs can be deleted, also a second time.
pub async fn check_batch_api(api: &dyn BatchApi, facts: &BatchFacts<'_>) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.check("writing requests", || lines(api, facts));
    suite.wait_for("a job", Box::pin(whole_job(api, facts))).await;
    suite.wait_for("a cancelled job", Box::pin(cancelled_job(api, facts))).await;
    suite.wait_for("a job that does not exist", Box::pin(unknown_job(api))).await;
    suite.deviations()
}

fn custom_id(number: usize) -> String {
    format!("r-{number}")
}

fn prompt(number: usize) -> String {
    format!("conformance: \"request\" {number}\nof a job, Grüße")
}

fn request(number: usize) -> Request {
    let messages = vec![Message::user(prompt(number))];
    Request {
        key: format!("conformance/{number}"),
        row: number as u64,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages,
    }
}

/// Each request is one line, after what was there before.
fn lines(api: &dyn BatchApi, facts: &BatchFacts<'_>) -> CheckResult {
    let mut out = b"before\n".to_vec();
    for number in 1..=facts.requests {
        let start = out.len();
        let written = api.write_request(&custom_id(number), &request(number), &mut out);
        written.map_err(|error| format!("a request was not written: {error:?}"))?;
        let line = out.get(start..).unwrap_or_default();
        let text = String::from_utf8_lossy(line);
        let breaks = text.matches('\n').count();
        ensure(breaks == 1 && text.ends_with('\n'), || format!("a request is not one line: `{text}`"))?;
        let read: Result<serde_json::Value, _> = serde_json::from_slice(line);
        ensure(read.is_ok(), || format!("a line is not JSON: `{text}`"))?;
        ensure(text.contains(&custom_id(number)), || format!("a line has no custom id: `{text}`"))?;
    }
    ensure(out.starts_with(b"before\n"), || "what was written before is gone".to_owned())
}

/// Writes a job's file, uploads it and creates the job.
async fn create(
    api: &dyn BatchApi,
    facts: &BatchFacts<'_>,
    key: &str,
) -> Result<(JobFile, JobReport), String> {
    let mut content = Vec::new();
    for number in 1..=facts.requests {
        let written = api.write_request(&custom_id(number), &request(number), &mut content);
        written.map_err(|error| format!("a request was not written: {error:?}"))?;
    }
    let path = facts.folder.join(format!("{key}.jsonl"));
    std::fs::write(&path, &content).map_err(|error| error.to_string())?;
    let (requests, bytes) = (facts.requests as u64, content.len() as u64);
    let job = JobFile { key: key.to_owned(), path, requests, bytes };
    let uploaded = api.upload(&job).await.map_err(|error| format!("it was not uploaded: {error:?}"))?;
    let created = api.create(&job, uploaded.as_deref()).await;
    let report = created.map_err(|error| format!("it was not created: {error:?}"))?;
    ensure(!report.id.is_empty(), || "it has no id".to_owned())?;
    ensure(report.input_file == uploaded, || {
        format!("its report names the file {:?} instead of {uploaded:?}", report.input_file)
    })?;
    Ok((job, report))
}

/// Waits until a job has ended.
async fn ended(api: &dyn BatchApi, facts: &BatchFacts<'_>, id: &str) -> Result<JobReport, String> {
    loop {
        (facts.advance)();
        let report = api.report(id).await.map_err(|error| format!("it has no report: {error:?}"))?;
        ensure(report.id == id, || format!("the report of `{id}` is about `{}`", report.id))?;
        if report.state.has_ended() {
            return Ok(report);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn whole_job(api: &dyn BatchApi, facts: &BatchFacts<'_>) -> CheckResult {
    let (job, created) = create(api, facts, "conformance-whole").await?;
    let report = ended(api, facts, &created.id).await?;
    ensure(report.state == JobState::Completed, || {
        format!("it ended as {}: {:?}", report.provider_state, report.errors)
    })?;
    listed(api, &job, &report).await?;
    let results = download(api, facts, &report).await?;
    for number in 1..=facts.requests {
        match results.get(&custom_id(number)).map(|result| &result.outcome) {
            Some(Ok(answer)) => ensure((facts.belongs)(&prompt(number), &answer.text), || {
                format!("request {number} got an answer to something else: `{}`", answer.text)
            })?,
            Some(Err(error)) => return Err(format!("request {number} failed: {error:?}")),
            None => return Err(format!("request {number} has no result")),
        }
    }
    ensure(results.len() == facts.requests, || format!("{} results for {}", results.len(), facts.requests))?;
    delete_twice(api, &report).await
}

/// The job is in the list since it was created, and in none that begins later.
async fn listed(api: &dyn BatchApi, job: &JobFile, report: &JobReport) -> CheckResult {
    let since = report.created_at.ok_or("it does not say when it was created")?;
    let all = api.list(since).await.map_err(|error| format!("there is no list: {error:?}"))?;
    let found = all.iter().find(|one| one.id == report.id).ok_or("it is not in the list")?;
    let shows = api.rules().job_key == JobKeyReporting::Reported;
    let expected = shows.then_some(job.key.as_str());
    ensure(found.key.as_deref() == expected, || format!("its key in the list is {:?}", found.key))?;
    let is_sorted = all.windows(2).all(|pair| match pair {
        [newer, older] => newer.created_at >= older.created_at,
        _ => true,
    });
    ensure(is_sorted, || "the list does not begin with the newest job".to_owned())?;
    let later = api.list(FAR_FUTURE).await.map_err(|error| format!("there is no list: {error:?}"))?;
    ensure(later.is_empty(), || "jobs are listed that were created before the given time".to_owned())
}

/// Downloads and reads all results, also cut ones.
async fn download(
    api: &dyn BatchApi,
    facts: &BatchFacts<'_>,
    report: &JobReport,
) -> Result<BTreeMap<String, JobResult>, String> {
    let before = names(facts.folder)?;
    let to = facts.folder.join("results.jsonl");
    api.download(report, &to).await.map_err(|error| format!("its results were not downloaded: {error:?}"))?;
    let content = std::fs::read(&to).map_err(|error| format!("its results are not in the file: {error}"))?;
    std::fs::remove_file(&to).map_err(|error| error.to_string())?;
    ensure(names(facts.folder)? == before, || "the download left another file behind".to_owned())?;
    let mut results = BTreeMap::new();
    for line in content.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let result = api.read_result(line)?;
        for end in 0..line.len() {
            drop(api.read_result(line.get(..end).unwrap_or_default()));
        }
        let id = result.custom_id.clone();
        let earlier = results.insert(id.clone(), result);
        ensure(earlier.is_none(), || format!("`{id}` has two results"))?;
    }
    Ok(results)
}

fn names(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    names.sort();
    Ok(names)
}

async fn delete_twice(api: &dyn BatchApi, report: &JobReport) -> CheckResult {
    for time in ["for the first", "for the second"] {
        let deleted = api.delete(report).await;
        deleted.map_err(|error| format!("it was not deleted {time} time: {error:?}"))?;
    }
    Ok(())
}

/// A cancelled job ends; its requests have answers, or errors after which they can be sent again.
async fn cancelled_job(api: &dyn BatchApi, facts: &BatchFacts<'_>) -> CheckResult {
    let (_, created) = create(api, facts, "conformance-cancelled").await?;
    if let Err(error) = api.cancel(&created.id).await {
        // The job may have ended before.
        ensure(error.retry_class() == CallRetryClass::Permanent, || {
            format!("it was not cancelled: {error:?}")
        })?;
    }
    let report = ended(api, facts, &created.id).await?;
    ensure(matches!(report.state, JobState::Cancelled | JobState::Completed), || {
        format!("it ended as {}", report.provider_state)
    })?;
    for (id, result) in download(api, facts, &report).await? {
        if let Err(error) = result.outcome {
            ensure(matches!(error.retry_class(), CallRetryClass::Transient { .. }), || {
                format!("`{id}` cannot be sent again: {error:?}")
            })?;
        }
    }
    delete_twice(api, &report).await
}

/// One job that is gone is no reason to stop.
async fn unknown_job(api: &dyn BatchApi) -> CheckResult {
    let Err(error) = api.report("no-such-job").await else {
        return Err("it has a report".to_owned());
    };
    ensure(error.retry_class() == CallRetryClass::Permanent, || {
        format!("its report is not a permanent error: {error:?}")
    })
}
