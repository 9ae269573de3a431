//! A bucket that mirrors one at the provider: filled at a steady rate, emptied by calls.

use std::time::Duration;

use rowmill_types::RateWindow;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;
/// A limit that seems to be renewed more slowly than this is one per hour or per day.
const LONGER_THAN_MINUTES: f64 = 1_200.0;
/// How much of a difference in our favour is believed with each answer.
const TRUST: f64 = 0.1;
/// A limit that a user sets holds no more than so many seconds' worth at once, because
/// nobody knows how large a burst the provider takes.
const BURST_SECONDS: f64 = 5.0;

/// What is left of a limit, as far as this process can know.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bucket {
    /// What is granted in a period.
    limit: f64,
    period: f64,
    capacity: f64,
    /// What is left; below nothing when calls used more than was expected.
    level: f64,
    at: Duration,
    /// Everything that was ever taken, to tell what was sent after some call.
    taken: f64,
    /// The part of it that the provider charges only when calls end.
    pending: f64,
    /// Kept back, so that jitter on the way does not empty the provider's bucket.
    margin: f64,
}

/// Where a bucket stood when a call was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mark {
    taken: f64,
    charged: f64,
    later: f64,
}

impl Mark {
    /// A call that was sent before anything was known of the limit.
    pub(super) fn before(cost: f64, later: f64) -> Self {
        Self { taken: 0.0, charged: cost, later }
    }

    /// What the call was charged when it was sent.
    pub(super) fn charged(&self) -> f64 {
        self.charged
    }
}

/// What calls in flight were charged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Flying {
    charged: f64,
    later: f64,
}

impl Flying {
    pub(super) fn begin(&mut self, mark: &Mark) {
        self.charged += mark.charged;
        self.later += mark.later;
    }

    pub(super) fn end(&mut self, mark: &Mark) {
        self.charged = (self.charged - mark.charged).max(0.0);
        self.later = (self.later - mark.later).max(0.0);
    }
}

impl Bucket {
    /// A limit per minute that a user set.
    pub(super) fn set(per_minute: u64, now: Duration) -> Self {
        let limit = per_minute as f64;
        let capacity = (limit * BURST_SECONDS / MINUTE).max(1.0);
        Self {
            limit,
            period: MINUTE,
            capacity,
            level: capacity,
            at: now,
            taken: 0.0,
            pending: 0.0,
            margin: 0.0,
        }
    }

    /// A limit that an answer told. Calls that are in flight now may have come after the
    /// one that was answered, so that what they use is not in what it told.
    pub(super) fn learned(window: RateWindow, flying: Flying, now: Duration) -> Self {
        let mut bucket = Self {
            limit: window.limit as f64,
            period: MINUTE,
            capacity: window.limit as f64,
            level: window.remaining as f64 - flying.charged,
            at: now,
            taken: 0.0,
            pending: flying.later,
            margin: 0.0,
        };
        bucket.reshape(window);
        bucket
    }

    /// The limit as one per minute, for people.
    pub(super) fn per_minute(&self) -> u64 {
        (self.limit * MINUTE / self.period).round() as u64
    }

    fn rate(&self) -> f64 {
        self.limit / self.period
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.level = (self.level + passed * self.rate()).min(self.capacity);
        self.at = self.at.max(now);
    }

    /// How long until `cost` is there; nothing if it is there now. What is larger than the
    /// bucket waits until it is full.
    pub(super) fn wait(&mut self, cost: f64, now: Duration) -> Duration {
        self.refill(now);
        let lacking = (cost + self.margin).min(self.capacity) - self.level;
        if lacking <= 1e-9 {
            return Duration::ZERO;
        }
        // A day at most, so that a limit of nothing does not overflow; it is asked again then.
        Duration::from_secs_f64((lacking / self.rate()).clamp(0.001, DAY))
    }

    /// Takes `cost`, of which the provider charges `later` when the call ends.
    pub(super) fn take(&mut self, cost: f64, later: f64) -> Mark {
        self.level -= cost;
        self.taken += cost;
        self.pending += later;
        Mark { taken: self.taken, charged: cost, later }
    }

    /// Corrects what a call was charged to what it used.
    pub(super) fn settle(&mut self, mark: Mark, used: f64) {
        self.level = (self.level + mark.charged - used).min(self.capacity);
        self.taken += used - mark.charged;
        self.pending = (self.pending - mark.later).max(0.0);
    }

    /// Takes in what the answer to a call told of this limit.
    ///
    /// Providers tell what was left when they took the call in, or when they answered it.
    /// The truth now is not below the lower reading of the two, whichever it was; and
    /// what others have taken from the same account shows as less than we thought.
    pub(super) fn learn(&mut self, window: RateWindow, mark: Mark, sent: Duration, now: Duration) {
        self.refill(now);
        self.reshape(window);
        let remaining = window.remaining as f64;
        let passed = now.saturating_sub(sent).as_secs_f64();
        let then = remaining + passed * self.rate() - (self.taken - mark.taken);
        let most = then.max(remaining);
        if most < self.level {
            self.level = most;
        }
        let least = then.min(remaining) - self.pending;
        if least > self.level {
            self.level += (least - self.level) * TRUST;
        }
        self.level = self.level.min(self.capacity);
    }

    /// Follows a limit that has changed.
    fn reshape(&mut self, window: RateWindow) {
        self.limit = window.limit as f64;
        self.capacity = self.limit;
        self.margin = (self.limit * 0.002).max(0.25);
        let gone = self.limit - window.remaining as f64;
        if gone >= 1.0 && !window.reset.is_zero() {
            let period = self.limit * window.reset.as_secs_f64() / gone;
            self.period = match period {
                _ if period < LONGER_THAN_MINUTES => MINUTE,
                _ if period < HOUR * 5.0 => HOUR,
                _ => DAY,
            };
        }
        self.level = self.level.min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn window(limit: u64, remaining: u64, reset: f64) -> RateWindow {
        RateWindow { limit, remaining, reset: seconds(reset) }
    }

    fn learned(window: RateWindow, now: Duration) -> Bucket {
        Bucket::learned(window, Flying::default(), now)
    }

    #[test]
    fn a_bucket_fills_at_its_rate_and_says_how_long_a_call_waits() {
        let mut bucket = learned(window(600, 10, 59.0), seconds(0.0));
        assert_eq!(bucket.wait(5.0, seconds(0.0)), Duration::ZERO);
        bucket.take(10.0, 0.0);
        let wait = bucket.wait(1.0, seconds(0.0)).as_secs_f64();
        assert!((wait - (1.0 + bucket.margin) / 10.0).abs() < 1e-6, "{wait}");
        assert_eq!(bucket.wait(1.0, seconds(1.0)), Duration::ZERO);
    }

    #[test]
    fn what_others_take_from_the_account_shows_and_what_we_sent_since_counts() {
        let mut bucket = learned(window(600, 599, 0.1), seconds(0.0));
        let mark = bucket.take(1.0, 0.0);
        bucket.take(100.0, 0.0);
        // Told as it was when the first call was taken in, before the hundred that followed.
        bucket.learn(window(600, 550, 5.0), mark, seconds(0.0), seconds(0.0));
        assert!((bucket.level - 498.0).abs() < 1e-6, "{}", bucket.level);
        bucket.learn(window(600, 300, 30.0), mark, seconds(0.0), seconds(0.0));
        assert!((bucket.level - 300.0).abs() < 1e-6, "{}", bucket.level);
    }

    #[test]
    fn a_limit_that_changes_is_followed_at_once() {
        let mut bucket = learned(window(600, 600, 0.0), seconds(0.0));
        let mark = bucket.take(1.0, 0.0);
        bucket.learn(window(300, 299, 0.2), mark, seconds(0.0), seconds(0.0));
        assert_eq!(bucket.per_minute(), 300);
        assert!(bucket.level <= 300.0);
        bucket.learn(window(1200, 299, 45.0), mark, seconds(0.0), seconds(0.0));
        assert_eq!(bucket.per_minute(), 1200);
    }

    #[test]
    fn a_limit_per_day_is_told_from_one_per_minute() {
        let bucket = learned(window(14_400, 14_370, 180.0), seconds(0.0));
        assert_eq!(bucket.period, DAY);
        let bucket = learned(window(14_400, 14_370, 0.125), seconds(0.0));
        assert_eq!(bucket.period, MINUTE);
    }

    #[test]
    fn what_a_call_used_replaces_what_was_expected() {
        let mut bucket = learned(window(1000, 1000, 0.0), seconds(0.0));
        let mark = bucket.take(300.0, 200.0);
        bucket.settle(mark, 700.0);
        assert!((bucket.level - 300.0).abs() < 1e-6);
        assert_eq!(bucket.pending, 0.0);
    }

    #[test]
    fn a_limit_of_a_user_allows_no_burst_of_a_whole_minute() {
        let mut bucket = Bucket::set(600, seconds(0.0));
        let mut sent = 0;
        while bucket.wait(1.0, seconds(0.0)).is_zero() {
            bucket.take(1.0, 0.0);
            sent += 1;
        }
        assert_eq!(sent, 50);
    }
    #[test]
    fn what_is_in_flight_when_a_limit_is_first_told_counts_and_is_corrected_as_it_ends() {
        let call = Mark::before(100.0, 40.0);
        let mut flying = Flying::default();
        (0..4).for_each(|_| flying.begin(&call));
        flying.end(&call);
        let mut bucket = Bucket::learned(window(1000, 900, 6.0), flying, seconds(0.0));
        assert!((bucket.level - 600.0).abs() < 1e-6, "{}", bucket.level);
        (0..3).for_each(|_| bucket.settle(call, 50.0));
        assert!((bucket.level - 750.0).abs() < 1e-6, "{}", bucket.level);
        assert_eq!(bucket.pending, 0.0);
    }
}
