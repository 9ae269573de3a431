//! When jobs are looked at, and when a refused submission is tried again.

use std::time::Duration;

/// The first wait between two looks at a job.
const FIRST_POLL: Duration = Duration::from_secs(10);
/// The longest wait between two looks at a job.
const LONGEST_POLL: Duration = Duration::from_secs(300);
/// The first wait after the provider had no room for a job.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// How often jobs are looked at: less and less often, until one of them changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollPace {
    next: Duration,
    first: Duration,
}

impl Default for PollPace {
    fn default() -> Self {
        Self::starting_with(FIRST_POLL)
    }
}

impl PollPace {
    /// A pace whose first wait is this.
    #[must_use]
    pub fn starting_with(first: Duration) -> Self {
        Self { next: first, first }
    }

    /// The wait before the next look. `asked` is the wait that the provider asked for; `jitter` is from 0 to 1 and
    /// differs between processes, so that they do not all call at once.
    pub fn next_wait(&mut self, asked: Option<Duration>, jitter: f64) -> Duration {
        let wait = self.next.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0));
        self.next = (self.next * 3 / 2).min(LONGEST_POLL.max(self.first));
        asked.map_or(wait, |asked| asked.max(wait))
    }

    /// Something has changed: look soon again.
    pub fn restart(&mut self) {
        self.next = self.first;
    }
}

/// How long submissions wait after the provider had no room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubmitPause {
    refusals: u32,
}

impl SubmitPause {
    /// The provider had no room; the wait before the next attempt.
    pub fn record_refusal(&mut self, asked: Option<Duration>) -> Duration {
        let wait = FIRST_PAUSE.saturating_mul(1 << self.refusals.min(10)).min(LONGEST_PAUSE);
        self.refusals = self.refusals.saturating_add(1);
        asked.map_or(wait, |asked| asked.max(FIRST_PAUSE))
    }

    /// A job was accepted.
    pub fn record_acceptance(&mut self) {
        self.refusals = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_looked_at_less_and_less_often_until_something_changes() {
        let mut pace = PollPace::default();
        let waits: Vec<_> = (0..12).map(|_| pace.next_wait(None, 0.0)).collect();
        assert_eq!(waits[0], Duration::from_secs(10));
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(waits.last(), Some(&Duration::from_secs(300)));
        pace.restart();
        assert_eq!(pace.next_wait(None, 0.0), Duration::from_secs(10));
    }

    #[test]
    fn a_wait_that_the_provider_asks_for_is_never_shortened() {
        let mut pace = PollPace::default();
        assert_eq!(pace.next_wait(Some(Duration::from_secs(900)), 1.0), Duration::from_secs(900));
        assert_eq!(pace.next_wait(Some(Duration::from_secs(1)), 0.0), Duration::from_secs(15));
        let mut pause = SubmitPause::default();
        assert_eq!(pause.record_refusal(Some(Duration::from_secs(1_200))), Duration::from_secs(1_200));
    }

    #[test]
    fn a_full_queue_is_tried_again_after_longer_and_longer_waits() {
        let mut pause = SubmitPause::default();
        let waits: Vec<_> = (0..7).map(|_| pause.record_refusal(None).as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 600, 600]);
        pause.record_acceptance();
        assert_eq!(pause.record_refusal(None).as_secs(), 30);
    }
}
