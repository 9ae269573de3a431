//! One job of a run in the batch lane, as users see it.

use rowmill_core::jobs::{JobRecord, JobStage};
use rowmill_core::ports::{JobReport, JobState};
use rowmill_types::Money;
use serde::{Deserialize, Serialize};

use crate::lane::refusal_reason;

/// The state of a job that waits to be submitted.
const WAITING: &str = "waiting";

/// One job of a run in the batch lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchJobInfo {
    /// The provider's id, once there is one.
    pub id: Option<String>,
    /// Its state: `waiting`, `submitting`, `validating`, `in_progress`, `finalizing`, `cancelling`, `completed`,
    /// `failed`, `expired` or `cancelled`.
    pub state: String,
    /// How far rowmill has come with it.
    pub progress: BatchJobProgress,
    /// The provider.
    pub provider: String,
    /// The model string.
    pub model: String,
    /// The pass over the input in which it was made, counted from 1.
    pub round: u32,
    /// The number of its requests.
    pub requests: u64,
    /// Requests with an answer, as the provider reported them.
    pub completed: u64,
    /// Requests that failed, expired or were cancelled, as the provider reported them.
    pub failed: u64,
    /// When it was submitted, by the clock of this machine, in seconds since 1970.
    pub created_at: Option<i64>,
    /// When the provider ends it at the latest, by the clock of this machine, in seconds since 1970.
    pub expires_at: Option<i64>,
    /// The maximum cost of its requests.
    pub worst_case_usd: Money,
    /// Why the provider has refused it, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far rowmill has come with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchJobProgress {
    /// The provider does not have it yet, as far as is known.
    Unsubmitted,
    /// The provider has it, and its results have not been fetched.
    Submitted,
    /// Its results are on disk.
    Downloaded,
    /// Its rows have been worked on.
    Collected,
}

impl BatchJobInfo {
    /// What a ledger says of a job.
    pub(crate) fn of(job: &JobRecord) -> Self {
        let progress = match &job.stage {
            JobStage::Written | JobStage::Uploaded { .. } | JobStage::Creating { .. } => {
                BatchJobProgress::Unsubmitted
            }
            JobStage::Submitted { .. } => BatchJobProgress::Submitted,
            JobStage::Downloaded { .. } | JobStage::Refused { .. } => BatchJobProgress::Downloaded,
            JobStage::Collected { .. } | JobStage::Abandoned { .. } => BatchJobProgress::Collected,
        };
        let counts = job.counts.unwrap_or_default();
        let (created_at, expires_at) = job.times();
        Self {
            id: job.provider_id().map(str::to_owned),
            state: job.state_name().to_owned(),
            progress,
            provider: job.provider.clone(),
            model: job.model.clone(),
            round: job.round,
            requests: job.size.requests,
            completed: counts.completed,
            failed: counts.failed,
            created_at,
            expires_at,
            worst_case_usd: job.worst_case.cost,
            reason: match &job.stage {
                JobStage::Refused { reason, .. } => Some(reason.clone()),
                _ => None,
            },
        }
    }

    /// Takes over what the provider reports now.
    pub(crate) fn update(&mut self, report: &JobReport) {
        report.state.name().clone_into(&mut self.state);
        self.reason = (report.state == JobState::Failed).then(|| refusal_reason(report));
        if let Some(counts) = report.counts {
            (self.completed, self.failed) = (counts.completed, counts.failed);
        }
        if let (None, Some(created)) = (self.created_at, report.created_at) {
            self.created_at = Some(created);
        }
        if let (None, Some(created), Some(submitted)) = (self.expires_at, report.created_at, self.created_at)
        {
            self.expires_at = report.expires_at.map(|end| end - (created - submitted));
        }
    }

    /// Whether it has not ended yet.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let ended = [JobState::Completed, JobState::Failed, JobState::Expired, JobState::Cancelled];
        !ended.iter().any(|state| state.name() == self.state)
    }

    /// What it may still cost: nothing once its answers were counted, and nothing if it was refused.
    #[must_use]
    pub fn reserved_cost(&self) -> Money {
        let is_refused = self.state == JobState::Failed.name() && self.completed == 0;
        match self.progress {
            BatchJobProgress::Collected => Money::ZERO,
            _ if is_refused => Money::ZERO,
            _ => self.worst_case_usd,
        }
    }
}

/// The one state that describes all jobs of a run. While any is out, it is that of the jobs that are out, if they all
/// have the same one, and otherwise `in_progress`. Once all have ended, it is that of the last round, the worst first;
/// a run without jobs is `waiting`.
#[must_use]
pub fn overall_batch_state(jobs: &[BatchJobInfo]) -> &str {
    let mut out = jobs.iter().filter(|job| job.is_unfinished()).map(|job| job.state.as_str());
    if let Some(first) = out.next() {
        return if out.all(|other| other == first) { first } else { JobState::InProgress.name() };
    }
    let last = jobs.iter().map(|job| job.round).max().unwrap_or_default();
    let ended: Vec<&str> =
        jobs.iter().filter(|job| job.round == last).map(|job| job.state.as_str()).collect();
    let worst_first = [JobState::Failed, JobState::Expired, JobState::Cancelled, JobState::Completed];
    let found = worst_first.iter().map(|state| state.name()).find(|name| ended.contains(name));
    found.unwrap_or(WAITING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(state: &str, round: u32) -> BatchJobInfo {
        BatchJobInfo {
            id: None,
            state: state.into(),
            progress: BatchJobProgress::Submitted,
            provider: "openai".into(),
            model: "openai.m".into(),
            round,
            requests: 1,
            completed: 0,
            failed: 0,
            created_at: None,
            expires_at: None,
            worst_case_usd: Money::ZERO,
            reason: None,
        }
    }

    #[test]
    fn the_state_of_a_run_is_that_of_the_jobs_that_are_out_and_then_of_the_last_round() {
        for (states, expected) in [
            (vec![], "waiting"),
            (vec![("validating", 1), ("validating", 1)], "validating"),
            (vec![("validating", 1), ("in_progress", 1)], "in_progress"),
            (vec![("completed", 1), ("waiting", 1)], "waiting"),
            (vec![("completed", 1), ("finalizing", 1), ("waiting", 1)], "in_progress"),
            (vec![("completed", 1), ("expired", 1)], "expired"),
            (vec![("expired", 1), ("completed", 2)], "completed"),
            (vec![("cancelled", 1), ("failed", 1)], "failed"),
            (vec![("completed", 1)], "completed"),
        ] {
            let jobs: Vec<_> = states.iter().map(|(state, round)| job(state, *round)).collect();
            assert_eq!(overall_batch_state(&jobs), expected, "{states:?}");
        }
    }
}
