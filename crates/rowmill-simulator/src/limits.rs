//! Limits per minute.

/// The limits per minute, for each combination of key and model; an absent one does not limit.
///
/// ```
/// # use rowmill_simulator::SimulatedLimits;
/// let limits = SimulatedLimits { requests: Some(600), tokens: Some(60_000), ..SimulatedLimits::default() };
/// assert_eq!(limits.input_tokens, None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimulatedLimits {
    /// Calls.
    pub requests: Option<u64>,
    /// Tokens of both directions together.
    pub tokens: Option<u64>,
    /// Tokens of prompts.
    pub input_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
}

/// The quantity that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Calls.
    Requests,
    /// Tokens of both directions together.
    Tokens,
    /// Tokens of prompts.
    InputTokens,
    /// Generated tokens.
    OutputTokens,
}

impl LimitKind {
    /// All of them, in the order in which they are reported.
    pub(crate) const ALL: [Self; 4] = [Self::Requests, Self::Tokens, Self::InputTokens, Self::OutputTokens];

    /// The name of its flag.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Requests => "rpm",
            Self::Tokens => "tpm",
            Self::InputTokens => "itpm",
            Self::OutputTokens => "otpm",
        }
    }

    pub(crate) fn from_flag(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.flag() == name)
    }
}

impl SimulatedLimits {
    /// The limit on one quantity.
    #[must_use]
    pub fn limit_on(&self, measure: LimitKind) -> Option<u64> {
        match measure {
            LimitKind::Requests => self.requests,
            LimitKind::Tokens => self.tokens,
            LimitKind::InputTokens => self.input_tokens,
            LimitKind::OutputTokens => self.output_tokens,
        }
    }

    /// The same limits with one of them changed; `None` removes it.
    #[must_use]
    pub fn with_limit(mut self, measure: LimitKind, limit: Option<u64>) -> Self {
        match measure {
            LimitKind::Requests => self.requests = limit,
            LimitKind::Tokens => self.tokens = limit,
            LimitKind::InputTokens => self.input_tokens = limit,
            LimitKind::OutputTokens => self.output_tokens = limit,
        }
        self
    }
}
