//! What becomes of a job that the account's queue has no room for.

use rowmill_core::jobs::{JobKey, JobRecord, JobSize, JobStage, RefusedJobHandling, SubmitPause};
use rowmill_core::limits::Spend;
use rowmill_core::ports::JobReport;
use rowmill_types::{Problem, Request};
use tokio::time::Instant;

use super::driver::JobDriver;
use super::lane_state::{LaneEndpoint, LaneState};
use super::submission::QueueRefusal;
use crate::control::RunNotice;
use crate::counts::count_phrase;

/// Jobs that were created this long ago have ended, in seconds: the longest window is 48 hours.
const OLDEST_OPEN_JOB: i64 = 3 * 24 * 60 * 60;

impl JobDriver<'_> {
    /// The queue has no room for a job. If other jobs are in it, submissions wait; otherwise the job alone is larger than
    /// the queue, and its requests go into smaller jobs.
    pub(super) async fn no_room(&mut self, key: &JobKey, refusal: &QueueRefusal) -> Result<(), Problem> {
        let Some(job) = self.lane.lock().jobs.get(key).cloned() else { return Ok(()) };
        if refusal.is_about_size && self.is_alone(&job).await {
            return self.split(job, refusal).await;
        }
        let (pause, until) =
            self.full_queues.entry(job.provider.clone()).or_insert((SubmitPause::default(), Instant::now()));
        let wait = pause.record_refusal(refusal.asked);
        *until = Instant::now() + wait;
        let waiting = count_phrase(self.lane.job_counts().waiting, "job");
        self.notice(RunNotice::info(format!(
            "`{}` has no room for more jobs now: {waiting} not submitted, the next attempt is in {} s: {}",
            job.provider,
            wait.as_secs(),
            refusal.reason
        )));
        Ok(())
    }

    /// Whether no other job of the account is unfinished, as far as can be found out.
    async fn is_alone(&self, job: &JobRecord) -> bool {
        let is_other = |other: &JobRecord| {
            other.provider == job.provider && other.key != job.key && other.is_submitted()
        };
        let api = {
            let state = self.lane.lock();
            let has_others = state.jobs.jobs().iter().any(is_other);
            if has_others { None } else { state.api_for(job) }
        };
        let Some(api) = api else { return false };
        let listed = api.list(self.now() - OLDEST_OPEN_JOB).await;
        let is_open = |report: &JobReport| !report.state.has_ended();
        listed.is_ok_and(|listed| !listed.iter().any(is_open))
    }

    /// Lets the requests of a job go into jobs of half its size. One that is alone in its job has failed.
    async fn split(&mut self, mut job: JobRecord, refusal: &QueueRefusal) -> Result<(), Problem> {
        let requests = job.size.requests;
        let config = format!("providers.{}.batch.max_queued_tokens", job.provider);
        let lost = if requests > 1 { RefusedJobHandling::Split } else { RefusedJobHandling::Fail };
        let text = match lost {
            RefusedJobHandling::Split => format!(
                "a job of {} is larger than the queue of `{}` ({}): it is split. Set `{config}` in `rowmill.toml` to the \
                 limit of your account",
                count_phrase(requests, "request"),
                job.provider,
                refusal.reason
            ),
            RefusedJobHandling::Fail | RefusedJobHandling::Retry => {
                format!("a request alone is larger than the queue of `{}` ({})", job.provider, refusal.reason)
            }
        };
        self.notice(RunNotice::warning(text.clone()));
        if lost == RefusedJobHandling::Split {
            self.lane.lock().halve_jobs(&job.provider, job.size);
        }
        job.stage = JobStage::Refused { id: None, reason: text, lost };
        job.counts = None;
        self.record(job).await
    }
}

impl LaneState {
    /// What a request may cost that was not sent is free again.
    pub(super) fn release(&mut self, endpoint: &str, request: &Request) {
        if let Some(known) = self.endpoints.get(endpoint) {
            self.reserve.settle(known.plan.worst_case(request), Spend::default());
        }
    }

    /// Lets jobs of a provider be half as large as one that was too large.
    pub(super) fn halve_jobs(&mut self, provider: &str, size: JobSize) {
        let of_provider = |known: &&mut LaneEndpoint| known.plan.api.rules().provider == provider;
        let most = (size.requests / 2).max(1);
        self.most_requests.insert(provider.to_owned(), most);
        self.endpoints.values_mut().filter(of_provider).for_each(|known| known.limits.allow_at_most(most));
    }
}
