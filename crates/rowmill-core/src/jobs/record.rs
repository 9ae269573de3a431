//! What is recorded of a job.

use serde::{Deserialize, Serialize};

use crate::cost::Price;
use crate::limits::Spend;
use crate::ports::{JobCounts, JobState};

/// The name of a job, which the provider gets where it has a place for it: unique among all jobs of all runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobKey(pub String);

/// Everything that is known of a job. Each change is recorded as a whole; the latest record of a job counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its name.
    pub key: JobKey,
    /// Identifies the model, with everything that its requests have in common.
    pub endpoint: String,
    /// The model string.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// The round of jobs that it belongs to, counted from 1: all jobs that one pass over the input has made.
    pub round: u32,
    /// How large it is.
    pub size: super::JobSize,
    /// What it may cost at most.
    pub worst_case: Spend,
    /// The price of its requests, if it is known: it is needed after the run may use another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How far it has come.
    pub stage: JobStage,
    /// When it was submitted, by our own clock, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<i64>,
    /// When it was created at the provider, by its clock, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// When the provider ends it at the latest, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// How many of its requests are in which state, as the provider last reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<JobCounts>,
}

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum JobStage {
    /// Its requests are on disk.
    Written,
    /// Its file is at the provider.
    Uploaded {
        /// The provider's id of the file; `None` if the requests are sent together with the job.
        file: Option<String>,
    },
    /// It is being created: whether the provider has it is not known before the response.
    Creating {
        /// The provider's id of the file.
        file: Option<String>,
        /// When the request was sent, in seconds since 1970.
        since: i64,
    },
    /// The provider has it.
    Submitted {
        /// The provider's id.
        id: String,
        /// Its state, as last reported.
        state: JobState,
    },
    /// It ended, and its results are on disk.
    Downloaded {
        /// The provider's id.
        id: String,
        /// How it ended.
        state: JobState,
    },
    /// Every row that waited for it has been worked on.
    Collected {
        /// The provider's id, if it ever had one.
        id: Option<String>,
        /// How it ended.
        state: JobState,
    },
    /// The provider has refused it or lost it: none of its requests was answered.
    Refused {
        /// The provider's id, if it had one.
        id: Option<String>,
        /// Why, in the provider's words.
        reason: String,
        /// Whether its requests may be sent again.
        lost: RefusedJobHandling,
    },
    /// It was cancelled and had not ended when the run could wait for it no longer: its requests are sent again as live
    /// calls, and what it had finished is lost.
    Abandoned {
        /// The provider's id, if it is known.
        id: Option<String>,
        /// Its state, as last reported.
        state: JobState,
    },
}

/// What becomes of the requests of a job that gave no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedJobHandling {
    /// They are sent again in a later job, as often as retries allow.
    Retry,
    /// They are put into smaller jobs, which is no further attempt: the queue has no room for one job with all of them.
    Split,
    /// They have failed: the provider would refuse them again.
    Fail,
}

impl RefusedJobHandling {
    /// How a job without results has ended.
    #[must_use]
    pub fn job_state(self) -> JobState {
        match self {
            Self::Retry | Self::Split => JobState::Cancelled,
            Self::Fail => JobState::Failed,
        }
    }
}

impl JobRecord {
    /// Whether rows that wait for it cannot continue yet.
    #[must_use]
    pub fn blocks_rows(&self) -> bool {
        matches!(
            self.stage,
            JobStage::Written
                | JobStage::Uploaded { .. }
                | JobStage::Creating { .. }
                | JobStage::Submitted { .. }
        )
    }

    /// Whether rows may have to be worked on because of it.
    #[must_use]
    pub fn is_collectable(&self) -> bool {
        matches!(self.stage, JobStage::Downloaded { .. } | JobStage::Refused { .. })
    }

    /// Whether the provider works on it, or may do so.
    #[must_use]
    pub fn is_submitted(&self) -> bool {
        matches!(self.stage, JobStage::Creating { .. } | JobStage::Submitted { .. })
    }

    /// Whether it is not known if the provider has it.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        matches!(self.stage, JobStage::Creating { .. })
    }

    /// The provider's id, once it is known.
    #[must_use]
    pub fn provider_id(&self) -> Option<&str> {
        match &self.stage {
            JobStage::Submitted { id, .. } | JobStage::Downloaded { id, .. } => Some(id),
            JobStage::Collected { id, .. }
            | JobStage::Refused { id, .. }
            | JobStage::Abandoned { id, .. } => id.as_deref(),
            JobStage::Written | JobStage::Uploaded { .. } | JobStage::Creating { .. } => None,
        }
    }

    /// When it was submitted, and when it expires. Clocks differ, so that what the provider says of its own is moved to
    /// ours.
    #[must_use]
    pub fn times(&self) -> (Option<i64>, Option<i64>) {
        let submitted = self.submitted_at.or(self.created_at);
        let ahead = self.created_at.zip(submitted).map_or(0, |(theirs, ours)| theirs - ours);
        (submitted, self.expires_at.map(|end| end - ahead))
    }

    /// Its state in the words that users see.
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        match &self.stage {
            JobStage::Written | JobStage::Uploaded { .. } => "waiting",
            JobStage::Creating { .. } => "submitting",
            JobStage::Submitted { state, .. }
            | JobStage::Downloaded { state, .. }
            | JobStage::Collected { state, .. }
            | JobStage::Abandoned { state, .. } => state.name(),
            JobStage::Refused { lost, .. } => lost.job_state().name(),
        }
    }
}
