//! The share of one run in a limiter: its settings, calls and estimates.

use std::time::Duration;

use rowmill_types::TokenUsage;

use super::estimate::TokenEstimate;
use super::limiter::{CallNeed, LIMIT_KINDS};
use super::minute_limits::{MinuteLimits, PaceMode};
use super::slots::CallParallelism;

/// A run's settings for the pace of its own calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPaceSettings {
    /// The number of calls of the run that may be in flight.
    pub parallel: CallParallelism,
    /// Whether limits reported by the provider are respected.
    pub pace: PaceMode,
    /// Limits set by the user.
    pub rates: MinuteLimits,
    /// The maximum answer length in every request, if requests set one.
    pub max_output: Option<u64>,
    /// Whether the provider reserves that length, out of its limit on all tokens, until the answer is complete.
    pub reserves_output: bool,
    /// Whether the first call is sent alone, to fill the provider's cache for the others.
    pub priming: bool,
    /// How long the run waits for a provider that lets none of its calls through. With zero, nothing counts as an
    /// outage: rows fail when their attempts are used up, and waits that the provider asks for are respected only up to
    /// [`LONGEST_PACE`].
    pub max_outage: Duration,
}

/// Limits are per minute, so a provider that asks for a longer wait than this does not pace calls: it lets none
/// through.
pub const LONGEST_PACE: Duration = Duration::from_secs(60);

impl RunPaceSettings {
    /// Whether a run waits at all if a provider asks for this much time.
    #[must_use]
    pub fn accepts_requested_wait(&self, asked: Duration) -> bool {
        !self.max_outage.is_zero() || asked <= LONGEST_PACE
    }
}

/// Identifies one of the runs that share a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterRunId(pub(super) u32);

impl LimiterRunId {
    /// Its index among the shares of a limiter.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the runs that share a limiter.
#[derive(Debug, Clone)]
pub(super) struct RunShare {
    pub(super) settings: RunPaceSettings,
    /// The expected usage of its calls, from its own prompts.
    estimate: TokenEstimate,
    /// Its calls in flight.
    in_flight: usize,
    /// Whether its first call is sent alone; over once a call was answered.
    priming: bool,
}

impl RunShare {
    pub(super) fn new(settings: RunPaceSettings) -> Self {
        let estimate = TokenEstimate::new(settings.max_output);
        Self { settings, estimate, in_flight: 0, priming: settings.priming }
    }

    /// The limits set by its user: requests, tokens, input tokens, output tokens.
    pub(super) fn user_limits(&self) -> [Option<u64>; LIMIT_KINDS] {
        let MinuteLimits { requests, tokens, input_tokens, output_tokens } = self.settings.rates;
        [requests, tokens, input_tokens, output_tokens]
    }

    /// Whether the first call, which the others wait for, is in flight.
    pub(super) fn is_priming(&self) -> bool {
        self.priming && self.in_flight > 0
    }

    /// Whether the user's maximum number of its calls is in flight.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.settings.parallel.max_calls()
    }

    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
    }

    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn record_answer(&mut self, bytes: usize, usage: Option<&TokenUsage>) {
        self.priming = false;
        if let Some(usage) = usage {
            self.estimate.record_answer(bytes, usage);
        }
    }

    /// The requests, tokens, input tokens and output tokens that a call is expected to use.
    pub(super) fn expected_usage(&self, need: CallNeed) -> [f64; LIMIT_KINDS] {
        let (input, output) = (self.estimate.input(need.bytes), self.estimate.output());
        [1.0, input + self.set_aside(need).unwrap_or(output), input, output]
    }

    /// What the provider charges only when the call ends, for each kind.
    pub(super) fn usage_charged_late(&self, need: CallNeed) -> [f64; LIMIT_KINDS] {
        late_charges(self.estimate.output(), self.set_aside(need))
    }

    /// What the provider reserves for the answer, out of its limit on all tokens.
    fn set_aside(&self, need: CallNeed) -> Option<f64> {
        let most = need.output_cap.or(self.settings.max_output);
        most.filter(|_| self.settings.reserves_output).map(|most| most as f64)
    }

    /// What a call may use beyond that before the provider refuses it: the provider counts the prompt itself, and
    /// differently.
    pub(super) fn slack(&self, bytes: usize) -> [f64; LIMIT_KINDS] {
        let input = self.estimate.input_slack(bytes);
        [0.0, input, input, 0.0]
    }
}

/// How many calls all of these runs may have in flight together: the sum of their users' choices, unless one of them is
/// automatic.
pub(super) fn combined_parallelism<'s>(
    shares: impl Iterator<Item = &'s RunShare>,
) -> Option<CallParallelism> {
    shares.map(|share| share.settings.parallel).reduce(|one, other| match (one, other) {
        // The limit of this machine applies to all runs together.
        (CallParallelism::AutoUpTo(one), CallParallelism::AutoUpTo(other)) => {
            CallParallelism::AutoUpTo(one.min(other))
        }
        (CallParallelism::AutoUpTo(most), _) | (_, CallParallelism::AutoUpTo(most)) => {
            CallParallelism::AutoUpTo(most)
        }
        (CallParallelism::Auto, _) | (_, CallParallelism::Auto) => CallParallelism::Auto,
        (CallParallelism::AtMost(one), CallParallelism::AtMost(other)) => {
            CallParallelism::AtMost(one.saturating_add(other))
        }
    })
}

/// What the provider charges only when a call ends, for each kind.
pub(super) fn late_charges(output: f64, set_aside: Option<f64>) -> [f64; LIMIT_KINDS] {
    [0.0, if set_aside.is_some() { 0.0 } else { output }, 0.0, output]
}
