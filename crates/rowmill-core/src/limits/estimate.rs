//! Estimates the usage of a call from earlier calls.

use rowmill_types::TokenUsage;

/// The number of answers after which an average has lost half of its weight.
const MEMORY: f64 = 50.0;
/// The assumed tokens of an answer before the first one.
const FIRST_OUTPUT: f64 = 200.0;
/// The assumed bytes per prompt token before the first count.
const FIRST_BYTES_PER_TOKEN: f64 = 4.0;

/// An estimate may be wrong by this multiple of the average deviation.
const DEVIATIONS: f64 = 3.0;

/// Moving averages that convert bytes to tokens and estimate the length of an answer.
#[derive(Debug, Clone)]
pub(super) struct TokenEstimate {
    tokens_per_byte: MovingAverage,
    output: MovingAverage,
}

impl TokenEstimate {
    /// The estimate before the first call. `max_output` limits the length of an answer.
    pub(super) fn new(max_output: Option<u64>) -> Self {
        let first = max_output.map_or(FIRST_OUTPUT, |most| (most as f64).min(FIRST_OUTPUT));
        Self {
            tokens_per_byte: MovingAverage::new(1.0 / FIRST_BYTES_PER_TOKEN),
            output: MovingAverage::new(first),
        }
    }

    pub(super) fn input(&self, bytes: usize) -> f64 {
        (bytes as f64 * self.tokens_per_byte.value).max(1.0)
    }

    /// How many tokens the prompt may have beyond the estimate.
    pub(super) fn input_slack(&self, bytes: usize) -> f64 {
        bytes as f64 * self.tokens_per_byte.deviation * DEVIATIONS
    }

    pub(super) fn output(&self) -> f64 {
        self.output.value
    }

    pub(super) fn record_answer(&mut self, bytes: usize, usage: &TokenUsage) {
        if bytes > 0 && usage.input > 0 {
            self.tokens_per_byte.add(usage.input as f64 / bytes as f64);
        }
        self.output.add(usage.output as f64);
    }
}

#[derive(Debug, Clone)]
struct MovingAverage {
    value: f64,
    /// The average distance of values from the average.
    deviation: f64,
    seen: f64,
}

impl MovingAverage {
    fn new(value: f64) -> Self {
        Self { value, deviation: 0.0, seen: 0.0 }
    }

    fn add(&mut self, value: f64) {
        self.seen = (self.seen + 1.0).min(MEMORY);
        let off = if self.seen > 1.0 { (value - self.value).abs() } else { 0.0 };
        self.value += (value - self.value) / self.seen;
        self.deviation += (off - self.deviation) / self.seen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answers_replace_the_guess_and_later_ones_are_averaged() {
        let mut estimate = TokenEstimate::new(Some(64));
        assert_eq!(estimate.output(), 64.0);
        assert_eq!(estimate.input(400), 100.0);
        for output in [10, 30] {
            estimate.record_answer(300, &TokenUsage { input: 100, output, ..TokenUsage::default() });
        }
        assert_eq!(estimate.output(), 20.0);
        assert!((estimate.input(600) - 200.0).abs() < 1e-9);
        assert_eq!(estimate.input_slack(600), 0.0);
    }

    #[test]
    fn the_more_prompts_differ_the_more_slack_they_need() {
        let mut estimate = TokenEstimate::new(None);
        for input in [90, 110, 90, 110, 90, 110, 90, 110] {
            estimate.record_answer(1_000, &TokenUsage { input, ..TokenUsage::default() });
        }
        let slack = estimate.input_slack(1_000);
        assert!((20.0..60.0).contains(&slack), "{slack}");
    }
}
