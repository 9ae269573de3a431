//! The usage and the duration of a call, the same for every provider.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Tokens of one call or the sum of several, normalized across providers.
///
/// `input` counts all prompt tokens, including `cached` and `cache_write`; `output` counts all generated tokens,
/// including `reasoning`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All prompt tokens.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: u64,
    /// All generated tokens.
    pub output: u64,
    /// Generated tokens spent on reasoning.
    pub reasoning: u64,
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        // The numbers that a provider reports need not make sense.
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

impl TokenUsage {
    /// Tokens in both directions.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// The duration of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTiming {
    /// From sending to the first piece of the answer; known only for streams.
    pub first_token: Option<Duration>,
    /// From sending to the end of the answer.
    pub response: Duration,
}
