//! What the limiter learns from the outcomes of calls.

use std::time::Duration;

use rowmill_types::{ReportedRateLimits, TokenUsage};

use super::super::bucket::BucketUsage;
use super::super::minute_limits::PaceMode;
use super::super::refusals::RefusalScope;
use super::super::share::late_charges;
use super::super::wait::WaitReason;
use super::{LIMIT_KINDS, RateLimitCharge, RateLimiter};

/// The first pause after a refusal that gives no time, and the maximum to which it doubles.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// The first pause when a quota is used up and the provider gives no time, and the longest.
const QUOTA_PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

impl RateLimiter {
    /// A call was answered.
    pub fn record_answer(
        &mut self,
        charge: &RateLimitCharge,
        usage: Option<&TokenUsage>,
        rates: Option<&ReportedRateLimits>,
        now: Duration,
    ) {
        self.slots.record_answer(charge.sent, now);
        if let Some(Some(share)) = self.shares.get_mut(charge.share.index()) {
            share.record_answer(charge.bytes as usize, usage);
        }
        self.refusals.record_answer(charge.number);
        self.pauses = 0;
        self.exhaustions = 0;
        if !self.refusals.is_high() && self.pause.end_if_doubted(charge.sent) {
            self.slots.undo_last_cut(now);
        }
        let used = usage.map(|usage| {
            let (input, output) = (usage.input as f64, usage.output as f64);
            // The tokens reserved for the answer were charged with the call.
            let set_aside = Some(0.0).filter(|_| charge.marks[1].is_charged_at_once());
            let late = late_charges(output, set_aside);
            let all = [1.0, input + output, input, output];
            std::array::from_fn(|kind| BucketUsage { all: all[kind], late: late[kind] })
        });
        let marks = self.settle(charge, used);
        self.learn(charge, marks, rates, now);
    }

    /// A call failed for a reason unrelated to limits.
    pub fn record_failure(
        &mut self,
        charge: &RateLimitCharge,
        rates: Option<&ReportedRateLimits>,
        now: Duration,
    ) {
        self.slots.end();
        // The next answer shows whether the provider charged the call.
        let marks = self.settle(charge, None);
        self.learn(charge, marks, rates, now);
    }

    /// This machine had no resources for a call, and nothing was sent; `false` if no call is in flight whose end could
    /// free some.
    pub fn record_local_shortage(&mut self, charge: &RateLimitCharge, now: Duration) -> bool {
        self.settle(charge, Some([BucketUsage::default(); LIMIT_KINDS]));
        self.slots.record_local_shortage(now)
    }

    /// The provider is overloaded.
    pub fn record_overload(
        &mut self,
        charge: &RateLimitCharge,
        rates: Option<&ReportedRateLimits>,
        now: Duration,
    ) {
        self.slots.record_overload(charge.sent, now);
        let marks = self.settle(charge, None);
        self.learn(charge, marks, rates, now);
    }

    /// The provider refused a call because of a rate limit; nothing was charged. Returns who must wait: if headers or
    /// buckets show that a limit is reached, or if most calls are refused, all calls must.
    pub fn record_refusal(
        &mut self,
        charge: &RateLimitCharge,
        after: Option<Duration>,
        rates: Option<&ReportedRateLimits>,
        now: Duration,
    ) -> RefusalScope {
        let marks = self.settle(charge, Some([BucketUsage::default(); LIMIT_KINDS]));
        self.learn(charge, marks, rates, now);
        let asked = after.filter(|wait| !wait.is_zero());
        let keeps_to_limits =
            self.share(charge.share).is_some_and(|share| share.settings.pace == PaceMode::Auto);
        let knows_limits = keeps_to_limits && self.learned.iter().any(Option::is_some);
        let is_reached = self.is_reached(charge, rates, now);
        if !is_reached {
            self.refusals.record_refusal(charge.number);
            if !self.refusals.is_high() {
                self.slots.record_stray_refusal(charge.sent, now);
                return RefusalScope::RowAlone(asked);
            }
        }
        match knows_limits && is_reached {
            // The buckets determine when to continue; the number of calls in flight was not the cause.
            true => self.slots.end(),
            false => self.slots.record_refusal(charge.sent, now),
        }
        if self.pause.wait(now).is_none() {
            // Calls that were part of the same burst of refusals do not make the pause longer.
            self.pauses = self.pauses.saturating_add(1);
        }
        let ours = (PAUSE.0 * (1 << self.pauses.saturating_sub(1).min(10))).min(PAUSE.1);
        let wait = asked.unwrap_or(if knows_limits { PAUSE.0 } else { ours });
        let doubted_since = (!is_reached).then_some(charge.sent);
        self.pause.begin((now, now + wait), WaitReason::Throttled, doubted_since);
        self.slots.record_pause(wait, now);
        RefusalScope::EveryCall
    }

    /// Whether the headers of a refusal show that a limit is reached, or, without headers, whether our estimate does.
    fn is_reached(
        &mut self,
        charge: &RateLimitCharge,
        rates: Option<&ReportedRateLimits>,
        now: Duration,
    ) -> bool {
        let reported = rates.map(|rates| rates.windows()).unwrap_or_default();
        let slack =
            self.share(charge.share).map(|share| share.slack(charge.bytes as usize)).unwrap_or_default();
        let mut buckets = self.learned.iter_mut().zip(&charge.marks).zip(slack).zip(reported);
        buckets.any(|(((bucket, mark), slack), reported)| {
            bucket.as_mut().is_some_and(|bucket| bucket.is_nearly_empty(mark, slack, (reported, now)))
        })
    }

    /// The quota is used up; returns the length of the pause.
    pub fn record_quota_exhaustion(
        &mut self,
        charge: &RateLimitCharge,
        after: Option<Duration>,
        message: &str,
        now: Duration,
    ) -> Duration {
        self.settle(charge, Some([BucketUsage::default(); LIMIT_KINDS]));
        self.slots.end();
        if !self.is_waiting_for_quota(now) {
            self.exhaustions = self.exhaustions.saturating_add(1);
        }
        let ours = (QUOTA_PAUSE.0 * (1 << self.exhaustions.saturating_sub(1).min(10))).min(QUOTA_PAUSE.1);
        let wait = after.filter(|wait| !wait.is_zero()).unwrap_or(ours);
        self.pause.begin((now, now + wait), WaitReason::Quota(message.to_owned()), None);
        self.slots.record_pause(wait, now);
        wait
    }

    /// A call was dropped before its outcome was known.
    pub fn record_cancel(&mut self, charge: &RateLimitCharge) {
        self.slots.end();
        self.settle(charge, None);
    }

    /// The provider is back after an outage: calls start with one.
    pub fn restart_after_outage(&mut self, now: Duration) {
        self.slots.restart(now);
    }
}
