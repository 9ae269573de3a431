//! One job, brought one step further at its provider.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::jobs::{JobRecord, JobStage, RefusedJobHandling};
use rowmill_core::ports::{BatchApi, JobError, JobFile, JobKeyReporting, JobReport, JobState};
use rowmill_types::{CallError, CallFailure, CallRetryClass, Problem, ProblemCode, group_digits};

use super::driver::JobDriver;
use super::result_files::{ResultCounts, ResultLook, write_index};
use crate::control::RunNotice;
use crate::counts::count_phrase;
use crate::run::run_on_thread;

/// Clocks differ: a job that was created this much before its request was sent may be the one.
pub(super) const CLOCK_SLACK: i64 = 300;
/// The same where a job has a key, so that no other can be taken for it.
const CLOCK_SLACK_OF_KEYS: i64 = 24 * 60 * 60;
/// The maximum number of reasons that a message lists.
const SHOWN_REASONS: usize = 3;

/// What becomes of a job after a step.
#[derive(Debug, PartialEq)]
pub(super) enum StepResult {
    /// The next step can follow at once.
    GoOn,
    /// The provider has answered; the next step follows later.
    Later,
    /// Nothing was asked of the provider, or its answer means nothing; the next step follows later.
    NotNow,
    /// The provider does not answer for now.
    Failed(Box<CallError>),
    /// The account's queue has no room for the job.
    QueueFull(QueueRefusal),
}

/// Why a job was not accepted for now.
#[derive(Debug, PartialEq)]
pub(super) struct QueueRefusal {
    /// The provider's words.
    pub(super) reason: String,
    /// The wait that the provider asked for.
    pub(super) asked: Option<Duration>,
    /// Whether it is the size of the job that has no room, and not the account that has no quota left.
    pub(super) is_about_size: bool,
}

impl QueueRefusal {
    fn of(error: &CallError, is_about_size: bool) -> StepResult {
        let asked = match error.retry_class() {
            CallRetryClass::Throttled { after } | CallRetryClass::Exhausted { after } => after,
            _ => None,
        };
        StepResult::QueueFull(Self { reason: error.to_string(), asked, is_about_size })
    }
}

impl JobDriver<'_> {
    /// Uploads the file of a job.
    pub(super) async fn upload(&self, mut job: JobRecord, api: &dyn BatchApi) -> Result<StepResult, Problem> {
        match api.upload(&self.job_file(&job)).await {
            Ok(file) => {
                job.stage = JobStage::Uploaded { file };
                self.record(job).await?;
                Ok(StepResult::GoOn)
            }
            Err(error) => self.refused_or_later(&job, &error, "upload the requests of"),
        }
    }

    /// Creates a job. That it is being created is recorded first, because the response may be lost.
    pub(super) async fn create(
        &self,
        mut job: JobRecord,
        file: Option<String>,
        api: &dyn BatchApi,
    ) -> Result<StepResult, Problem> {
        let since = self.now();
        job.stage = JobStage::Creating { file: file.clone(), since };
        self.record(job.clone()).await?;
        match api.create(&self.job_file(&job), file.as_deref()).await {
            Ok(report) => self.submitted(job, report).await,
            Err(error) if is_ambiguous(&error) => {
                // The job may exist; the next step looks for it.
                self.notice(RunNotice::info(format!(
                    "whether the provider created a batch job is not known ({error}); looking for it"
                )));
                Ok(StepResult::NotNow)
            }
            Err(error) => {
                job.stage = JobStage::Uploaded { file };
                self.record(job.clone()).await?;
                match error.retry_class() {
                    CallRetryClass::Throttled { .. } => Ok(QueueRefusal::of(&error, true)),
                    CallRetryClass::Exhausted { .. } => Ok(QueueRefusal::of(&error, false)),
                    _ => self.refused_or_later(&job, &error, "create"),
                }
            }
        }
    }

    /// Finds out whether a job was created, by its key, or by its time and its number of requests.
    pub(super) async fn find(
        &mut self,
        mut job: JobRecord,
        (file, since): (Option<String>, i64),
        api: &dyn BatchApi,
    ) -> Result<StepResult, Problem> {
        let slack = match api.rules().job_key {
            JobKeyReporting::Reported => CLOCK_SLACK_OF_KEYS,
            JobKeyReporting::NotReported => CLOCK_SLACK,
        };
        let listed = match api.list(since - slack).await {
            Ok(listed) => listed,
            Err(error) => return self.refused_or_later(&job, &error, "look for"),
        };
        let found = match api.rules().job_key {
            JobKeyReporting::Reported => {
                listed.into_iter().find(|report| report.key.as_deref() == Some(&job.key.0))
            }
            JobKeyReporting::NotReported => {
                let known = self.lane.known_provider_ids().await?;
                let is_like = |report: &JobReport| {
                    let uploaded = file.is_none() || report.input_file == file;
                    let counts = report.counts.filter(|counts| counts.total > 0);
                    uploaded && counts.is_none_or(|counts| counts.total == job.size.requests)
                };
                // The list begins with the newest job; ours is the oldest that nobody knows.
                listed.into_iter().rev().find(|report| !known.contains(&report.id) && is_like(report))
            }
        };
        match found {
            Some(report) => {
                match self.submitted(job, report).await? {
                    // One that is to be cancelled is cancelled at once.
                    StepResult::Later => Ok(StepResult::GoOn),
                    result => Ok(result),
                }
            }
            None if self.was_looked_for_long_enough(&job, since) => {
                job.stage = JobStage::Uploaded { file };
                self.record(job).await?;
                Ok(StepResult::GoOn)
            }
            None => Ok(StepResult::Later),
        }
    }

    async fn submitted(&self, mut job: JobRecord, report: JobReport) -> Result<StepResult, Problem> {
        // One that was looked for was submitted earlier.
        let since = if let JobStage::Creating { since, .. } = &job.stage { *since } else { self.now() };
        job.submitted_at = Some(since);
        let (requests, id) = (count_phrase(job.size.requests, "request"), report.id.clone());
        update(&mut job, report.clone());
        self.record(job.clone()).await?;
        self.notice(RunNotice::info(format!("submitted batch job `{id}` with {requests}")));
        // Some providers check a job before they answer.
        if is_refused(&report) { self.failed(job, &report).await } else { Ok(StepResult::Later) }
    }

    /// Asks for the state of a job.
    pub(super) async fn poll(&self, mut job: JobRecord, api: &dyn BatchApi) -> Result<StepResult, Problem> {
        let id = job.provider_id().unwrap_or_default().to_owned();
        let report = match api.report(&id).await {
            Ok(report) => report,
            Err(error) => return self.refused_or_later(&job, &error, "look up"),
        };
        if is_refused(&report) {
            return self.failed(job, &report).await;
        }
        let was = job.clone();
        let has_ended = report.state.has_ended();
        update(&mut job, report);
        if job != was {
            self.record(job).await?;
        }
        Ok(if has_ended { StepResult::GoOn } else { StepResult::Later })
    }

    /// The provider has refused a job as a whole.
    async fn failed(&self, mut job: JobRecord, report: &JobReport) -> Result<StepResult, Problem> {
        let full = report.errors.iter().find(|error| error.is_full_queue());
        if let Some(JobError { message: reason, .. }) = full.cloned() {
            // Nothing was run: the file is still there, and the job can be created again.
            job.stage = JobStage::Uploaded { file: report.input_file.clone() };
            job.counts = None;
            self.record(job).await?;
            return Ok(StepResult::QueueFull(QueueRefusal { reason, asked: None, is_about_size: true }));
        }
        let reason = refusal_reason(report);
        self.notice(RunNotice::warning(format!("the provider refused batch job `{}`: {reason}", report.id)));
        job.stage = JobStage::Refused { id: Some(report.id.clone()), reason, lost: RefusedJobHandling::Fail };
        self.record(job).await?;
        Ok(StepResult::Later)
    }

    /// Downloads the results of a job that has ended.
    pub(super) async fn download(
        &self,
        mut job: JobRecord,
        api: &Arc<dyn BatchApi>,
    ) -> Result<StepResult, Problem> {
        let id = job.provider_id().unwrap_or_default().to_owned();
        let report = match api.report(&id).await {
            Ok(report) => report,
            Err(error) => return self.refused_or_later(&job, &error, "look up"),
        };
        // A provider may refuse a job as soon as it is created, so that it was never looked at before.
        if is_refused(&report) {
            return self.failed(job, &report).await;
        }
        if let Err(error) = api.download(&report, &self.lane.paths.results(&job.key)).await {
            return self.refused_or_later(&job, &error, "download the results of");
        }
        let (paths, key, api) = (self.lane.paths.clone(), job.key.clone(), Arc::clone(api));
        let is_good = report.state == JobState::Completed && report.counts.is_some_and(|it| it.failed == 0);
        let look = if is_good { ResultLook::Ids } else { ResultLook::Outcomes };
        let counts = run_on_thread(move || write_index(&paths, &key, &*api, look)).await?;
        self.notify_results(&job, &report, counts);
        let state = report.state;
        update(&mut job, report);
        job.stage = JobStage::Downloaded { id, state };
        self.record(job).await?;
        Ok(StepResult::Later)
    }

    fn notify_results(&self, job: &JobRecord, report: &JobReport, counts: ResultCounts) {
        let ResultCounts { answered, failed, missing, foreign } = counts;
        let mut text = format!(
            "batch job `{}` {}: {} of {} answered",
            report.id,
            report.state.name(),
            group_digits(answered),
            count_phrase(job.size.requests, "request")
        );
        if failed > 0 {
            text.push_str(&format!(", {} failed", group_digits(failed)));
        }
        if missing > 0 {
            text.push_str(&format!(", {} without an answer", group_digits(missing)));
        }
        if foreign > 0 {
            text.push_str(&format!("; {} of no known request ignored", count_phrase(foreign, "line")));
        }
        let is_whole = failed == 0 && missing == 0 && foreign == 0;
        self.notice(if is_whole { RunNotice::info(text) } else { RunNotice::warning(text) });
    }

    /// A failure that may pass is tried again later; any other one stops the command, and the jobs stay as they are.
    fn refused_or_later(
        &self,
        job: &JobRecord,
        error: &CallError,
        what: &str,
    ) -> Result<StepResult, Problem> {
        match error.retry_class() {
            CallRetryClass::Permanent | CallRetryClass::Fatal => {
                let code = match error.failure {
                    CallFailure::Unauthorized => ProblemCode::Unauthorized,
                    _ => ProblemCode::BatchRefused,
                };
                let name =
                    job.provider_id().map_or("a batch job".to_owned(), |id| format!("batch job `{id}`"));
                let message = format!("`{}` refused to {what} {name}: {error}", job.provider);
                Err(Problem::new(code, message))
            }
            CallRetryClass::Throttled { .. } | CallRetryClass::Exhausted { .. } if !job.is_submitted() => {
                Ok(QueueRefusal::of(error, false))
            }
            CallRetryClass::Throttled { .. } | CallRetryClass::Exhausted { .. } => Ok(StepResult::Later),
            CallRetryClass::Transient { .. } | CallRetryClass::LocalShortage => {
                Ok(StepResult::Failed(Box::new(error.clone())))
            }
        }
    }

    fn job_file(&self, job: &JobRecord) -> JobFile {
        JobFile {
            key: job.key.0.clone(),
            path: self.lane.paths.requests(&job.key),
            requests: job.size.requests,
            bytes: job.size.bytes,
        }
    }
}

/// Whether the provider has refused a job as a whole: none of its requests was run.
fn is_refused(report: &JobReport) -> bool {
    report.state == JobState::Failed && report.result_files.is_empty()
}

/// Why a job as a whole failed, in the provider's words.
pub(crate) fn refusal_reason(report: &JobReport) -> String {
    let reasons: Vec<String> = report
        .errors
        .iter()
        .take(SHOWN_REASONS)
        .map(|error| {
            let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let code = error.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            format!("{line}{}{code}", error.message)
        })
        .collect();
    if reasons.is_empty() { "no reason was given".to_owned() } else { reasons.join("; ") }
}

/// Whether the job may have been created although there was no good response.
fn is_ambiguous(error: &CallError) -> bool {
    error.failure.may_be_billed() || error.failure == CallFailure::Server
}

/// Takes over what the provider reports of a job.
fn update(job: &mut JobRecord, report: JobReport) {
    job.created_at = report.created_at.or(job.created_at);
    job.expires_at = report.expires_at.or(job.expires_at);
    job.counts = report.counts.or(job.counts);
    job.stage = JobStage::Submitted { id: report.id, state: report.state };
}
