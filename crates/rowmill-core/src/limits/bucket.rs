//! A token bucket that mirrors one at the provider: refilled at a steady rate, emptied by calls.

use std::time::Duration;

use rowmill_types::RateLimitState;

use super::sent_history::SentHistory;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;
/// A limit that seems to refill more slowly than this, in seconds, is one per hour or per day.
const LONGER_THAN_MINUTES: f64 = 1_200.0;
/// A difference in our favour is believed once this many consecutive answers agree on it.
const AGREE: u32 = 10;
/// Some providers round the remainder of a large limit to a multiple of this.
const ROUNDED_TO: u64 = 1_000;
/// Calls sent within this time of each other may arrive in a different order.
const OVERTAKING: Duration = Duration::from_millis(250);
/// Less than this share of a limit is nearly empty.
const NEARLY_EMPTY: f64 = 0.02;
/// A limit set by a user holds at most this many seconds' worth at once, because the burst that the provider accepts is
/// unknown.
const BURST_SECONDS: f64 = 5.0;

/// The remainder of a limit, as far as this process can know it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RateBucket {
    /// The amount granted per period.
    limit: f64,
    period: f64,
    capacity: f64,
    /// The remainder; negative when calls used more than expected.
    level: f64,
    at: Duration,
    /// The total ever taken, to determine what was sent after a given call.
    taken: f64,
    /// The part of it that the provider charges only when calls end.
    pending: f64,
    /// A reserve, so that network jitter does not empty the provider's bucket.
    margin: f64,
    /// How much lower the actual remainder may be than reported, if all reports so far were rounded.
    rounding: f64,
    /// The smallest excess over our estimate in consecutive answers, and the number of those answers.
    more: (f64, u32),
    sent: SentHistory,
}

/// The bucket's state when a call was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BucketMark {
    taken: f64,
    charged: f64,
    later: f64,
    /// What calls in flight were still to be charged by the provider, including this one.
    pending: f64,
    /// The correction of the charge when the call ended.
    correction: f64,
}

impl BucketMark {
    /// A call that was sent before anything was known about the limit.
    pub(super) fn before_limit_known(cost: f64, later: f64) -> Self {
        Self { charged: cost, later, pending: later, ..Self::default() }
    }

    /// Whether the provider charges nothing more when the call ends.
    pub(super) fn is_charged_at_once(&self) -> bool {
        self.later == 0.0
    }

    /// The same call with its actual usage.
    fn settled(self, used: BucketUsage) -> Self {
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

/// A call's usage of a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BucketUsage {
    /// The total.
    pub(super) all: f64,
    /// The part that the provider charged when the call ended.
    pub(super) late: f64,
}

/// The charges of calls in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct InFlightCharges {
    charged: f64,
    later: f64,
}

impl InFlightCharges {
    pub(super) fn begin(&mut self, mark: &BucketMark) {
        self.charged += mark.charged;
        self.later += mark.later;
    }

    pub(super) fn end(&mut self, mark: &BucketMark) {
        self.charged = (self.charged - mark.charged).max(0.0);
        self.later = (self.later - mark.later).max(0.0);
    }
}

impl RateBucket {
    /// A limit per minute set by a user.
    pub(super) fn from_user_limit(per_minute: u64, now: Duration) -> Self {
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
            sent: SentHistory::default(),
        }
    }

    /// Changes the limit per minute; the usage so far is kept.
    pub(super) fn set_limit(&mut self, per_minute: u64, now: Duration) {
        self.refill(now);
        let Self { limit, capacity, .. } = Self::from_user_limit(per_minute, now);
        (self.limit, self.capacity, self.level) = (limit, capacity, self.level.min(capacity));
    }

    /// A limit reported with an answer. Calls that are in flight now may have arrived after the answered one, so their
    /// usage is not included in the report.
    pub(super) fn from_rate_window(window: RateLimitState, flying: InFlightCharges, now: Duration) -> Self {
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
            sent: SentHistory::new(flying.charged),
        };
        bucket.reshape(window);
        bucket
    }

    /// The limit per minute, for display.
    pub(super) fn per_minute(&self) -> u64 {
        (self.limit * MINUTE / self.period).round() as u64
    }

    /// Whether the whole limit is less than what the call needs.
    pub(super) fn is_smaller_than(&self, mark: &BucketMark) -> bool {
        mark.charged - mark.later > self.capacity
    }

    /// Whether the remainder is so small that it may have caused a refusal: according to the refusal's headers,
    /// otherwise according to our estimate.
    pub(super) fn is_nearly_empty(
        &mut self,
        mark: &BucketMark,
        slack: f64,
        (reported, now): (Option<RateLimitState>, Duration),
    ) -> bool {
        self.refill(now);
        let left = reported.map_or(self.level, |window| window.remaining as f64);
        // The call's need is only an estimate, and the remainder may be rounded.
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

    /// The time until `cost` plus `slack` is available; zero if it is available now. An amount larger than the bucket
    /// waits until it is full.
    pub(super) fn wait(&mut self, cost: f64, slack: f64, now: Duration) -> Duration {
        self.refill(now);
        let lacking = (cost + slack + self.margin).min(self.capacity) - self.level;
        if lacking <= 1e-9 {
            return Duration::ZERO;
        }
        // At most a day, so that a limit of zero does not overflow; the caller asks again then.
        Duration::from_secs_f64((lacking / self.rate()).clamp(0.001, DAY))
    }

    /// Takes `cost`, of which the provider charges `later` only when the call ends.
    pub(super) fn take(&mut self, cost: f64, later: f64, now: Duration) -> BucketMark {
        self.refill(now);
        self.level -= cost;
        self.taken += cost;
        self.pending += later;
        self.sent.add(now, self.taken);
        BucketMark { taken: self.taken, charged: cost, later, pending: self.pending, correction: 0.0 }
    }

    /// Corrects the charge of a call to its actual usage; `None` if unknown.
    pub(super) fn settle(&mut self, mark: BucketMark, used: Option<BucketUsage>) -> BucketMark {
        let used = used.unwrap_or(BucketUsage { all: mark.charged, late: mark.later });
        self.level = (self.level + mark.charged - used.all).min(self.capacity);
        self.taken += used.all - mark.charged;
        self.pending = (self.pending - mark.later).max(0.0);
        mark.settled(used)
    }

    /// Processes the report about this limit in the answer to a call.
    ///
    /// Most providers report the remainder at the time when they accepted the call. Since then the bucket was refilled,
    /// calls were sent, and calls in flight were charged for their answers. Other providers report the remainder at the
    /// time of the answer. Both interpretations agree while calls are sent at the rate of the limit, and only then are
    /// they believed.
    ///
    /// A lower remainder than estimated is believed at once: others may use the same account. A higher one is believed
    /// only if consecutive answers agree, because calls overtake each other.
    pub(super) fn update_from_window(
        &mut self,
        window: RateLimitState,
        mark: BucketMark,
        sent: Duration,
        now: Duration,
    ) {
        self.refill(now);
        self.reshape(window);
        let remaining = window.remaining as f64;
        let passed = now.saturating_sub(sent).as_secs_f64();
        let left_then = remaining + passed * self.rate() - self.taken - mark.pending;
        let left_now = remaining - self.pending;
        // The upper value if all calls that may have overtaken this one did, the lower value if none did.
        let taken_by_then = self.sent.taken_by(sent + OVERTAKING) + mark.correction;
        let left = left_now.max(left_then + taken_by_then.max(mark.taken));
        let taken_before = self.sent.taken_by(sent.saturating_sub(OVERTAKING)) + mark.charged;
        let surely = left_now.min(left_then + taken_before.min(mark.taken));
        if left <= self.level {
            self.level = left;
            self.more = (f64::MAX, 0);
        } else if window.remaining > 0 {
            // An overdrawn bucket is reported as empty, which does not show by how much it is overdrawn.
            let more = (surely - self.rounding - self.level).max(0.0);
            self.more = (self.more.0.min(more), self.more.1 + 1);
        }
        if self.more.1 >= AGREE {
            self.level += self.more.0;
            self.more = (f64::MAX, 0);
        }
    }

    /// Adapts to a changed limit.
    fn reshape(&mut self, window: RateLimitState) {
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
