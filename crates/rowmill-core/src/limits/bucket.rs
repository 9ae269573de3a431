//! A bucket that mirrors one at the provider: filled at a steady rate, emptied by calls.

use std::time::Duration;

use rowmill_types::RateWindow;

use super::sent::Sent;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;
/// A limit that seems to be renewed more slowly than this is one per hour or per day.
const LONGER_THAN_MINUTES: f64 = 1_200.0;
/// A difference in our favour is believed when so many answers in a row agree on it.
const AGREE: u32 = 10;
/// Some providers round what is left of a large limit to the nearest so many.
const ROUNDED_TO: u64 = 1_000;
/// Calls that were sent within this time of each other may arrive in another order.
const OVERTAKING: Duration = Duration::from_millis(250);
/// Less than this share of a limit is nearly nothing.
const NEARLY_EMPTY: f64 = 0.02;
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
    /// By how much less may be left than is told, as far as everything told so far was rounded.
    rounding: f64,
    /// The least by which answers in a row found more than is thought, and how many did.
    more: (f64, u32),
    sent: Sent,
}

/// Where a bucket stood when a call was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mark {
    taken: f64,
    charged: f64,
    later: f64,
    /// What calls in flight were still to be charged by the provider, this one included.
    pending: f64,
    /// By how much the charge was corrected when the call ended.
    correction: f64,
}

impl Mark {
    /// A call that was sent before anything was known of the limit.
    pub(super) fn before(cost: f64, later: f64) -> Self {
        Self { charged: cost, later, pending: later, ..Self::default() }
    }

    /// Whether the provider charges nothing more when the call ends.
    pub(super) fn is_charged_at_once(&self) -> bool {
        self.later == 0.0
    }

    /// The same call with what it used.
    fn settled(self, used: Used) -> Self {
        let correction = used.all - self.charged;
        Self {
            taken: self.taken + correction,
            charged: used.all,
            later: 0.0,
            pending: self.pending - self.later + used.late,
            correction,
        }
    }
}

/// What a call used of a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Used {
    /// All of it.
    pub(super) all: f64,
    /// The part that the provider charged when the call ended.
    pub(super) late: f64,
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
            rounding: 0.0,
            more: (f64::MAX, 0),
            sent: Sent::default(),
        }
    }

    /// Makes it another limit per minute; what was used stays used.
    pub(super) fn set_limit(&mut self, per_minute: u64, now: Duration) {
        self.refill(now);
        let Self { limit, capacity, .. } = Self::set(per_minute, now);
        (self.limit, self.capacity, self.level) = (limit, capacity, self.level.min(capacity));
    }

    /// A limit that an answer told. Calls that are in flight now may have come after the
    /// one that was answered, so that what they use is not in what it told.
    pub(super) fn learned(window: RateWindow, flying: Flying, now: Duration) -> Self {
        let is_rounded = window.limit >= 10 * ROUNDED_TO && window.remaining.is_multiple_of(ROUNDED_TO);
        let rounding = if is_rounded { ROUNDED_TO as f64 / 2.0 } else { 0.0 };
        let mut bucket = Self {
            limit: window.limit as f64,
            period: MINUTE,
            capacity: window.limit as f64,
            level: window.remaining as f64 - rounding - flying.charged,
            at: now,
            taken: flying.charged,
            pending: flying.later,
            margin: 0.0,
            rounding,
            more: (f64::MAX, 0),
            sent: Sent::new(flying.charged),
        };
        bucket.reshape(window);
        bucket
    }

    /// The limit as one per minute, for people.
    pub(super) fn per_minute(&self) -> u64 {
        (self.limit * MINUTE / self.period).round() as u64
    }

    /// Whether the whole limit is less than what the call needs to be let in.
    pub(super) fn is_below(&self, mark: &Mark) -> bool {
        mark.charged - mark.later > self.capacity
    }

    /// Whether so little is left that this may be why a call was refused: by what the refusal
    /// told, or else by what is thought to be left.
    pub(super) fn is_nearly_empty(
        &mut self,
        mark: &Mark,
        slack: f64,
        (told, now): (Option<RateWindow>, Duration),
    ) -> bool {
        self.refill(now);
        let left = told.map_or(self.level, |window| window.remaining as f64);
        // What the call needs is only an estimate, and what is left may be rounded.
        let little = (2.0 * (mark.charged + slack)).max(self.limit * NEARLY_EMPTY).max(self.rounding);
        left < little
    }

    fn rate(&self) -> f64 {
        self.limit / self.period
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.level = (self.level + passed * self.rate()).min(self.capacity);
        self.at = self.at.max(now);
    }

    /// How long until `cost` is there and `slack` besides; nothing if it is there now. What
    /// is larger than the bucket waits until it is full.
    pub(super) fn wait(&mut self, cost: f64, slack: f64, now: Duration) -> Duration {
        self.refill(now);
        let lacking = (cost + slack + self.margin).min(self.capacity) - self.level;
        if lacking <= 1e-9 {
            return Duration::ZERO;
        }
        // A day at most, so that a limit of nothing does not overflow; it is asked again then.
        Duration::from_secs_f64((lacking / self.rate()).clamp(0.001, DAY))
    }

    /// Takes `cost`, of which the provider charges `later` when the call ends.
    pub(super) fn take(&mut self, cost: f64, later: f64, now: Duration) -> Mark {
        self.refill(now);
        self.level -= cost;
        self.taken += cost;
        self.pending += later;
        self.sent.add(now, self.taken);
        Mark { taken: self.taken, charged: cost, later, pending: self.pending, correction: 0.0 }
    }

    /// Corrects what a call was charged to what it used; `None` if nobody knows.
    pub(super) fn settle(&mut self, mark: Mark, used: Option<Used>) -> Mark {
        let used = used.unwrap_or(Used { all: mark.charged, late: mark.later });
        self.level = (self.level + mark.charged - used.all).min(self.capacity);
        self.taken += used.all - mark.charged;
        self.pending = (self.pending - mark.later).max(0.0);
        mark.settled(used)
    }

    /// Takes in what the answer to a call told of this limit.
    ///
    /// Most providers tell what was left when they took the call in. Since then the bucket
    /// was refilled, calls were sent, and calls that were in flight were charged for their
    /// answers. Others tell what is left when they answer. Both readings agree while calls
    /// go out at the rate of the limit, and only then are they believed.
    ///
    /// Less than we thought is believed at once: others may use the same account. More is
    /// believed only if answers in a row say so, because calls overtake each other.
    pub(super) fn learn(&mut self, window: RateWindow, mark: Mark, sent: Duration, now: Duration) {
        self.refill(now);
        self.reshape(window);
        let remaining = window.remaining as f64;
        let passed = now.saturating_sub(sent).as_secs_f64();
        let left_then = remaining + passed * self.rate() - self.taken - mark.pending;
        let left_now = remaining - self.pending;
        // At most what is left if all calls that may have overtaken this one did, at least if none did.
        let taken_by_then = self.sent.taken_by(sent + OVERTAKING) + mark.correction;
        let left = left_now.max(left_then + taken_by_then.max(mark.taken));
        let taken_before = self.sent.taken_by(sent.saturating_sub(OVERTAKING)) + mark.charged;
        let surely = left_now.min(left_then + taken_before.min(mark.taken));
        if left <= self.level {
            self.level = left;
            self.more = (f64::MAX, 0);
        } else if window.remaining > 0 {
            // A bucket that is overdrawn is told as empty, which says nothing of how much more.
            let more = (surely - self.rounding - self.level).max(0.0);
            self.more = (self.more.0.min(more), self.more.1 + 1);
        }
        if self.more.1 >= AGREE {
            self.level += self.more.0;
            self.more = (f64::MAX, 0);
        }
    }

    /// Follows a limit that has changed.
    fn reshape(&mut self, window: RateWindow) {
        self.limit = window.limit as f64;
        self.capacity = self.limit;
        if !window.remaining.is_multiple_of(ROUNDED_TO) {
            self.rounding = 0.0;
        }
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
#[path = "bucket_tests.rs"]
mod tests;
