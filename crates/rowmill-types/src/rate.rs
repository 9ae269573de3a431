//! Rate limits as reported by a provider.

use std::time::Duration;

/// The limits reported with an answer, as far as it reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<RateWindow>,
    /// Tokens in both directions.
    pub tokens: Option<RateWindow>,
    /// Prompt tokens.
    pub input_tokens: Option<RateWindow>,
    /// Generated tokens.
    pub output_tokens: Option<RateWindow>,
}

impl RateLimits {
    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reports about requests, tokens, input tokens and output tokens, in this order.
    #[must_use]
    pub fn windows(&self) -> [Option<RateWindow>; 4] {
        [self.requests, self.tokens, self.input_tokens, self.output_tokens]
    }
}

/// The state of one limit when the provider accepted the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateWindow {
    /// The limit.
    pub limit: u64,
    /// The remainder.
    pub remaining: u64,
    /// The time until the limit is fully available again.
    pub reset: Duration,
}
