//! One limiter per provider, account and model: buckets, slots and pauses together.
//!
//! It holds the state of the account, which all runs that call the model share. The settings of a run for its own calls
//! are its share, and are removed with it.

mod outcomes;

use std::time::Duration;

use rowmill_types::{RateLimitState, ReportedRateLimits};

use super::bucket::{BucketMark, BucketUsage, InFlightCharges, RateBucket};
use super::minute_limits::{MinuteLimits, PaceMode};
use super::pause::CallPause;
use super::refusals::RefusalRate;
use super::share::{LimiterRunId, RunPaceSettings, RunShare, combined_parallelism};
use super::slots::{CallParallelism, CallSlots};
use super::wait::{CallWait, WaitReason};

/// The need of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNeed {
    /// Bytes of everything that is sent.
    pub bytes: usize,
    /// The maximum number of tokens of the answer, if the request sets one.
    pub output_cap: Option<u64>,
}

/// Whether a call may be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum AdmissionDecision {
    /// It may be sent; the charge is to be settled when it has ended.
    Granted(RateLimitCharge),
    /// Not yet.
    Wait(CallWait),
    /// Not yet, because of other calls of the same run; calls of other runs need not wait.
    WaitForOwnRun(CallWait),
}

/// The charge of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimitCharge {
    share: LimiterRunId,
    /// Bytes of everything that was sent.
    bytes: u32,
    sent: Duration,
    /// The number of the call, in sending order.
    number: u64,
    marks: [BucketMark; LIMIT_KINDS],
}

impl RateLimitCharge {
    /// When the call was admitted.
    #[must_use]
    pub fn sent_at(&self) -> Duration {
        self.sent
    }
}

pub(super) const LIMIT_KINDS: usize = 4;

/// The limits of one provider, account and model.
#[derive(Debug, Clone)]
pub struct RateLimiter {
    /// The runs that currently call the model.
    shares: Vec<Option<RunShare>>,
    /// Reported with answers: requests, tokens, input tokens, output tokens.
    learned: [Option<RateBucket>; LIMIT_KINDS],
    /// Set by users, in the same order: the lowest limit among the active runs. Runs without such a limit are neither
    /// bound by it nor counted.
    set: [Option<RateBucket>; LIMIT_KINDS],
    /// The charges of calls in flight, whether there are buckets or not.
    flying: [InFlightCharges; LIMIT_KINDS],
    slots: CallSlots,
    /// The number of calls sent.
    sent: u64,
    pause: CallPause,
    /// Isolated refusals among answers, without evidence that a limit is reached.
    refusals: RefusalRate,
    /// The number of consecutive pauses because of refusals, without an answer between them.
    pauses: u32,
    exhaustions: u32,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self {
            shares: Vec::new(),
            learned: [None, None, None, None],
            set: [None, None, None, None],
            flying: [InFlightCharges::default(); LIMIT_KINDS],
            slots: CallSlots::new(CallParallelism::Auto),
            sent: 0,
            pause: CallPause::default(),
            refusals: RefusalRate::default(),
            pauses: 0,
            exhaustions: 0,
        }
    }
}

impl RateLimiter {
    /// A run starts to call the model.
    pub fn add_run(&mut self, settings: RunPaceSettings, now: Duration) -> LimiterRunId {
        let free = self.shares.iter().position(Option::is_none).unwrap_or(self.shares.len());
        if free == self.shares.len() {
            self.shares.push(None);
        }
        self.shares[free] = Some(RunShare::new(settings));
        self.follow_shares(now);
        LimiterRunId(u32::try_from(free).unwrap_or(u32::MAX))
    }

    /// A run no longer calls the model, and none of its calls is in flight.
    pub fn remove_run(&mut self, share: LimiterRunId, now: Duration) {
        if let Some(left) = self.shares.get_mut(share.index()) {
            *left = None;
            self.follow_shares(now);
        }
    }

    /// Applies the settings of the current runs. If no run with a limit is left, nothing is bound by the limit, but its
    /// usage is remembered.
    fn follow_shares(&mut self, now: Duration) {
        let shares = || self.shares.iter().flatten();
        if let Some(parallel) = combined_parallelism(shares()) {
            self.slots.set_parallel(parallel, now);
        }
        for (kind, bucket) in self.set.iter_mut().enumerate() {
            let Some(tightest) = shares().filter_map(|share| share.user_limits()[kind]).min() else {
                continue;
            };
            match bucket {
                Some(bucket) => bucket.set_limit(tightest, now),
                None => *bucket = Some(RateBucket::from_user_limit(tightest, now)),
            }
        }
    }

    fn share(&self, id: LimiterRunId) -> Option<&RunShare> {
        self.shares.get(id.index())?.as_ref()
    }

    /// Calls in flight.
    #[must_use]
    pub fn calls_in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// The current maximum number of calls of a run in flight.
    #[must_use]
    pub fn max_calls_in_flight(&self, share: LimiterRunId) -> usize {
        self.slots.max_calls_in_flight().min(self.own_ceiling(share))
    }

    /// The number of concurrent calls of a run to make room for, so that nothing else holds them up.
    #[must_use]
    pub fn wanted_calls(&self, share: LimiterRunId) -> usize {
        self.slots.wanted_calls().min(self.own_ceiling(share))
    }

    fn own_ceiling(&self, share: LimiterRunId) -> usize {
        self.share(share).map_or(usize::MAX, |share| share.settings.parallel.max_calls())
    }

    /// The limits per minute that apply to a run: set by its user, otherwise reported with answers.
    #[must_use]
    pub fn effective_minute_limits(&self, share: LimiterRunId) -> MinuteLimits {
        let caps = self.share(share).map(RunShare::user_limits).unwrap_or_default();
        let known = |kind: usize| {
            let learned = self.learned[kind].as_ref().map(RateBucket::per_minute);
            match (caps[kind], learned) {
                (Some(set), Some(learned)) => Some(set.min(learned)),
                (set, learned) => set.or(learned),
            }
        };
        MinuteLimits { requests: known(0), tokens: known(1), input_tokens: known(2), output_tokens: known(3) }
    }

    /// Whether calls wait for quota, so that another model should be asked.
    #[must_use]
    pub fn is_waiting_for_quota(&self, now: Duration) -> bool {
        self.pause.is_for_quota(now)
    }

    /// Whether a call needs more than the whole limit, so that it would always be refused.
    #[must_use]
    pub fn never_fits(&self, charge: &RateLimitCharge) -> bool {
        let both = self.learned.iter().zip(&charge.marks);
        both.filter_map(|(bucket, mark)| Some((bucket.as_ref()?, mark)))
            .any(|(bucket, mark)| bucket.is_smaller_than(mark))
    }

    /// Decides whether a call of a run may be sent now, and charges it if so.
    pub fn admit(&mut self, id: LimiterRunId, need: CallNeed, now: Duration) -> AdmissionDecision {
        if let Some(wait) = self.pause.wait(now).filter(|_| self.keeps_to_pause(id)) {
            return AdmissionDecision::Wait(wait);
        }
        let Some(share) = self.shares.get(id.index()).and_then(Option::as_ref) else {
            return AdmissionDecision::WaitForOwnRun(CallWait { until: None, reason: WaitReason::Slots });
        };
        if share.is_priming() {
            return AdmissionDecision::WaitForOwnRun(CallWait { until: None, reason: WaitReason::Priming });
        }
        if !self.slots.has_room() {
            return AdmissionDecision::Wait(CallWait { until: None, reason: WaitReason::Slots });
        }
        if share.is_full() {
            return AdmissionDecision::WaitForOwnRun(CallWait { until: None, reason: WaitReason::Slots });
        }
        let (costs, later, slack) =
            (share.expected_usage(need), share.usage_charged_late(need), share.slack(need.bytes));
        let (capped, pace) = (share.user_limits().map(|cap| cap.is_some()), share.settings.pace);
        if let Some(wait) = self.short_of((costs, slack), (capped, pace), now) {
            return AdmissionDecision::Wait(wait);
        }
        self.slots.begin();
        if let Some(share) = &mut self.shares[id.index()] {
            share.begin();
        }
        let mut marks = [BucketMark::default(); LIMIT_KINDS];
        for (kind, mark) in marks.iter_mut().enumerate() {
            let (cost, later) = (costs[kind], later[kind]);
            *mark = match &mut self.learned[kind] {
                Some(bucket) => bucket.take(cost, later, now),
                None => BucketMark::before_limit_known(cost, later),
            };
            if let Some(bucket) = self.set[kind].as_mut().filter(|_| capped[kind]) {
                bucket.take(cost, later, now);
            }
            self.flying[kind].begin(mark);
        }
        self.sent += 1;
        let bytes = u32::try_from(need.bytes).unwrap_or(u32::MAX);
        let charge = RateLimitCharge { share: id, bytes, sent: now, number: self.sent, marks };
        AdmissionDecision::Granted(charge)
    }

    /// Whether the calls of a run wait for the end of the current pause.
    fn keeps_to_pause(&self, id: LimiterRunId) -> bool {
        let share = self.share(id).zip(self.pause.after_refusals());
        share.is_none_or(|(share, length)| share.settings.accepts_requested_wait(length))
    }

    /// The longest wait for a bucket that applies to the run, if there is one.
    fn short_of(
        &mut self,
        (costs, slack): ([f64; LIMIT_KINDS], [f64; LIMIT_KINDS]),
        (capped, pace): ([bool; LIMIT_KINDS], PaceMode),
        now: Duration,
    ) -> Option<CallWait> {
        let mut longest: Option<(Duration, usize, u64)> = None;
        for kind in 0..LIMIT_KINDS {
            let learned = self.learned[kind].as_mut().filter(|_| pace == PaceMode::Auto);
            let set = self.set[kind].as_mut().filter(|_| capped[kind]);
            for bucket in learned.into_iter().chain(set) {
                let wait = bucket.wait(costs[kind], slack[kind], now);
                if wait > longest.map_or(Duration::ZERO, |(wait, ..)| wait) {
                    longest = Some((wait, kind, bucket.per_minute()));
                }
            }
        }
        let (wait, kind, limit) = longest?;
        let reason = match kind {
            0 => WaitReason::Requests(limit),
            1 => WaitReason::Tokens(limit),
            2 => WaitReason::InputTokens(limit),
            _ => WaitReason::OutputTokens(limit),
        };
        Some(CallWait { until: Some(now + wait), reason })
    }

    /// Settles a call in all buckets; returns its marks in the buckets that answers reported.
    fn settle(
        &mut self,
        charge: &RateLimitCharge,
        used: Option<[BucketUsage; LIMIT_KINDS]>,
    ) -> [BucketMark; LIMIT_KINDS] {
        if let Some(Some(share)) = self.shares.get_mut(charge.share.index()) {
            share.end();
        }
        let caps = self.share(charge.share).map(RunShare::user_limits).unwrap_or_default();
        let mut marks = charge.marks;
        for (kind, mark) in marks.iter_mut().enumerate() {
            let used = used.as_ref().map(|used| used[kind]);
            self.flying[kind].end(mark);
            if let Some(bucket) = self.set[kind].as_mut().filter(|_| caps[kind].is_some()) {
                bucket.settle(*mark, used);
            }
            if let Some(bucket) = &mut self.learned[kind] {
                *mark = bucket.settle(*mark, used);
            }
        }
        marks
    }

    fn learn(
        &mut self,
        charge: &RateLimitCharge,
        marks: [BucketMark; LIMIT_KINDS],
        rates: Option<&ReportedRateLimits>,
        now: Duration,
    ) {
        let Some(rates) = rates else { return };
        let reported = rates.windows();
        let marks = marks.iter().zip(self.flying);
        for ((bucket, (mark, flying)), window) in self.learned.iter_mut().zip(marks).zip(reported) {
            let Some(window) = window.filter(|window: &RateLimitState| window.limit > 0) else { continue };
            match bucket {
                Some(bucket) => bucket.update_from_window(window, *mark, charge.sent, now),
                None => *bucket = Some(RateBucket::from_rate_window(window, flying, now)),
            }
        }
    }
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
