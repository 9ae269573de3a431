//! The settings of the batch lane.

use std::time::Duration;

use rowmill_types::{DurationText, duration_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How requests reach the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// As single calls, answered at once.
    #[default]
    Live,
    /// As jobs of the provider's batch API, answered within about a day at a lower price.
    Batch,
    /// As batch jobs if the providers of all models have a batch API, as single calls otherwise.
    Auto,
}

/// What a process that continues a run in the batch lane does with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BatchScope")]
pub enum BatchContinuationMode {
    /// Everything that is left to do: failed rows are sent again, too.
    #[default]
    All,
    /// Collects what jobs have finished, and submits what follows from it. Rows that failed before stay as they are, and
    /// a job that the provider has no room for is left to a later process.
    Collect,
    /// Cancels all jobs, collects what they had finished, and sends nothing.
    Cancel,
}

/// How repairs reach the provider in the batch lane: requests for another answer in place of one that violates the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairLane {
    /// As requests of a further job.
    #[default]
    Batch,
    /// As live calls, at once.
    Live,
}

/// How requests reach the provider, and how jobs are waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaneOptions {
    /// How requests reach the provider.
    pub lane: Lane,
    /// Whether to return once all jobs are submitted, instead of waiting for their results.
    pub detach: bool,
    /// What a process that continues a run does with it.
    pub scope: BatchContinuationMode,
    /// Wait before jobs are looked at for the first time. Later waits are longer, up to five minutes.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub poll_every: Duration,
    /// How repairs are sent in the batch lane.
    pub repair_lane: RepairLane,
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self {
            lane: Lane::Live,
            detach: false,
            scope: BatchContinuationMode::All,
            poll_every: Duration::from_secs(10),
            repair_lane: RepairLane::Batch,
        }
    }
}
