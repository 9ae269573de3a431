//! All jobs of a run, and the next step for each.

use std::collections::{BTreeMap, HashSet};

use super::record::{JobKey, JobRecord, JobStage};
use super::size::JobSize;
use crate::limits::Spend;
use crate::ports::BatchRules;

/// The jobs of a run, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub struct JobTable {
    jobs: Vec<JobRecord>,
    positions: BTreeMap<JobKey, usize>,
}

/// What is to be done for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStep {
    /// Upload its file.
    Upload,
    /// Create it, from a file that was uploaded.
    Create {
        /// The provider's id of the file.
        file: Option<String>,
    },
    /// Find out whether it was created: an earlier process was ended before the response arrived.
    Find {
        /// The provider's id of the file.
        file: Option<String>,
        /// When the request was sent, in seconds since 1970.
        since: i64,
    },
    /// Ask the provider for its state.
    Poll {
        /// The provider's id.
        id: String,
    },
    /// Download its results.
    Download {
        /// The provider's id.
        id: String,
    },
    /// Nothing, as far as the provider is concerned.
    Nothing,
}

/// How much of an account's queue jobs take up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueUse {
    jobs: u64,
    size: JobSize,
}

impl QueueUse {
    /// The same with one more job.
    #[must_use]
    pub fn with(self, job: JobSize) -> Self {
        Self { jobs: self.jobs + 1, size: self.size.plus(job) }
    }

    /// Whether another job fits the queue, with a tenth of headroom. A job always fits an empty queue.
    #[must_use]
    pub fn has_room(&self, job: JobSize, rules: &BatchRules) -> bool {
        let both = self.size.plus(job);
        let within = |used: u64, most: Option<u64>| most.is_none_or(|most| used <= most - most / 10);
        self.jobs == 0
            || (rules.max_jobs.is_none_or(|most| self.jobs < most)
                && within(both.tokens, rules.max_queued_tokens)
                && within(both.requests, rules.max_queued_requests))
    }
}

impl JobTable {
    /// Replaces what is known of a job.
    pub fn put(&mut self, record: JobRecord) {
        match self.positions.get(&record.key).and_then(|index| self.jobs.get_mut(*index)) {
            Some(known) => *known = record,
            None => {
                self.positions.insert(record.key.clone(), self.jobs.len());
                self.jobs.push(record);
            }
        }
    }

    /// A job.
    #[must_use]
    pub fn get(&self, key: &JobKey) -> Option<&JobRecord> {
        self.positions.get(key).and_then(|index| self.jobs.get(*index))
    }

    /// All jobs, in the order in which they were made.
    #[must_use]
    pub fn jobs(&self) -> &[JobRecord] {
        &self.jobs
    }

    /// The names of the jobs whose rows cannot continue yet.
    #[must_use]
    pub fn blocking_job_names(&self) -> HashSet<String> {
        self.jobs.iter().filter(|job| job.blocks_rows()).map(|job| job.key.0.clone()).collect()
    }

    /// Whether rows may have to be worked on because of a job.
    #[must_use]
    pub fn has_collectable(&self) -> bool {
        self.jobs.iter().any(JobRecord::is_collectable)
    }

    /// Whether the provider has something to do for the run, or will have.
    #[must_use]
    pub fn has_blocking_jobs(&self) -> bool {
        self.jobs.iter().any(JobRecord::blocks_rows)
    }

    /// Whether the provider has a job that is not finished, or may have one.
    #[must_use]
    pub fn may_be_at_provider(&self) -> bool {
        self.jobs.iter().any(JobRecord::is_submitted)
    }

    /// Whether there is something that would be paid for twice if its rows were sent again: jobs that the provider has or
    /// may have, and results that were not worked on.
    #[must_use]
    pub fn has_paid_jobs(&self) -> bool {
        let has_results = |job: &JobRecord| matches!(job.stage, JobStage::Downloaded { .. });
        self.jobs.iter().any(|job| job.is_submitted() || has_results(job))
    }

    /// The most that jobs may cost whose rows have not been worked on yet. Each request of them is settled then, also in
    /// a job that was refused.
    #[must_use]
    pub fn reserved_spend(&self) -> Spend {
        let open = self.jobs.iter().filter(|job| job.blocks_rows() || job.is_collectable());
        open.fold(self.abandoned(), |sum, job| sum.plus(job.worst_case))
    }

    /// The most that jobs may have cost whose results nobody has waited for.
    #[must_use]
    pub fn abandoned(&self) -> Spend {
        let jobs = self.jobs.iter().filter(|job| matches!(job.stage, JobStage::Abandoned { .. }));
        jobs.fold(Spend::default(), |sum, job| sum.plus(job.worst_case))
    }

    /// The number of requests that the provider has not answered yet, as far as it has reported it.
    #[must_use]
    pub fn unanswered_requests(&self) -> u64 {
        let out = self.jobs.iter().filter(|job| job.blocks_rows());
        out.map(|job| job.size.requests.saturating_sub(job.counts.map_or(0, |counts| counts.completed))).sum()
    }

    /// What the jobs of an endpoint take up of the account's queue.
    #[must_use]
    pub fn queue_use(&self, provider: &str) -> QueueUse {
        let submitted = self.jobs.iter().filter(|job| job.is_submitted() && job.provider == provider);
        submitted.fold(QueueUse::default(), |used, job| used.with(job.size))
    }

    /// The next step for a job.
    #[must_use]
    pub fn next_step(job: &JobRecord) -> JobStep {
        match &job.stage {
            JobStage::Written => JobStep::Upload,
            JobStage::Uploaded { file } => JobStep::Create { file: file.clone() },
            JobStage::Creating { file, since } => JobStep::Find { file: file.clone(), since: *since },
            JobStage::Submitted { id, state } if state.has_ended() => JobStep::Download { id: id.clone() },
            JobStage::Submitted { id, .. } => JobStep::Poll { id: id.clone() },
            JobStage::Downloaded { .. }
            | JobStage::Collected { .. }
            | JobStage::Refused { .. }
            | JobStage::Abandoned { .. } => JobStep::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rowmill_types::Money;

    use super::*;
    use crate::ports::{ExpiredJobResultRule, JobKeyReporting, JobState};

    fn job(key: &str, stage: JobStage) -> JobRecord {
        JobRecord {
            key: JobKey(key.into()),
            endpoint: "e".into(),
            model: "openai.small".into(),
            provider: "openai".into(),
            round: 1,
            size: JobSize { requests: 10, bytes: 100, tokens: 40 },
            worst_case: Spend { cost: Money::from_pico(7), tokens: 50 },
            price: None,
            stage,
            submitted_at: None,
            created_at: None,
            expires_at: None,
            counts: None,
        }
    }

    fn submitted(state: JobState) -> JobStage {
        JobStage::Submitted { id: "batch_1".into(), state }
    }

    fn rules() -> BatchRules {
        BatchRules {
            provider: "openai".into(),
            max_requests: 100,
            max_bytes: 1_000,
            max_request_bytes: 1_000,
            max_queued_tokens: Some(100),
            max_queued_requests: None,
            max_jobs: Some(3),
            window: Duration::from_secs(86_400),
            expiry: ExpiredJobResultRule::KeepsFinished,
            cancel_time: Duration::from_secs(600),
            job_key: JobKeyReporting::Reported,
        }
    }

    #[test]
    fn every_stage_has_one_next_step_and_a_creation_that_was_cut_is_looked_for_first() {
        let next = |stage| JobTable::next_step(&job("a", stage));
        assert_eq!(next(JobStage::Written), JobStep::Upload);
        let file = Some("file-1".to_owned());
        assert_eq!(next(JobStage::Uploaded { file: file.clone() }), JobStep::Create { file: file.clone() });
        let creating = JobStage::Creating { file: file.clone(), since: 5 };
        assert_eq!(next(creating), JobStep::Find { file, since: 5 });
        assert_eq!(next(submitted(JobState::InProgress)), JobStep::Poll { id: "batch_1".into() });
        assert_eq!(next(submitted(JobState::Expired)), JobStep::Download { id: "batch_1".into() });
    }

    #[test]
    fn the_latest_record_of_a_job_counts_and_the_order_of_jobs_stays() {
        let mut table = JobTable::default();
        table.put(job("a", JobStage::Written));
        table.put(job("b", JobStage::Written));
        table.put(job("a", submitted(JobState::InProgress)));
        let names: Vec<_> = table.jobs().iter().map(|job| job.key.0.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(table.get(&JobKey("a".into())).and_then(JobRecord::provider_id), Some("batch_1"));
    }

    #[test]
    fn what_jobs_may_cost_is_reserved_until_their_results_were_counted() {
        let mut table = JobTable::default();
        table.put(job("a", JobStage::Written));
        table.put(job("b", JobStage::Downloaded { id: "x".into(), state: JobState::Completed }));
        table.put(job("c", JobStage::Collected { id: Some("y".into()), state: JobState::Completed }));
        assert_eq!(table.reserved_spend(), Spend { cost: Money::from_pico(14), tokens: 100 });
        assert_eq!(table.blocking_job_names(), HashSet::from(["a".to_owned()]));
        assert!(table.has_collectable());
    }

    #[test]
    fn a_job_waits_until_the_queue_has_room_and_an_empty_queue_always_has() {
        let small = JobSize { requests: 1, bytes: 1, tokens: 10 };
        let mut table = JobTable::default();
        assert!(table.queue_use("openai").has_room(JobSize { tokens: 1_000, ..small }, &rules()));
        table.put(job("a", submitted(JobState::InProgress)));
        assert!(table.queue_use("openai").has_room(small, &rules()));
        assert!(!table.queue_use("openai").has_room(JobSize { tokens: 51, ..small }, &rules()));
        assert!(table.queue_use("groq").has_room(JobSize { tokens: 51, ..small }, &rules()));
        table.put(job("b", submitted(JobState::InProgress)));
        table.put(job("c", JobStage::Creating { file: None, since: 0 }));
        let unlimited = BatchRules { max_queued_tokens: None, ..rules() };
        assert!(!table.queue_use("openai").has_room(small, &unlimited), "three jobs are the most");
    }
}
