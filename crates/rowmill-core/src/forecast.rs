//! Estimates what a run will use: intervals from samples, and durations from limits.

use std::time::Duration;

use serde::Serialize;

use crate::limits::MinuteLimits;

/// The number of bootstrap draws from a sample.
const DRAWS: u64 = 2_000;
/// The share of draws outside the interval, on each side.
const TAIL: f64 = 0.005;

/// An estimated number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ForecastInterval {
    /// The lower bound.
    pub low: f64,
    /// The expected value; `None` if only the bounds are known.
    pub expected: Option<f64>,
    /// The upper bound.
    pub high: f64,
}

impl ForecastInterval {
    /// A number that is known exactly.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { low: value, expected: Some(value), high: value }
    }

    /// A number that is known to within some percent.
    #[must_use]
    pub fn from_value_and_tolerance(value: f64, percent: u32) -> Self {
        let share = f64::from(percent) / 100.0;
        Self { low: value * (1.0 - share), expected: Some(value), high: value * (1.0 + share) }
    }

    /// A number of which only the maximum is known.
    #[must_use]
    pub fn at_most(most: f64) -> Self {
        Self { low: 0.0, expected: None, high: most }
    }

    /// The sum of `rows` values, estimated from `sample` with 99 % confidence by bootstrapping, which needs no
    /// assumption about the distribution. `None` without a sample. The same sample gives the same interval.
    ///
    /// ```
    /// # use rowmill_core::forecast::ForecastInterval;
    /// let total = ForecastInterval::total_from_sample(&[10, 20, 30, 40], 1_000).unwrap();
    /// assert_eq!(total.expected, Some(25_000.0));
    /// assert!(total.low < 20_000.0 && total.high > 30_000.0);
    /// ```
    #[must_use]
    pub fn total_from_sample(sample: &[u64], rows: u64) -> Option<Self> {
        let count = sample.len() as u64;
        if count == 0 {
            return None;
        }
        let scale = rows as f64 / count as f64;
        let expected = sample.iter().sum::<u64>() as f64 * scale;
        let mut seed = 0x5EED_u64;
        let mut totals: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let drawn = (0..count).filter_map(|_| sample.get((next(&mut seed) % count) as usize));
                drawn.sum::<u64>() as f64 * scale
            })
            .collect();
        totals.sort_by(f64::total_cmp);
        let at = |share: f64| totals.get((share * (DRAWS - 1) as f64) as usize).copied().unwrap_or(expected);
        // A small sample underestimates its own spread; a single row shows none.
        let widen = (count as f64 / (count as f64 - 1.0).max(0.5)).sqrt();
        let low = expected - (expected - at(TAIL)) * widen;
        let high = expected + (at(1.0 - TAIL) - expected) * widen;
        Some(Self { low: low.max(0.0), expected: Some(expected), high })
    }

    /// Applies a monotonically increasing function.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { low: of(self.low), expected: self.expected.map(&of), high: of(self.high) }
    }
}

/// A generator of well-mixed numbers (`SplitMix64`).
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// How long calls with this many tokens take at these limits per minute; `None` if no limit is known, or if one of them
/// counts generated tokens and their number is unknown. The initial burst that a provider allows is not taken into
/// account.
#[must_use]
pub fn estimate_duration_at_limits(
    limits: MinuteLimits,
    requests: u64,
    input: f64,
    output: Option<f64>,
) -> Option<Duration> {
    let counts_output = limits.tokens.is_some() || limits.output_tokens.is_some();
    if counts_output && output.is_none() {
        return None;
    }
    let output = output.unwrap_or_default();
    let minutes = [
        limits.requests.map(|limit| requests as f64 / limit as f64),
        limits.tokens.map(|limit| (input + output) / limit as f64),
        limits.input_tokens.map(|limit| input / limit as f64),
        limits.output_tokens.map(|limit| output / limit as f64),
    ];
    let longest = minutes
        .into_iter()
        .flatten()
        .fold(None, |most: Option<f64>, minutes| Some(most.map_or(minutes, |most| most.max(minutes))))?;
    Duration::try_from_secs_f64(longest * 60.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut seed = 7;
        let mut held = 0;
        for _ in 0..200 {
            // Long answers are rare and very long, as in practice.
            let length = |seed: &mut u64| {
                let share = (next(seed) >> 11) as f64 / (1u64 << 53) as f64;
                (20.0 / (1.0 - share * 0.98)) as u64
            };
            let population: Vec<u64> = (0..2_000).map(|_| length(&mut seed)).collect();
            let truth = population.iter().sum::<u64>() as f64;
            let sample: Vec<u64> = population.iter().copied().step_by(20).collect();
            let interval = ForecastInterval::total_from_sample(&sample, 2_000).unwrap();
            held += u32::from((interval.low..=interval.high).contains(&truth));
        }
        assert!(held >= 180, "{held} of 200");
    }

    #[test]
    fn a_constant_is_known_exactly_and_nothing_from_nothing() {
        assert_eq!(ForecastInterval::total_from_sample(&[7; 30], 100), Some(ForecastInterval::exact(700.0)));
        assert_eq!(ForecastInterval::total_from_sample(&[], 100), None);
    }

    #[test]
    fn the_slowest_limit_decides_how_long_it_takes() {
        let limits = MinuteLimits { requests: Some(600), tokens: Some(60_000), ..MinuteLimits::default() };
        assert_eq!(
            estimate_duration_at_limits(limits, 6_000, 500_000.0, Some(100_000.0)),
            Some(Duration::from_secs(600))
        );
        assert_eq!(
            estimate_duration_at_limits(limits, 60, 500_000.0, Some(100_000.0)),
            Some(Duration::from_secs(600))
        );
        assert_eq!(estimate_duration_at_limits(MinuteLimits::default(), 60, 1.0, Some(1.0)), None);
        assert_eq!(
            estimate_duration_at_limits(limits, 60, 1.0, None),
            None,
            "one limit counts what nobody knows"
        );
        let requests_only = MinuteLimits { tokens: None, ..limits };
        assert_eq!(estimate_duration_at_limits(requests_only, 600, 1.0, None), Some(Duration::from_secs(60)));
    }
}
