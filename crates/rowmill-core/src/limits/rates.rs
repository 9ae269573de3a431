//! The user's settings for the pace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As the provider's limits allow.
    Auto,
    /// As fast as they can; only the slots and what the provider asks for hold them up.
    Off,
}

/// Limits that the user sets, per minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateFlags {
    /// Requests.
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Tokens in both directions.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Prompt tokens.
    #[schemars(range(min = 1))]
    pub input_tokens: Option<u64>,
    /// Generated tokens.
    #[schemars(range(min = 1))]
    pub output_tokens: Option<u64>,
}
