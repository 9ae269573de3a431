//! Cancels the jobs of a run.

use rowmill_core::jobs::{JobRecord, JobStage, JobStep, RefusedJobHandling};
use rowmill_core::ports::BatchApi;
use rowmill_types::{CallFailure, CallRetryClass, Problem, ProblemCode};

use super::driver::JobDriver;
use super::submission::{CLOCK_SLACK, StepResult};
use crate::control::RunNotice;

/// Why a job has no results that was never submitted.
const NEVER_SENT: &str = "it was cancelled before it was submitted";
/// Why a job has no results that was deleted at the provider.
const NOT_KNOWN: &str = "the provider does not know it any more";

impl JobDriver<'_> {
    /// Takes the next step for a job that is to be cancelled; `None` if it is the same as for any other job.
    pub(super) async fn cancel_step(
        &mut self,
        job: &JobRecord,
        step: &JobStep,
        api: &dyn BatchApi,
    ) -> Result<Option<StepResult>, Problem> {
        match step {
            JobStep::Upload | JobStep::Create { .. } => {
                self.give_up(job, None, NEVER_SENT).await?;
                Ok(Some(StepResult::NotNow))
            }
            JobStep::Poll { id } if !self.cancelled.contains(&job.key) => self.cancel(job, id, api).await,
            _ => Ok(None),
        }
    }

    /// Records that a job has no results.
    async fn give_up(
        &self,
        job: &JobRecord,
        id: Option<String>,
        reason: &str,
    ) -> Result<StepResult, Problem> {
        let stage = JobStage::Refused { id, reason: reason.to_owned(), lost: RefusedJobHandling::Retry };
        self.record(JobRecord { stage, ..job.clone() }).await?;
        Ok(StepResult::Later)
    }

    /// Asks the provider to cancel a job. One that it does not cancel ends like any other.
    async fn cancel(
        &mut self,
        job: &JobRecord,
        id: &str,
        api: &dyn BatchApi,
    ) -> Result<Option<StepResult>, Problem> {
        let Err(error) = api.cancel(id).await else {
            self.cancelled.insert(job.key.clone());
            return Ok(None);
        };
        match error.retry_class() {
            _ if error.failure == CallFailure::Unauthorized => Err(Problem::new(
                ProblemCode::Unauthorized,
                format!("`{}` refused to cancel batch job `{id}`: {error}", job.provider),
            )),
            CallRetryClass::Permanent | CallRetryClass::Fatal => {
                self.cancelled.insert(job.key.clone());
                let is_over = match api.report(id).await {
                    Ok(report) => report.state.is_ending(),
                    Err(error) if error.status == Some(404) && is_not_listed(job, id, api).await => {
                        self.notice(RunNotice::warning(format!(
                            "`{}` does not know batch job `{id}`, so it is given up; if it belongs to another account, it goes \
                             on there",
                            job.provider
                        )));
                        return self.give_up(job, Some(id.to_owned()), NOT_KNOWN).await.map(Some);
                    }
                    Err(_) => false,
                };
                if !is_over {
                    self.notice(RunNotice::warning(format!(
                        "`{}` did not cancel batch job `{id}`: {error}; its results are collected when it ends",
                        job.provider
                    )));
                }
                Ok(None)
            }
            CallRetryClass::Transient { .. } => Ok(Some(StepResult::Failed(Box::new(error)))),
            _ => Ok(Some(StepResult::Later)),
        }
    }
}

/// Whether the provider lists its jobs, and a job is not among them. What is not found where nothing is, is not gone: the
/// address may be wrong.
async fn is_not_listed(job: &JobRecord, id: &str, api: &dyn BatchApi) -> bool {
    let since = job.created_at.unwrap_or_default() - CLOCK_SLACK;
    api.list(since).await.is_ok_and(|listed| listed.iter().all(|report| report.id != id))
}
