//! Limits per minute.

/// The limits per minute, for each combination of key and model; an absent one does not limit.
///
/// ```
/// # use rowmill_simulator::Limits;
/// let limits = Limits { requests: Some(600), tokens: Some(60_000), ..Limits::default() };
/// assert_eq!(limits.input_tokens, None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
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
pub enum Measure {
    /// Calls.
    Requests,
    /// Tokens of both directions together.
    Tokens,
    /// Tokens of prompts.
    InputTokens,
    /// Generated tokens.
    OutputTokens,
}

impl Measure {
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

    pub(crate) fn of_flag(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.flag() == name)
    }
}

impl Limits {
    /// The limit on one quantity.
    #[must_use]
    pub fn of(&self, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Requests => self.requests,
            Measure::Tokens => self.tokens,
            Measure::InputTokens => self.input_tokens,
            Measure::OutputTokens => self.output_tokens,
        }
    }

    /// The same limits with one of them changed; `None` removes it.
    #[must_use]
    pub fn with(mut self, measure: Measure, limit: Option<u64>) -> Self {
        match measure {
            Measure::Requests => self.requests = limit,
            Measure::Tokens => self.tokens = limit,
            Measure::InputTokens => self.input_tokens = limit,
            Measure::OutputTokens => self.output_tokens = limit,
        }
        self
    }
}
