//! Rate limits as reported by a provider.

use std::time::Duration;

/// The limits reported with an answer, as far as it reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedRateLimits {
    /// Requests.
    pub requests: Option<RateLimitState>,
    /// Tokens in both directions.
    pub tokens: Option<RateLimitState>,
    /// Prompt tokens.
    pub input_tokens: Option<RateLimitState>,
    /// Generated tokens.
    pub output_tokens: Option<RateLimitState>,
}

impl ReportedRateLimits {
    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reports about requests, tokens, input tokens and output tokens, in this order.
    #[must_use]
    pub fn windows(&self) -> [Option<RateLimitState>; 4] {
        [self.requests, self.tokens, self.input_tokens, self.output_tokens]
    }
}

/// The state of one limit when the provider accepted the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitState {
    /// The limit.
    pub limit: u64,
    /// The remainder.
    pub remaining: u64,
    /// The time until the limit is fully available again.
    pub reset: Duration,
}
