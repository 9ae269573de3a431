//! Asks the provider what has become of the jobs of a run, without working on it.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rowmill_core::ports::BatchApi;
use rowmill_models::{BatchLimitOverrides, build_batch_api};
use rowmill_types::{CallError, CallFailure, CallRetryClass, Money, Problem, ProblemCode};
use serde::Serialize;

use super::job_info::{BatchJobInfo, BatchJobProgress, overall_batch_state};
use super::known_run::KnownBatchRun;
use super::registry::KnownBatchRuns;
use crate::control::RunControl;
use crate::endpoints::{ModelRequest, known_providers, model_setup};
use crate::spec::RunSpec;

/// The maximum number of jobs that are asked for at once.
const AT_ONCE: usize = 8;

/// What a provider reports of the jobs of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRunStatus {
    /// The id of the run.
    pub run: String,
    /// The one state that describes all of its jobs.
    pub state: String,
    /// The number of jobs that have not ended.
    pub jobs_out: u64,
    /// Requests in jobs whose rows have not been worked on.
    pub requests: u64,
    /// Those of them with an answer, as the provider reports it.
    pub completed: u64,
    /// Those of them that failed, expired or were cancelled, as the provider reports it.
    pub failed: u64,
    /// When the oldest of these jobs was created, in seconds since 1970.
    pub oldest: Option<i64>,
    /// When the first of these jobs expires, in seconds since 1970.
    pub first_expiry: Option<i64>,
    /// What these jobs may still cost.
    pub reserved_usd: Money,
    /// What the run has spent.
    pub spent_usd: Money,
    /// All jobs of the run.
    pub jobs: Vec<BatchJobInfo>,
}

impl BatchRunStatus {
    /// The status of one job alone; unchanged if `id` is not that of a job.
    #[must_use]
    pub fn restrict_to_job(self, id: &str) -> Self {
        let Some(job) = self.jobs.iter().find(|job| job.id.as_deref() == Some(id)).cloned() else {
            return self;
        };
        let (run, spent) = (self.run, self.spent_usd);
        status_of((run, spent), vec![job])
    }
}

/// Asks the provider for the state of the jobs of a run, and remembers it. The run is not changed, and another process may work on the run at
/// the same time.
///
/// # Errors
///
/// The provider cannot be asked, or does not know a job.
pub async fn batch_run_status(
    known: &KnownBatchRun,
    control: &RunControl,
) -> Result<BatchRunStatus, Problem> {
    let mut known = known.clone();
    known.refresh();
    let jobs = std::mem::take(&mut known.jobs);
    let is_asked = |job: &BatchJobInfo| job.progress == BatchJobProgress::Submitted && job.is_unfinished();
    let mut providers = JobProviders::default();
    let mut asked = Vec::new();
    for job in jobs {
        let api = if is_asked(&job) { Some(providers.api_for(&job, &known, control)?) } else { None };
        asked.push(ask(job, api));
    }
    let jobs: Vec<BatchJobInfo> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    remember_seen(&known.run, &jobs, control);
    Ok(status_of((known.run, known.spent_usd), jobs))
}

/// Remembers what was seen, so that the list of runs shows it, too. A process that works on the run knows more of the jobs
/// that it has gone on with, so these stay as they are.
fn remember_seen(run: &str, seen: &[BatchJobInfo], control: &RunControl) {
    let Some(runs) = KnownBatchRuns::of_user(&control.environment) else { return };
    let Some(before) = runs.read(run) else { return };
    let mut known = before.clone();
    let is_waited_for = |job: &&mut BatchJobInfo| job.progress == BatchJobProgress::Submitted;
    for job in known.jobs.iter_mut().filter(is_waited_for) {
        if let Some(now) = seen.iter().find(|now| now.id == job.id && now.progress == job.progress) {
            job.clone_from(now);
        }
    }
    if known != before {
        // What cannot be written now only looks older than it is.
        drop(runs.store(&known));
    }
}

async fn ask(mut job: BatchJobInfo, api: Option<Arc<dyn BatchApi>>) -> Result<BatchJobInfo, Problem> {
    if let (Some(api), Some(id)) = (api, job.id.clone()) {
        let report = api.report(&id).await.map_err(|error| refused(&job, &id, &error))?;
        job.update(&report);
    }
    Ok(job)
}

fn refused(job: &BatchJobInfo, id: &str, error: &CallError) -> Problem {
    let provider = &job.provider;
    match error.failure {
        CallFailure::Unauthorized => {
            Problem::new(ProblemCode::Unauthorized, format!("`{provider}` rejected the key: {error}"))
        }
        _ if error.status == Some(404) => {
            let message = format!("`{provider}` does not know batch job `{id}`: {error}");
            Problem::new(ProblemCode::BatchRefused, message).hint(
                "it was submitted with the key of another account, or the provider has deleted it; set the key that \
                 it was submitted with",
            )
        }
        _ if matches!(error.retry_class(), CallRetryClass::Permanent | CallRetryClass::Fatal) => {
            let message = format!("`{provider}` refused to look up batch job `{id}`: {error}");
            Problem::new(ProblemCode::BatchRefused, message)
        }
        _ => {
            let message = format!("cannot ask `{provider}` for batch job `{id}`: {error}");
            Problem::new(ProblemCode::ProviderDown, message).hint("ask again later; the job goes on")
        }
    }
}

/// The batch APIs of the models of a run.
#[derive(Default)]
struct JobProviders {
    spec: Option<RunSpec>,
    apis: HashMap<String, Arc<dyn BatchApi>>,
}

impl JobProviders {
    fn api_for(
        &mut self,
        job: &BatchJobInfo,
        known: &KnownBatchRun,
        control: &RunControl,
    ) -> Result<Arc<dyn BatchApi>, Problem> {
        if let Some(api) = self.apis.get(&job.model) {
            return Ok(Arc::clone(api));
        }
        if self.spec.is_none() {
            self.spec = Some(known.spec()?);
        }
        let spec = self.spec.as_ref().map(|spec| &spec.work);
        let registry = spec.map(known_providers).transpose()?.unwrap_or_default();
        let environment = |name: &str| control.environment.provider_variable(name);
        let setup = model_setup(&job.model, &registry, &ModelRequest::default(), control, &environment)?;
        let mut http = control.environment.http_client();
        if let Some(spec) = spec {
            http = http.with_timeouts(spec.timeouts);
        }
        let api = build_batch_api(&setup, &BatchLimitOverrides::default(), &http)?;
        self.apis.insert(job.model.clone(), Arc::clone(&api));
        Ok(api)
    }
}

fn status_of((run, spent_usd): (String, Money), jobs: Vec<BatchJobInfo>) -> BatchRunStatus {
    let open = || jobs.iter().filter(|job| job.progress != BatchJobProgress::Collected);
    // Once all rows have been worked on, the last round is what there is to show.
    let shown: Vec<&BatchJobInfo> =
        if open().next().is_some() { open().collect() } else { jobs.iter().collect() };
    let sum = |count: fn(&BatchJobInfo) -> u64| shown.iter().map(|job| count(job)).sum();
    BatchRunStatus {
        run,
        state: overall_batch_state(&jobs).to_owned(),
        jobs_out: jobs.iter().filter(|job| job.is_unfinished()).count() as u64,
        requests: sum(|job| job.requests),
        completed: sum(|job| job.completed),
        failed: sum(|job| job.failed),
        oldest: shown.iter().filter_map(|job| job.created_at).min(),
        first_expiry: shown.iter().filter(|job| job.is_unfinished()).filter_map(|job| job.expires_at).min(),
        reserved_usd: jobs.iter().map(BatchJobInfo::reserved_cost).sum(),
        spent_usd,
        jobs,
    }
}
