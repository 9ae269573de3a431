//! What a call waits for.

use std::fmt;
use std::time::Duration;

use rowmill_types::grouped;

/// Characters of what a provider said that are shown.
const SHORT: usize = 80;

/// A call that cannot be sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// When to ask again, at the latest; `None` if only the end of another call can help.
    pub until: Option<Duration>,
    /// What it waits for.
    pub reason: WaitReason,
}

/// What is waited for, in words that stand after "waiting for".
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitReason {
    /// As many calls are in flight as is good.
    Slots,
    /// The first call, which fills the provider's cache for the others.
    Priming,
    /// The limit on requests, so many a minute.
    Requests(u64),
    /// The limit on tokens, so many a minute.
    Tokens(u64),
    /// The limit on prompt tokens, so many a minute.
    InputTokens(u64),
    /// The limit on generated tokens, so many a minute.
    OutputTokens(u64),
    /// The provider asked for a pause.
    Throttled,
    /// The quota is used up; what the provider said.
    Quota(String),
    /// The provider is down; what the last call met.
    Outage(String),
    /// Calls in flight, which hold what is left of the budget.
    Budget,
}

impl WaitReason {
    /// Whether a person should hear of it even when the wait is short.
    #[must_use]
    pub fn is_grave(&self) -> bool {
        matches!(self, Self::Quota(_) | Self::Outage(_))
    }
}

/// As much of what a provider said as fits a line.
fn short(said: &str) -> String {
    match said.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", said.get(..end).unwrap_or_default()),
        None => said.to_owned(),
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots => out.write_str("calls in flight"),
            Self::Priming => out.write_str("the first call, which fills the provider's cache"),
            Self::Requests(1) => out.write_str("the limit of 1 request/min"),
            Self::Requests(limit) => write!(out, "the limit of {} requests/min", grouped(*limit)),
            Self::Tokens(limit) => write!(out, "the limit of {} tokens/min", grouped(*limit)),
            Self::InputTokens(limit) => write!(out, "the limit of {} input tokens/min", grouped(*limit)),
            Self::OutputTokens(limit) => write!(out, "the limit of {} output tokens/min", grouped(*limit)),
            Self::Throttled => out.write_str("the provider, which asked for a pause"),
            Self::Quota(said) => write!(out, "quota: {}", short(said)),
            Self::Outage(said) => write!(out, "the provider to come back: {}", short(said)),
            Self::Budget => out.write_str("calls in flight, which hold the rest of the budget"),
        }
    }
}
