//! A job and what is known of it at a moment.

use std::sync::Arc;
use std::time::Duration;

use rowmill_types::TokenUsage;
use serde_json::Value;

use super::clock::JobClock;
use super::stored_bytes::{RowPlace, StoredBytes};
use super::timeline::{JobPhase, JobTimeline};
use super::validate::LineError;
use super::vendor::BatchVendor;

/// What a client asked for when it created a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobOrder {
    pub(crate) endpoint: String,
    /// The model, if the job has one of its own or all of its rows have the same.
    pub(crate) model: Option<String>,
    pub(crate) input_file: Option<String>,
    pub(crate) metadata: Value,
    pub(crate) display_name: Option<String>,
    /// The window as it was written.
    pub(crate) window: String,
    pub(crate) window_length: Option<Duration>,
    /// The headers of the request, which count for every row.
    pub(crate) headers: Vec<(String, String)>,
}

/// The rows of a job.
#[derive(Debug)]
pub(crate) struct JobInput {
    pub(crate) bytes: Arc<StoredBytes>,
    pub(crate) rows: Vec<RowPlace>,
}

/// What came out of a job.
#[derive(Debug, Default)]
pub(crate) struct JobOutcome {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// Rows that were not processed, because the job expired or was cancelled.
    pub(crate) unfinished: u64,
    pub(crate) usage: TokenUsage,
    pub(crate) output_file: Option<String>,
    pub(crate) error_file: Option<String>,
    /// Results that belong to no file of the vendor.
    pub(crate) results: Option<Arc<StoredBytes>>,
}

/// A job.
#[derive(Debug)]
pub(crate) struct BatchJob {
    pub(crate) number: u64,
    pub(crate) id: String,
    pub(crate) vendor: BatchVendor,
    pub(crate) order: JobOrder,
    pub(crate) timeline: JobTimeline,
    pub(crate) rows: u64,
    pub(crate) input_bytes: u64,
    pub(crate) queued_tokens: u64,
    /// What is wrong with its input; then it fails.
    pub(crate) errors: Vec<LineError>,
    /// Dropped once the job has its outcome.
    pub(crate) input: Option<Arc<JobInput>>,
    pub(crate) outcome: Option<Arc<JobOutcome>>,
}

impl BatchJob {
    /// The state at a time. A job is over only once its results exist.
    pub(crate) fn phase(&self, now: Duration) -> JobPhase {
        match self.timeline.phase(now) {
            JobPhase::Cancelled if self.outcome.is_none() => JobPhase::Cancelling,
            JobPhase::Completed | JobPhase::Expired if self.outcome.is_none() => JobPhase::Finalizing,
            phase => phase,
        }
    }

    /// Whether its results are due and not made yet.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        let phase = self.timeline.phase(now);
        phase.is_final() && phase != JobPhase::Failed && self.outcome.is_none()
    }

    /// Whether its rows came in the request that created it.
    pub(crate) fn is_inline(&self) -> bool {
        self.order.input_file.is_none()
    }
}

/// A job at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobView<'j> {
    pub(crate) job: &'j BatchJob,
    pub(crate) clock: &'j JobClock,
    pub(crate) now: Duration,
}

/// The rows of a job by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) total: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) unfinished: u64,
}

impl JobView<'_> {
    pub(crate) fn phase(&self) -> JobPhase {
        self.job.phase(self.now)
    }

    /// The rows by state. Which rows fail is known at the end.
    pub(crate) fn counts(&self) -> RowCounts {
        let total = self.job.rows;
        match &self.job.outcome {
            Some(outcome) => RowCounts {
                total,
                succeeded: outcome.succeeded,
                failed: outcome.failed,
                unfinished: outcome.unfinished,
            },
            None => {
                let done = (total as f64 * self.job.timeline.done_share(self.now)) as u64;
                RowCounts { total, succeeded: done, ..RowCounts::default() }
            }
        }
    }

    /// Seconds since 1970 of a time, if it has passed.
    pub(crate) fn passed(&self, time: Duration) -> Option<i64> {
        (time <= self.now).then(|| self.clock.unix(time))
    }

    /// When it reached its last state, if it did.
    pub(crate) fn ended(&self) -> Option<(JobPhase, Duration)> {
        self.phase().is_final().then(|| self.job.timeline.end())
    }

    /// When it reached this last state, if it did.
    pub(crate) fn ended_as(&self, phase: JobPhase) -> Option<Duration> {
        self.ended().filter(|(last, _)| *last == phase).map(|(_, time)| time)
    }
}
