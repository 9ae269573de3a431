//! The user's settings for the pace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast calls are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PaceMode {
    /// As fast as the provider's limits allow.
    Auto,
    /// As fast as possible; only the limit on calls in flight and pauses requested by the provider slow
    /// them down.
    Off,
}

/// Limits per minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MinuteLimits {
    /// Requests.
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Input and output tokens together.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Prompt tokens.
    #[schemars(range(min = 1))]
    pub input_tokens: Option<u64>,
    /// Generated tokens.
    #[schemars(range(min = 1))]
    pub output_tokens: Option<u64>,
}
