//! Distributions, as histograms whose bars have round bounds.

use rowmill_core::stats::ValueStats;
use serde::Serialize;

/// The maximum number of bars.
const MOST_BARS: usize = 12;
/// The maximum number of bars of equal width.
const FEW_BARS: f64 = 9.0;

/// The distribution of a set of values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TelemetryDistribution {
    /// The number of values.
    pub count: u64,
    /// The minimum.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
    /// The number of values in each range.
    pub bars: Vec<HistogramBar>,
}

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HistogramBar {
    /// The lower bound, which belongs to the range.
    pub from: f64,
    /// The upper bound, which belongs to the next range.
    pub to: f64,
    /// The number of values in the range.
    pub count: u64,
}

/// The kind of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueScale {
    /// Counts: whole numbers.
    Counted,
    /// Measurements: any numbers.
    Measured,
}

impl TelemetryDistribution {
    /// The distribution of the collected values; `None` if there are none.
    pub(super) fn from_stats(spread: &ValueStats, values: ValueScale) -> Option<Self> {
        let summary = spread.summary();
        let (min, max) = (summary.min?, summary.max?);
        let edges = edges(min, max);
        // For many values, a spread knows only their approximate size, but counts are whole numbers.
        let (shift, quantile): (f64, fn(f64) -> f64) = match values {
            ValueScale::Counted => (0.5, f64::round),
            ValueScale::Measured => (0.0, |value| value),
        };
        let shifted: Vec<f64> = edges.iter().map(|edge| edge - shift).collect();
        let counts = spread.count_by_range(&shifted);
        let bars = edges.windows(2).zip(counts).filter_map(|(range, count)| {
            let [from, to] = range else { return None };
            Some(HistogramBar { from: *from, to: *to, count })
        });
        Some(Self {
            count: summary.count,
            min,
            mean: summary.mean?,
            p50: quantile(spread.quantile(0.5)?),
            p90: quantile(spread.quantile(0.9)?),
            p99: quantile(spread.quantile(0.99)?),
            max,
            bars: bars.collect(),
        })
    }
}

/// Round numbers from below `min` to above `max`: evenly spaced if the values are close, otherwise
/// growing as 1, 2, 5, 10.
fn edges(min: f64, max: f64) -> Vec<f64> {
    if max >= 20.0 && max > 8.0 * min {
        let edges = growing(min, max, &[1.0, 2.0, 5.0]);
        return if edges.len() > MOST_BARS + 1 { growing(min, max, &[1.0]) } else { edges };
    }
    let steps = (0..).flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(decade)));
    let range = |step: f64| ((min / step).floor(), (max / step).floor() + 1.0);
    let fits = |step: &f64| range(*step).1 - range(*step).0 <= FEW_BARS;
    // Values are below twenty or close to each other, so a few steps are enough.
    let step = steps.take(64).find(fits).unwrap_or(1.0);
    let (first, last) = range(step);
    (0..=(last - first) as usize).map(|at| (first + at as f64) * step).collect()
}

/// The multiples of powers of ten by `factors` that surround `min` and `max`.
fn growing(min: f64, max: f64, factors: &[f64]) -> Vec<f64> {
    let mut edges = Vec::new();
    if min < 1.0 {
        edges.push(0.0);
    }
    let mut decade = 10f64.powf(min.max(1.0).log10().floor());
    while edges.last().is_none_or(|last| *last <= max) {
        edges.extend(factors.iter().map(|factor| factor * decade));
        decade *= 10.0;
    }
    let below = edges.partition_point(|edge| *edge <= min).saturating_sub(1);
    let above = edges.partition_point(|edge| *edge <= max);
    edges.truncate(above + 1);
    edges.drain(..below);
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_round_numbers_around_all_values() {
        assert_eq!(edges(3.0, 3.0), [3.0, 4.0]);
        assert_eq!(edges(0.0, 4.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(edges(31.0, 47.0), [30.0, 32.0, 34.0, 36.0, 38.0, 40.0, 42.0, 44.0, 46.0, 48.0]);
        assert_eq!(edges(12.0, 340.0), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(edges(0.0, 25.0), [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(edges(5.0, 60_000.0), [1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn what_is_counted_is_whole_however_many_there_are() {
        let mut spread = ValueStats::default();
        (0..30_000).for_each(|at| spread.add(f64::from(at % 25)));
        let found = TelemetryDistribution::from_stats(&spread, ValueScale::Counted).unwrap();
        assert_eq!((found.p50, found.p90), (12.0, 22.0));
        let counts: Vec<u64> = found.bars.iter().map(|bar| bar.count / 1200).collect();
        assert_eq!(counts, [1, 1, 3, 5, 10, 5]);
    }

    #[test]
    fn every_value_is_in_one_bar() {
        for values in [vec![7.0; 5], vec![0.0, 0.2, 900_000.0], (0..3000).map(f64::from).collect()] {
            let mut spread = ValueStats::default();
            values.iter().for_each(|value| spread.add(*value));
            let found = TelemetryDistribution::from_stats(&spread, ValueScale::Measured).unwrap();
            assert_eq!(found.bars.iter().map(|bar| bar.count).sum::<u64>(), values.len() as u64);
            assert!(found.bars.len() <= MOST_BARS, "{}", found.bars.len());
            let (first, last) = (found.bars[0], found.bars[found.bars.len() - 1]);
            assert!(first.from <= found.min && found.max <= last.to, "{found:?}");
        }
    }
}
