//! Cancels the jobs of a run.

use rowmill_core::jobs::{JobRecord, JobStage, JobStep, LostResults};
use rowmill_core::ports::BatchApi;
use rowmill_types::{CallFailure, CallFault, Problem, ProblemCode};

use super::driver::JobDriver;
use super::submission::StepResult;
use crate::control::RunNotice;

/// Why a job has no results that was never submitted.
const NEVER_SENT: &str = "it was cancelled before it was submitted";

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
                let mut job = job.clone();
                let (reason, lost) = (NEVER_SENT.to_owned(), LostResults::Retry);
                job.stage = JobStage::Refused { id: None, reason, lost };
                self.record(job).await?;
                Ok(Some(StepResult::NotNow))
            }
            JobStep::Poll { id } if !self.cancelled.contains(&job.key) => self.cancel(job, id, api).await,
            _ => Ok(None),
        }
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
        match error.fault() {
            _ if error.failure == CallFailure::Unauthorized => Err(Problem::new(
                ProblemCode::Unauthorized,
                format!("`{}` refused to cancel batch job `{id}`: {error}", job.provider),
            )),
            CallFault::Permanent | CallFault::Fatal => {
                self.cancelled.insert(job.key.clone());
                let is_over = api.report(id).await.is_ok_and(|report| report.state.is_ending());
                if !is_over {
                    self.notice(RunNotice::warning(format!(
                        "`{}` did not cancel batch job `{id}`: {error}; its results are collected when it ends",
                        job.provider
                    )));
                }
                Ok(None)
            }
            CallFault::Transient { .. } => Ok(Some(StepResult::Failed(Box::new(error)))),
            _ => Ok(Some(StepResult::Later)),
        }
    }
}
