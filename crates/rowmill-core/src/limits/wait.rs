//! What a call waits for.

use std::fmt;
use std::time::Duration;

use rowmill_types::group_digits;

/// The number of characters of a provider's message that are shown.
const SHORT: usize = 80;

/// A call that cannot be sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallWait {
    /// When to ask again, at the latest; `None` if only the end of another call can help.
    pub until: Option<Duration>,
    /// What it waits for.
    pub reason: WaitReason,
}

/// What is waited for, as text that follows "waiting for".
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitReason {
    /// The suitable number of calls is in flight already.
    Slots,
    /// The first call, which fills the provider's cache for the others.
    Priming,
    /// The limit on requests per minute.
    Requests(u64),
    /// The limit on tokens per minute.
    Tokens(u64),
    /// The limit on prompt tokens per minute.
    InputTokens(u64),
    /// The limit on generated tokens per minute.
    OutputTokens(u64),
    /// The provider asked for a pause.
    Throttled,
    /// The quota is used up; the provider's message.
    Quota(String),
    /// The provider is down; the error of the last call.
    Outage(String),
    /// Calls in flight, which reserve the rest of the budget.
    Budget,
}

impl WaitReason {
    /// Whether users should be notified even when the wait is short.
    #[must_use]
    pub fn is_serious(&self) -> bool {
        matches!(self, Self::Quota(_) | Self::Outage(_))
    }
}

/// The provider's message, shortened to fit a line.
fn short(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots => out.write_str("calls in flight"),
            Self::Priming => out.write_str("the first call, which fills the provider's cache"),
            Self::Requests(1) => out.write_str("the limit of 1 request/min"),
            Self::Requests(limit) => write!(out, "the limit of {} requests/min", group_digits(*limit)),
            Self::Tokens(limit) => write!(out, "the limit of {} tokens/min", group_digits(*limit)),
            Self::InputTokens(limit) => write!(out, "the limit of {} input tokens/min", group_digits(*limit)),
            Self::OutputTokens(limit) => {
                write!(out, "the limit of {} output tokens/min", group_digits(*limit))
            }
            Self::Throttled => out.write_str("the provider, which asked for a pause"),
            Self::Quota(text) => write!(out, "quota: {}", short(text)),
            Self::Outage(text) => write!(out, "the provider to come back: {}", short(text)),
            Self::Budget => out.write_str("calls in flight, which hold the rest of the budget"),
        }
    }
}
