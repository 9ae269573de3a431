//! How much had been sent by when.

use std::collections::VecDeque;
use std::time::Duration;

/// Calls within this time of each other are not told apart.
const GRAIN: Duration = Duration::from_millis(10);
/// What is remembered at most; what is older is told as the oldest.
const MOST: usize = 4_096;

/// What was taken from a bucket by the end of each time in which calls were sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sent {
    first: f64,
    steps: VecDeque<(Duration, f64)>,
}

impl Sent {
    /// Begins with what calls had taken whose times nobody noted.
    pub(super) fn new(first: f64) -> Self {
        Self { first, steps: VecDeque::new() }
    }

    /// `taken` is everything that was taken by `now`.
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

    /// Everything that was taken by `then`.
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
        let mut sent = Sent::new(7.0);
        for (time, taken) in [(100, 8.0), (105, 9.0), (200, 10.0)] {
            sent.add(at(time), taken);
        }
        let found = [99, 100, 150, 200, 900].map(|time| sent.taken_by(at(time)));
        assert_eq!(found, [7.0, 9.0, 9.0, 10.0, 10.0]);
        (0..10_000).for_each(|step| sent.add(at(1_000 + step * 20), step as f64));
        assert_eq!((sent.steps.len(), sent.taken_by(at(0))), (MOST, 5_903.0));
    }
}
