//! One limit per minute: a token bucket that fills continuously. The time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// A token is counted in this many parts, one for each nanosecond of a minute. A bucket then gains as many
/// parts per nanosecond as it gets tokens per minute, and nothing is rounded.
const PARTS: i128 = 60_000_000_000;

/// A bucket that holds a minute's worth and refills within a minute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedBucket {
    per_minute: u64,
    /// The level at the time below, in parts; negative if more was used than available.
    level: i128,
    at: Instant,
}

/// The state of a bucket, as reported to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketState {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// How long it takes until it is full.
    pub(crate) reset: Duration,
}

impl SimulatedBucket {
    /// A full bucket. A limit of zero is treated as one, because nothing would ever fit it.
    pub(crate) fn full(per_minute: u64, now: Instant) -> Self {
        let per_minute = per_minute.max(1);
        Self { per_minute, level: i128::from(per_minute) * PARTS, at: now }
    }

    /// How long it takes until `amount` is available. If that exceeds the capacity: until the bucket is full.
    pub(crate) fn wait_for(&self, amount: u64, now: Instant) -> Duration {
        self.until((i128::from(amount) * PARTS).min(self.capacity()), now)
    }

    /// How long it takes until anything is available.
    pub(crate) fn wait_for_any(&self, now: Instant) -> Duration {
        self.until(1, now)
    }

    /// Takes `amount`, even if it is not available.
    pub(crate) fn take(&mut self, amount: u64, now: Instant) {
        self.level = self.level_at(now) - i128::from(amount) * PARTS;
        self.at = self.at.max(now);
    }

    /// Returns `amount`, up to the capacity.
    pub(crate) fn give_back(&mut self, amount: u64, now: Instant) {
        self.level = (self.level_at(now) + i128::from(amount) * PARTS).min(self.capacity());
        self.at = self.at.max(now);
    }

    /// Changes the limit from now on. The level stays, up to the new capacity.
    pub(crate) fn set_limit(&mut self, per_minute: u64, now: Instant) {
        self.level = self.level_at(now);
        self.at = self.at.max(now);
        self.per_minute = per_minute.max(1);
        self.level = self.level.min(self.capacity());
    }

    pub(crate) fn state(&self, now: Instant) -> BucketState {
        let whole = (self.level_at(now) / PARTS).max(0);
        BucketState {
            limit: self.per_minute,
            remaining: u64::try_from(whole).unwrap_or(u64::MAX),
            reset: self.until(self.capacity(), now),
        }
    }

    fn capacity(&self) -> i128 {
        i128::from(self.per_minute) * PARTS
    }

    fn level_at(&self, now: Instant) -> i128 {
        let elapsed = now.saturating_duration_since(self.at).as_nanos();
        let gained = i128::try_from(elapsed).unwrap_or(i128::MAX / PARTS) * i128::from(self.per_minute);
        (self.level + gained).min(self.capacity())
    }

    fn until(&self, wanted: i128, now: Instant) -> Duration {
        let missing = (wanted - self.level_at(now)).max(0);
        let rate = i128::from(self.per_minute);
        let nanoseconds = (missing + rate - 1) / rate;
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: f64) -> Duration {
        Duration::from_secs_f64(count)
    }

    #[test]
    fn a_bucket_begins_full_and_tells_how_long_the_next_one_takes() {
        let start = Instant::now();
        let mut bucket = SimulatedBucket::full(60, start);
        for taken in 1..=60 {
            assert_eq!(bucket.wait_for(1, start), Duration::ZERO, "{taken}");
            bucket.take(1, start);
        }
        assert_eq!(bucket.wait_for(1, start), seconds(1.0));
        assert_eq!(bucket.wait_for(2, start + seconds(0.5)), seconds(1.5));
        assert_eq!(bucket.wait_for(1, start + seconds(1.0)), Duration::ZERO);
        let standing = bucket.state(start + seconds(1.5));
        assert_eq!(standing, BucketState { limit: 60, remaining: 1, reset: seconds(58.5) });
    }

    #[test]
    fn a_wait_is_never_reported_too_short() {
        let start = Instant::now();
        for per_minute in [1, 7, 600, 60_000, 29_999_999] {
            let mut bucket = SimulatedBucket::full(per_minute, start);
            bucket.take(per_minute, start);
            let wait = bucket.wait_for(1, start);
            assert!(!bucket.wait_for(1, start + wait - Duration::from_nanos(1)).is_zero(), "{per_minute}");
            assert!(bucket.wait_for(1, start + wait).is_zero(), "{per_minute}");
        }
    }

    #[test]
    fn more_than_the_bucket_holds_fits_when_it_is_full() {
        let start = Instant::now();
        let mut bucket = SimulatedBucket::full(100, start);
        assert!(bucket.wait_for(1_000, start).is_zero());
        bucket.take(1, start);
        assert_eq!(bucket.wait_for(1_000, start), seconds(0.6));
    }

    #[test]
    fn a_level_can_go_below_zero_and_is_then_reported_as_nothing_left() {
        let start = Instant::now();
        let mut bucket = SimulatedBucket::full(60, start);
        bucket.take(90, start);
        assert_eq!(bucket.state(start), BucketState { limit: 60, remaining: 0, reset: seconds(90.0) });
        assert_eq!(bucket.wait_for_any(start + seconds(29.0)), seconds(1.0) + Duration::from_nanos(1));
        bucket.give_back(200, start);
        assert_eq!(bucket.state(start).remaining, 60);
    }

    #[test]
    fn another_limit_keeps_what_is_there_as_far_as_it_fits() {
        let start = Instant::now();
        let mut bucket = SimulatedBucket::full(600, start);
        bucket.take(500, start);
        bucket.set_limit(300, start);
        assert_eq!(bucket.state(start).remaining, 100);
        bucket.set_limit(60, start + seconds(10.0));
        assert_eq!(
            bucket.state(start + seconds(10.0)),
            BucketState { limit: 60, remaining: 60, reset: Duration::ZERO }
        );
        bucket.set_limit(1_200, start + seconds(10.0));
        assert_eq!(bucket.state(start + seconds(11.0)).remaining, 80);
    }
}
