//! Measures how much of the quota was used.

use std::time::Duration;

use super::server::{Sample, Server};

/// A bucket with less than this share left is being waited for.
const EMPTY: f64 = 0.05;
/// The maximum length of the initial burst.
const BURST: Duration = Duration::from_secs(60);
/// Shorter intervals prove nothing.
const LEAST: Duration = Duration::from_secs(90);
const LAST: Duration = Duration::from_secs(60);

/// The used share of what was refilled, from the end of the first burst up to the last minute, for each interval with
/// constant limits. Among several limits, the one that was used most counts.
pub(crate) fn utilisation(server: &Server) -> Vec<f64> {
    let books = server.books();
    // Once all rows were sent, nothing is left to use the quota.
    let last_row = books.samples.iter().rfind(|sample| sample.is_first_try);
    let Some(end) = last_row.map(|sample| sample.at.saturating_sub(LAST)) else { return vec![] };
    let change = server.test_run.change.map_or(Duration::MAX, |(at, _)| at);
    let before: Vec<&Sample> = books.samples.iter().filter(|sample| sample.at < change.min(end)).collect();
    let after: Vec<&Sample> =
        books.samples.iter().filter(|sample| (change..end.max(change)).contains(&sample.at)).collect();
    [before, after].iter().filter_map(|samples| used(samples)).collect()
}

fn used(samples: &[&Sample]) -> Option<f64> {
    let begin = samples.first()?.at + BURST;
    let is_over = |sample: &&&Sample| {
        sample.at >= begin || sample.buckets.iter().any(|bucket| bucket.level < bucket.limit * EMPTY)
    };
    let (first, last) = (samples.iter().find(is_over)?, samples.last()?);
    if last.at.saturating_sub(first.at) < LEAST {
        return None;
    }
    let shares = first.buckets.iter().zip(&last.buckets);
    shares.map(|(first, last)| (last.used - first.used) / (last.granted - first.granted)).reduce(f64::max)
}
