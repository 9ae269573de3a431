//! The clock of jobs: it can be faster than the real one, stopped, and moved on.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The time of jobs, counted from the start of the simulator.
#[derive(Debug)]
pub(crate) struct JobClock {
    start: Timestamp,
    scale: f64,
    /// A time of jobs, and the moment at which it was that time.
    time: Duration,
    since: Instant,
    is_held: bool,
}

impl JobClock {
    /// A clock that runs `scale` times as fast as the real one.
    pub(crate) fn new(scale: f64, now: Instant) -> Self {
        Self { start: Timestamp::now(), scale, time: Duration::ZERO, since: now, is_held: false }
    }

    /// The time of jobs at a moment.
    pub(crate) fn at(&self, now: Instant) -> Duration {
        if self.is_held {
            return self.time;
        }
        self.time + now.saturating_duration_since(self.since).mul_f64(self.scale)
    }

    /// Moves it on, whether it is stopped or not.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.time += by;
    }

    pub(crate) fn hold(&mut self, now: Instant) {
        self.time = self.at(now);
        self.is_held = true;
    }

    /// Lets it run on from where it stands.
    pub(crate) fn release(&mut self, now: Instant) {
        self.time = self.at(now);
        self.since = now;
        self.is_held = false;
    }

    /// The real time until a time of jobs; `None` if it stands still.
    pub(crate) fn wait_until(&self, time: Duration, now: Instant) -> Option<Duration> {
        if self.is_held || self.scale <= 0.0 {
            return None;
        }
        let left = time.saturating_sub(self.at(now)).as_secs_f64() / self.scale;
        // Rounded up, because a wait that ends early would only be repeated.
        Some(Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX) + Duration::from_millis(1))
    }

    /// Seconds since 1970.
    pub(crate) fn unix(&self, time: Duration) -> i64 {
        self.start.as_second().saturating_add_unsigned(time.as_secs())
    }

    /// The time as vendors write it.
    pub(crate) fn text(&self, time: Duration) -> String {
        let moment =
            jiff::SignedDuration::try_from(time).ok().and_then(|time| self.start.checked_add(time).ok());
        format!("{:.6}", moment.unwrap_or(self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn it_runs_at_its_scale_stands_and_runs_on() {
        let start = Instant::now();
        let mut clock = JobClock::new(60.0, start);
        let at = |clock: &JobClock, second| clock.at(start + seconds(second)).as_secs();
        assert_eq!(at(&clock, 10), 600);
        clock.hold(start + seconds(10));
        assert_eq!(at(&clock, 20), 600);
        clock.advance(seconds(5));
        assert_eq!((at(&clock, 20), clock.wait_until(seconds(700), start)), (605, None));
        clock.release(start + seconds(20));
        assert_eq!((at(&clock, 20), at(&clock, 21)), (605, 665));
        clock.advance(seconds(100));
        assert_eq!(at(&clock, 21), 765);
        let wait = clock.wait_until(seconds(825), start + seconds(21)).unwrap();
        assert_eq!(wait.as_secs(), 1);
    }
}
