//! The usage of rows, in compact form, so that a later run can be estimated.

use serde::{Deserialize, Serialize};

/// The number of rows kept for estimates.
const KEPT: usize = 512;

/// Tokens of answered rows: their totals, and an evenly spaced sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredRowUsage {
    /// The number of answered rows.
    pub rows: u64,
    /// The total of their prompt tokens.
    pub input_tokens: u64,
    /// The total of prompt tokens that were read from the provider's cache.
    pub cached_tokens: u64,
    /// The total time of their answers, in milliseconds.
    pub milliseconds: u64,
    /// The generated tokens of the sampled rows.
    pub output_tokens: Vec<u64>,
}

impl AnsweredRowUsage {
    /// The share of prompt tokens that came from the provider's cache.
    #[must_use]
    pub fn cached_share(&self) -> f64 {
        self.cached_tokens as f64 / self.input_tokens.max(1) as f64
    }

    /// Adds the rows of a later part of the same run. Of the answers' lengths, those of both are kept alternately.
    pub fn merge(&mut self, later: &Self) {
        self.rows += later.rows;
        self.input_tokens = self.input_tokens.saturating_add(later.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(later.cached_tokens);
        self.milliseconds = self.milliseconds.saturating_add(later.milliseconds);
        let all = self.output_tokens.len() + later.output_tokens.len();
        self.output_tokens.extend(&later.output_tokens);
        if all > KEPT {
            let kept = (0..KEPT).filter_map(|place| self.output_tokens.get(place * all / KEPT).copied());
            self.output_tokens = kept.collect();
        }
    }

    /// Adds a row. Which rows are kept depends on their count alone, so the same run leaves the same history.
    pub fn add_row(&mut self, usage: &rowmill_types::TokenUsage, took: std::time::Duration) {
        self.rows += 1;
        // The numbers that a provider reports need not make sense.
        self.input_tokens = self.input_tokens.saturating_add(usage.input);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cached);
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.milliseconds = self.milliseconds.saturating_add(milliseconds);
        if self.output_tokens.len() < KEPT {
            self.output_tokens.push(usage.output);
            return;
        }
        let drawn = xxhash_rust::xxh3::xxh3_64(&self.rows.to_le_bytes()) % self.rows;
        if let Some(place) = self.output_tokens.get_mut(drawn as usize) {
            *place = usage.output;
        }
    }
}

#[cfg(test)]
mod tests {
    use rowmill_types::TokenUsage;

    use super::*;

    #[test]
    fn usage_beyond_all_reason_is_taken_in() {
        let mut history = AnsweredRowUsage::default();
        for _ in 0..3 {
            let absurd =
                TokenUsage { input: u64::MAX, cached: u64::MAX, output: u64::MAX, ..TokenUsage::default() };
            history.add_row(&absurd, std::time::Duration::MAX);
        }
        assert_eq!((history.rows, history.input_tokens, history.milliseconds), (3, u64::MAX, u64::MAX));
    }

    #[test]
    fn the_rows_of_two_parts_of_a_run_are_both_kept() {
        let part = |outputs: std::ops::Range<u64>| {
            let mut history = AnsweredRowUsage::default();
            for output in outputs {
                history.add_row(
                    &TokenUsage { output, input: 1, ..TokenUsage::default() },
                    std::time::Duration::ZERO,
                );
            }
            history
        };
        let mut both = part(0..500);
        both.merge(&part(500..1_000));
        assert_eq!((both.rows, both.input_tokens, both.output_tokens.len()), (1_000, 1_000, KEPT));
        let late = both.output_tokens.iter().filter(|output| **output >= 500).count();
        assert!((200..=312).contains(&late), "{late} of {KEPT} are from the second part");
    }

    #[test]
    fn a_long_run_keeps_an_even_choice_of_its_rows() {
        let mut history = AnsweredRowUsage::default();
        for output in 0..100_000 {
            history.add_row(
                &TokenUsage { input: 2, output, ..TokenUsage::default() },
                std::time::Duration::from_millis(3),
            );
        }
        assert_eq!((history.rows, history.input_tokens, history.milliseconds), (100_000, 200_000, 300_000));
        assert_eq!(history.output_tokens.len(), KEPT);
        let late = history.output_tokens.iter().filter(|&&output| output >= 50_000).count();
        assert!((200..312).contains(&late), "{late}");
    }
}
