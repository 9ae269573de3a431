//! What a provider tells of its rate limits.

use std::time::Duration;

/// The limits that an answer told, each where it did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<RateWindow>,
    /// Tokens of both directions together.
    pub tokens: Option<RateWindow>,
    /// Tokens of prompts.
    pub input_tokens: Option<RateWindow>,
    /// Generated tokens.
    pub output_tokens: Option<RateWindow>,
}

impl RateLimits {
    /// Whether nothing was told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was told of requests, tokens, input tokens and output tokens, in this order.
    #[must_use]
    pub fn windows(&self) -> [Option<RateWindow>; 4] {
        [self.requests, self.tokens, self.input_tokens, self.output_tokens]
    }
}

/// One limit, as it stood when the provider took the call in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateWindow {
    /// How much there is in all.
    pub limit: u64,
    /// How much was left.
    pub remaining: u64,
    /// How long it takes until everything is there again.
    pub reset: Duration,
}
