//! Statistics about many rows in constant memory.

use serde::Serialize;

/// Up to this many values are kept, so small runs get an exact median.
const EXACT: usize = 1024;
/// Buckets per doubling of the value: the median is accurate to 1.1 %.
const PER_OCTAVE: f64 = 64.0;
/// Enough octaves for a microsecond to a month, in milliseconds.
const BUCKETS: usize = 64 * 44;

/// Collects durations in milliseconds.
#[derive(Debug, Clone, Default)]
pub struct ValueStats {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    exact: Vec<f64>,
    buckets: Vec<u32>,
}

/// The statistics of a [`ValueStats`]; an empty one has only its count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ValueStatsSummary {
    /// The number of values.
    pub count: u64,
    /// The minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The median; exact up to 1,024 values, within 1.1 % beyond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl ValueStats {
    /// Adds one value.
    pub fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
        if self.exact.len() < EXACT {
            self.exact.push(value);
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// Adds the values of other statistics.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = if self.count == 0 { other.max } else { self.max.max(other.max) };
        self.count += other.count;
        self.sum += other.sum;
        let room = EXACT.saturating_sub(self.exact.len());
        self.exact.extend(other.exact.iter().take(room));
        self.buckets.resize(BUCKETS, 0);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The statistics so far.
    #[must_use]
    pub fn summary(&self) -> ValueStatsSummary {
        let some = |value: f64| (self.count > 0).then(|| round_to_three_decimals(value));
        ValueStatsSummary {
            count: self.count,
            min: some(self.min),
            mean: some(self.sum / self.count.max(1) as f64),
            median: some(self.median()),
            max: some(self.max),
        }
    }

    /// The quantile for this share of the values; exact up to 1,024 values, within 1.1 % beyond.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (value, count) in self.values() {
            seen += count;
            if seen >= rank {
                return Some(round_to_three_decimals(value));
            }
        }
        None
    }

    /// The number of values from each edge up to the next; values equal to the last edge count in the last range.
    #[must_use]
    pub fn count_by_range(&self, edges: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; edges.len().saturating_sub(1)];
        let last = counts.len().saturating_sub(1);
        for (value, count) in self.values() {
            let range = edges.partition_point(|edge| *edge <= value).saturating_sub(1).min(last);
            if let Some(place) = counts.get_mut(range) {
                *place += count;
            }
        }
        counts
    }

    /// The values in ascending order, each with its count, as exactly as they are known.
    fn values(&self) -> Vec<(f64, u64)> {
        if self.count as usize <= EXACT {
            let mut sorted = self.exact.clone();
            sorted.sort_by(f64::total_cmp);
            return sorted.into_iter().map(|value| (value, 1)).collect();
        }
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled
            .map(|(bucket, count)| (value_of(bucket).clamp(self.min, self.max), u64::from(*count)))
            .collect()
    }

    fn median(&self) -> f64 {
        if self.count as usize <= EXACT {
            let mut sorted = self.exact.clone();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.len() / 2;
            return match sorted.as_slice() {
                [] => 0.0,
                values if values.len() % 2 == 1 => values.get(middle).copied().unwrap_or_default(),
                values => values.iter().skip(middle - 1).take(2).sum::<f64>() / 2.0,
            };
        }
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen * 2 >= self.count {
                return value_of(index).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// Milliseconds with three decimals; clocks are not more precise.
#[must_use]
pub fn round_to_three_decimals(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn bucket_of(value: f64) -> usize {
    let octaves = (value.max(0.001) / 0.001).log2();
    ((octaves * PER_OCTAVE) as usize).min(BUCKETS - 1)
}

fn value_of(bucket: usize) -> f64 {
    0.001 * ((bucket as f64 + 0.5) / PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sets_are_exact_and_large_ones_within_two_percent() {
        let mut spread = ValueStats::default();
        assert_eq!(spread.summary().median, None);
        for value in [4.0, 1.0, 3.0, 2.0] {
            spread.add(value);
        }
        let summary = spread.summary();
        assert_eq!(
            (summary.min, summary.mean, summary.median, summary.max),
            (Some(1.0), Some(2.5), Some(2.5), Some(4.0))
        );
        let mut large = ValueStats::default();
        (1..=100_001).for_each(|value| large.add(f64::from(value)));
        let median = large.summary().median.unwrap();
        assert!((median / 50_001.0 - 1.0).abs() < 0.02, "{median}");
    }

    #[test]
    fn quantiles_and_ranges_cover_every_value() {
        let mut spread = ValueStats::default();
        assert_eq!((spread.quantile(0.5), spread.count_by_range(&[0.0, 1.0])), (None, vec![0]));
        (1..=100).for_each(|value| spread.add(f64::from(value)));
        assert_eq!([0.0, 0.5, 0.9, 0.99, 1.0].map(|share| spread.quantile(share)), {
            [Some(1.0), Some(50.0), Some(90.0), Some(99.0), Some(100.0)]
        });
        assert_eq!(spread.count_by_range(&[1.0, 10.0, 50.0, 100.0]), [9, 40, 51]);
        (1..=100_000).for_each(|value| spread.add(f64::from(value % 1000)));
        let ninety = spread.quantile(0.9).unwrap();
        assert!((ninety / 900.0 - 1.0).abs() < 0.02, "{ninety}");
        assert_eq!(spread.count_by_range(&[0.0, 10.0, 2000.0]).iter().sum::<u64>(), 100_100);
    }
}
