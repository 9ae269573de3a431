//! A history of how much had been sent by when.

use std::collections::VecDeque;
use std::time::Duration;

/// Calls within this time of each other are recorded as one.
const GRAIN: Duration = Duration::from_millis(10);
/// The maximum number of entries; older times are treated like the oldest entry.
const MOST: usize = 4_096;

/// The total taken from a bucket at the end of each interval in which calls were sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SentHistory {
    first: f64,
    steps: VecDeque<(Duration, f64)>,
}

impl SentHistory {
    /// Starts with what earlier calls had taken at unknown times.
    pub(super) fn new(first: f64) -> Self {
        Self { first, steps: VecDeque::new() }
    }

    /// `taken` is the total taken by `now`.
    pub(super) fn add(&mut self, now: Duration, taken: f64) {
        match self.steps.back_mut() {
            Some((began, last)) if now.saturating_sub(*began) < GRAIN => *last = taken,
            _ => self.steps.push_back((now, taken)),
        }
        if self.steps.len() > MOST
            && let Some((_, taken)) = self.steps.pop_front()
        {
            self.first = taken;
        }
    }

    /// The total taken by `then`.
    pub(super) fn taken_by(&self, then: Duration) -> f64 {
        let after = self.steps.partition_point(|(began, _)| *began <= then);
        let step = after.checked_sub(1).and_then(|last| self.steps.get(last));
        step.map_or(self.first, |(_, taken)| *taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_by_a_time_is_found_and_memory_is_bounded() {
        let at = Duration::from_millis;
        let mut sent = SentHistory::new(7.0);
        for (time, taken) in [(100, 8.0), (105, 9.0), (200, 10.0)] {
            sent.add(at(time), taken);
        }
        let found = [99, 100, 150, 200, 900].map(|time| sent.taken_by(at(time)));
        assert_eq!(found, [7.0, 9.0, 9.0, 10.0, 10.0]);
        (0..10_000).for_each(|step| sent.add(at(1_000 + step * 20), step as f64));
        assert_eq!((sent.steps.len(), sent.taken_by(at(0))), (MOST, 5_903.0));
    }
}
