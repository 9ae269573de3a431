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

/// How requests reach the provider, and how jobs are waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaneOptions {
    /// How requests reach the provider.
    pub lane: Lane,
    /// Whether to return once all jobs are submitted, instead of waiting for their results.
    pub detach: bool,
    /// Wait before jobs are looked at for the first time. Later waits are longer, up to five minutes.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub poll_every: Duration,
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self { lane: Lane::Live, detach: false, poll_every: Duration::from_secs(10) }
    }
}
