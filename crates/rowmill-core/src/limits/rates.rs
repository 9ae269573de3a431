//! What a user says about the pace.

/// How fast calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As the provider's limits allow.
    Auto,
    /// As fast as they can; only the slots and what the provider asks for hold them up.
    Off,
}

/// Limits that the user sets, per minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateFlags {
    /// Requests.
    pub requests: Option<u64>,
    /// Tokens in both directions.
    pub tokens: Option<u64>,
    /// Prompt tokens.
    pub input_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
}
