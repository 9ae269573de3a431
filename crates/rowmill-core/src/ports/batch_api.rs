//! The batch APIs of providers: jobs of many requests, which are answered within about a day at a lower price.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_types::{CallError, CallFailure, Completion, Request};

/// The batch API of a provider, for the requests of one model.
///
/// # Contract
///
/// * Every method makes one attempt: it never retries, waits for a job or logs. The caller decides, by
///   [`CallError::retry_class`].
/// * Dropping a future ends its call; nothing keeps running.
/// * Files are read and written in pieces: memory does not grow with the size of a job.
/// * Results are told apart by their custom ids alone; their order means nothing.
pub trait BatchApi: Send + Sync + Debug {
    /// What the provider allows, and how it behaves.
    fn rules(&self) -> &BatchRules;

    /// Appends a request to `out` as one line of a job file, including the newline.
    ///
    /// # Errors
    ///
    /// A job cannot contain this request, for example because it needs a file that must be uploaded first, or is larger
    /// than [`BatchRules::max_request_bytes`]. Nothing is appended then.
    fn write_request(&self, custom_id: &str, request: &Request, out: &mut Vec<u8>) -> Result<(), CallError>;

    /// Uploads the file of a job and returns its id at the provider; `None` if the provider takes the requests together
    /// with the job.
    fn upload<'a>(&'a self, job: &'a JobFile) -> BoxFuture<'a, Result<Option<String>, CallError>>;

    /// Creates a job; `uploaded` is what [`BatchApi::upload`] returned. The job carries its key, if the provider has a
    /// place for it. The report names the uploaded file, even if the provider does not repeat it.
    ///
    /// Creating is not idempotent: if the response is lost, the job may exist.
    fn create<'a>(
        &'a self,
        job: &'a JobFile,
        uploaded: Option<&'a str>,
    ) -> BoxFuture<'a, Result<JobReport, CallError>>;

    /// The current state of a job.
    fn report<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<JobReport, CallError>>;

    /// All jobs of the account that were created at `since` (in seconds since 1970) or later, the newest first.
    fn list(&self, since: i64) -> BoxFuture<'_, Result<Vec<JobReport>, CallError>>;

    /// Asks the provider to cancel a job. Requests that are finished keep their results.
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), CallError>>;

    /// Downloads all results of an ended job, those of failed requests included, into the file `to`, which is complete
    /// if this succeeds. A job without any results gives an empty file.
    fn download<'a>(&'a self, job: &'a JobReport, to: &'a Path) -> BoxFuture<'a, Result<(), CallError>>;

    /// Reads one line of downloaded results. Empty lines mean nothing; the caller skips them.
    ///
    /// The error of a request that the provider did not run, because its job expired or was cancelled, is transient.
    ///
    /// # Errors
    ///
    /// The line does not follow the protocol, or has no custom id.
    fn read_result(&self, line: &[u8]) -> Result<JobResult, String>;

    /// The custom id of a line of downloaded results, if it has one. Cheaper than reading the whole line, where an
    /// adapter knows how.
    fn read_result_id(&self, line: &[u8]) -> Option<String> {
        self.read_result(line).ok().map(|result| result.custom_id)
    }

    /// Deletes what the provider keeps of a job that is no longer needed, as far as that is possible. What is gone
    /// already counts as deleted.
    fn delete<'a>(&'a self, job: &'a JobReport) -> BoxFuture<'a, Result<(), CallError>>;
}

/// A job that is ready on disk: one request per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// Identifies the job among all jobs of all runs: at most 60 letters, digits and hyphens.
    pub key: String,
    /// The file.
    pub path: std::path::PathBuf,
    /// Its number of requests.
    pub requests: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What a provider allows in its batch API, and how it behaves. Every limit can be overridden by configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRules {
    /// The name of the provider.
    pub provider: String,
    /// The maximum number of requests in a job.
    pub max_requests: u64,
    /// The maximum size of a job in bytes.
    pub max_bytes: u64,
    /// The maximum size of one request in bytes.
    pub max_request_bytes: u64,
    /// The maximum number of input tokens in all unfinished jobs of the account, if it is known.
    pub max_queued_tokens: Option<u64>,
    /// The maximum number of requests in all unfinished jobs of the account, if there is one.
    pub max_queued_requests: Option<u64>,
    /// The maximum number of unfinished jobs of the account, if there is one.
    pub max_jobs: Option<u64>,
    /// How long a job may take before the provider ends it.
    pub window: Duration,
    /// How long a job may take to end once it is cancelled.
    pub cancel_time: Duration,
    /// What remains of a job that expired.
    pub expiry: ExpiredJobResultRule,
    /// Whether the provider shows the key of a job in its reports.
    pub job_key: JobKeyReporting,
}

/// What remains of a job that was not finished in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiredJobResultRule {
    /// The results of the requests that were finished.
    KeepsFinished,
    /// Nothing.
    LosesAll,
}

/// How a job can be found again if the response to its creation was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKeyReporting {
    /// By its key, which the provider reports.
    Reported,
    /// Only by the time of its creation, its number of requests and its custom ids.
    NotReported,
}

/// A job as the provider reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// Its id at the provider.
    pub id: String,
    /// Its key, if the provider reports it.
    pub key: Option<String>,
    /// Its state.
    pub state: JobState,
    /// The provider's own word for its state.
    pub provider_state: String,
    /// How many requests are in which state, if the provider reports it.
    pub counts: Option<JobCounts>,
    /// When it was created, in seconds since 1970.
    pub created_at: Option<i64>,
    /// When it expires, in seconds since 1970.
    pub expires_at: Option<i64>,
    /// The uploaded file with its requests, if there is one.
    pub input_file: Option<String>,
    /// What [`BatchApi::download`] reads: ids of files, or addresses. Files of finished and of failed requests.
    pub result_files: Vec<String>,
    /// Why the job as a whole failed.
    pub errors: Vec<JobError>,
}

/// The state of a job. A word of the provider that nobody knows counts as [`JobState::InProgress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is checked, or waits to be started.
    Validating,
    /// Its requests are worked on.
    InProgress,
    /// Its results are written.
    Finalizing,
    /// It is being cancelled.
    Cancelling,
    /// It ended, and every request has a result or an error.
    Completed,
    /// It was refused or broke off as a whole.
    Failed,
    /// It was not finished in time.
    Expired,
    /// It was cancelled.
    Cancelled,
}

impl JobState {
    /// Whether nothing about the job changes any more.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Expired | Self::Cancelled)
    }

    /// Whether it has ended, or nothing can be cancelled any more.
    #[must_use]
    pub fn is_ending(self) -> bool {
        self.has_ended() || matches!(self, Self::Finalizing | Self::Cancelling)
    }

    /// Its name, as users see it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::InProgress => "in_progress",
            Self::Finalizing => "finalizing",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How many requests of a job are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JobCounts {
    /// All of its requests.
    pub total: u64,
    /// Those with an answer.
    pub completed: u64,
    /// Those that failed, expired or were cancelled.
    pub failed: u64,
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// The provider's code.
    pub code: Option<String>,
    /// The provider's message, without secrets.
    pub message: String,
    /// The line of the job file, counted from 1.
    pub line: Option<u64>,
}

impl JobError {
    /// Whether the queue of the account has no room for the job now: it can be submitted again later.
    #[must_use]
    pub fn is_full_queue(&self) -> bool {
        self.code.as_deref() == Some("token_limit_exceeded")
    }
}

/// The result of one request of a job.
#[derive(Debug, Clone)]
pub struct JobResult {
    /// The custom id of the request.
    pub custom_id: String,
    /// The answer, as a live call would give it, or the error of the request.
    pub outcome: Result<Completion, CallError>,
}

impl JobResult {
    /// The result of a request that an ended job has no line for; the error is transient.
    #[must_use]
    pub fn missing(custom_id: impl Into<String>) -> Self {
        let what = "the job ended without a result for this request";
        Self { custom_id: custom_id.into(), outcome: Err(CallError::new(CallFailure::Server, what)) }
    }
}
