//! One limiter per provider, account and model: buckets, slots and pauses together.

use std::time::Duration;

use rowmill_types::{RateLimits, RateWindow, Usage};

use super::bucket::{Bucket, Flying, Mark, Used};
use super::estimate::Estimate;
use super::pause::Pause;
use super::rates::{Pace, RateFlags};
use super::refusals::{Refusal, Refusals};
use super::slots::{Parallel, Slots};
use super::wait::{Wait, WaitReason};

/// The first pause after a refusal that does not say how long; it doubles up to the last.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// The first pause when a quota is used up and nobody says until when, and the longest.
const QUOTA_PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Bytes of everything that is sent.
    pub bytes: usize,
    /// The most tokens of the answer, where this request alone says so.
    pub output_cap: Option<u64>,
}

/// Whether a call may be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It may; the charge is to be settled when it has ended.
    Granted(Charge),
    /// Not yet.
    Wait(Wait),
}

/// What a call was charged.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    sent: Duration,
    /// Which call it is, in the order in which they were sent.
    number: u64,
    bytes: usize,
    marks: [Mark; KINDS],
}

impl Charge {
    /// When the call was admitted.
    #[must_use]
    pub fn sent(&self) -> Duration {
        self.sent
    }
}

const KINDS: usize = 4;

/// The limits of one provider, account and model.
#[derive(Debug, Clone)]
pub struct Limiter {
    pace: Pace,
    /// Told by answers: requests, tokens, input tokens, output tokens.
    learned: [Option<Bucket>; KINDS],
    /// Set by the user, in the same order.
    set: [Option<Bucket>; KINDS],
    /// What calls in flight were charged, whether there are buckets or not.
    flying: [Flying; KINDS],
    slots: Slots,
    /// How many calls were sent.
    sent: u64,
    estimate: Estimate,
    /// Whether the provider sets the longest answer that a request allows aside.
    reserves: bool,
    /// The longest answer that every request allows, where they say so.
    max_output: Option<u64>,
    pause: Pause,
    /// Refusals among answers, where nothing says that a limit is reached.
    refusals: Refusals,
    /// How many pauses there were because of refusals, without an answer between them.
    pauses: u32,
    exhaustions: u32,
    /// Whether the first call goes alone; over once something was answered.
    priming: bool,
}

impl Limiter {
    /// A limiter that knows only what the user said.
    #[must_use]
    pub fn new(parallel: Parallel, pace: Pace, flags: RateFlags, now: Duration) -> Self {
        let set = [flags.requests, flags.tokens, flags.input_tokens, flags.output_tokens];
        Self {
            pace,
            learned: [None, None, None, None],
            set: set.map(|limit| limit.map(|limit| Bucket::set(limit, now))),
            flying: [Flying::default(); KINDS],
            slots: Slots::new(parallel),
            sent: 0,
            estimate: Estimate::new(None),
            reserves: false,
            max_output: None,
            pause: Pause::default(),
            refusals: Refusals::default(),
            pauses: 0,
            exhaustions: 0,
            priming: false,
        }
    }

    /// Requests say that answers have at most so many tokens. A provider that `reserves` sets
    /// as much of its limit on all tokens aside until the answer is there.
    #[must_use]
    pub fn with_max_output(mut self, most: Option<u64>, reserves: bool) -> Self {
        self.estimate = Estimate::new(most);
        (self.max_output, self.reserves) = (most, reserves);
        self
    }

    /// The first call goes alone, to fill the provider's cache for the others.
    #[must_use]
    pub fn with_priming(mut self, priming: bool) -> Self {
        self.priming = priming;
        self
    }

    /// Calls in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// Calls that may be in flight at once, as it is now.
    #[must_use]
    pub fn allowed(&self) -> usize {
        self.slots.allowed()
    }

    /// Calls that should fit beside each other, so that nothing else holds them up.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.slots.wanted()
    }

    /// The limits that are known, per minute: what the user set, or else what answers told.
    #[must_use]
    pub fn known(&self) -> RateFlags {
        let known = |kind: usize| {
            let bucket = |buckets: &[Option<Bucket>; KINDS]| {
                buckets.get(kind).and_then(Option::as_ref).map(Bucket::per_minute)
            };
            match (bucket(&self.set), bucket(&self.learned)) {
                (Some(set), Some(learned)) => Some(set.min(learned)),
                (set, learned) => set.or(learned),
            }
        };
        RateFlags { requests: known(0), tokens: known(1), input_tokens: known(2), output_tokens: known(3) }
    }

    /// Whether calls wait for quota, so that another model should be asked.
    #[must_use]
    pub fn is_exhausted(&self, now: Duration) -> bool {
        self.pause.is_for_quota(now)
    }

    /// Whether a call needs more than the whole limit, so that it is refused for ever.
    #[must_use]
    pub fn never_fits(&self, charge: &Charge) -> bool {
        let both = self.learned.iter().zip(&charge.marks);
        both.filter_map(|(bucket, mark)| Some((bucket.as_ref()?, mark)))
            .any(|(bucket, mark)| bucket.is_below(mark))
    }

    /// Asks whether a call may be sent now, and charges it if so.
    pub fn admit(&mut self, need: Need, now: Duration) -> Admission {
        if let Some(wait) = self.pause.wait(now) {
            return Admission::Wait(wait);
        }
        if self.priming && self.slots.in_flight() > 0 {
            return Admission::Wait(Wait { until: None, reason: WaitReason::Priming });
        }
        if !self.slots.has_room() {
            return Admission::Wait(Wait { until: None, reason: WaitReason::Slots });
        }
        let costs = self.costs(need);
        if let Some(wait) = self.short_of(costs, self.slack(need.bytes), now) {
            return Admission::Wait(wait);
        }
        self.slots.begin();
        let later = charged_late(self.estimate.output(), self.set_aside(need));
        let mut marks = [Mark::default(); KINDS];
        for (kind, mark) in marks.iter_mut().enumerate() {
            let (cost, later) = (costs[kind], later[kind]);
            *mark = match &mut self.learned[kind] {
                Some(bucket) => bucket.take(cost, later, now),
                None => Mark::before(cost, later),
            };
            if let Some(bucket) = &mut self.set[kind] {
                bucket.take(cost, later, now);
            }
            self.flying[kind].begin(mark);
        }
        self.sent += 1;
        let charge = Charge { sent: now, number: self.sent, bytes: need.bytes, marks };
        Admission::Granted(charge)
    }

    /// Requests, tokens, input tokens and output tokens that a call is expected to use.
    fn costs(&self, need: Need) -> [f64; KINDS] {
        let (input, output) = (self.estimate.input(need.bytes), self.estimate.output());
        [1.0, input + self.set_aside(need).unwrap_or(output), input, output]
    }

    /// What the provider sets aside for the answer, of its limit on all tokens.
    fn set_aside(&self, need: Need) -> Option<f64> {
        need.output_cap.or(self.max_output).filter(|_| self.reserves).map(|most| most as f64)
    }

    /// What a call may use beyond that before the provider refuses it: it counts the prompt
    /// itself, and not as we do.
    fn slack(&self, bytes: usize) -> [f64; KINDS] {
        let input = self.estimate.input_slack(bytes);
        [0.0, input, input, 0.0]
    }

    /// The longest wait for a bucket, if there is one.
    fn short_of(&mut self, costs: [f64; KINDS], slack: [f64; KINDS], now: Duration) -> Option<Wait> {
        let learned = self.learned.iter_mut().filter(|_| self.pace == Pace::Auto);
        let mut longest: Option<(Duration, usize, u64)> = None;
        let needs = costs.into_iter().zip(slack);
        let learned = learned.zip(needs.clone()).enumerate();
        for (kind, (bucket, (cost, slack))) in learned.chain(self.set.iter_mut().zip(needs).enumerate()) {
            let Some(bucket) = bucket else { continue };
            let wait = bucket.wait(cost, slack, now);
            if wait > longest.map_or(Duration::ZERO, |(wait, ..)| wait) {
                longest = Some((wait, kind, bucket.per_minute()));
            }
        }
        let (wait, kind, limit) = longest?;
        let reason = match kind {
            0 => WaitReason::Requests(limit),
            1 => WaitReason::Tokens(limit),
            2 => WaitReason::InputTokens(limit),
            _ => WaitReason::OutputTokens(limit),
        };
        Some(Wait { until: Some(now + wait), reason })
    }

    /// A call was answered.
    pub fn answered(
        &mut self,
        charge: &Charge,
        usage: Option<&Usage>,
        rates: Option<&RateLimits>,
        now: Duration,
    ) {
        self.slots.answered(charge.sent, now);
        self.priming = false;
        self.refusals.answered(charge.number);
        self.pauses = 0;
        self.exhaustions = 0;
        if !self.refusals.are_the_rule() && self.pause.doubt(charge.sent) {
            self.slots.restore(now);
        }
        let used = usage.map(|usage| {
            self.estimate.saw(charge.bytes, usage);
            let (input, output) = (usage.input as f64, usage.output as f64);
            // What was set aside for the answer was charged with the call.
            let set_aside = Some(0.0).filter(|_| charge.marks[1].is_charged_at_once());
            let late = charged_late(output, set_aside);
            let all = [1.0, input + output, input, output];
            std::array::from_fn(|kind| Used { all: all[kind], late: late[kind] })
        });
        let marks = self.settle(charge, used);
        self.learn(charge, marks, rates, now);
    }

    /// A call failed in a way that tells nothing of limits.
    pub fn failed(&mut self, charge: &Charge, rates: Option<&RateLimits>, now: Duration) {
        self.slots.end();
        // Whether the provider charged it, its next answer tells.
        let marks = self.settle(charge, None);
        self.learn(charge, marks, rates, now);
    }

    /// This machine had no room for a call, and nothing was sent; `false` if none is in flight
    /// whose end could make room.
    pub fn crowded(&mut self, charge: &Charge, now: Duration) -> bool {
        self.settle(charge, Some([Used::default(); KINDS]));
        self.slots.crowded(now)
    }

    /// The provider is overloaded.
    pub fn overloaded(&mut self, charge: &Charge, rates: Option<&RateLimits>, now: Duration) {
        self.slots.overloaded(charge.sent, now);
        let marks = self.settle(charge, None);
        self.learn(charge, marks, rates, now);
    }

    /// The provider refused a call because of a rate limit; it was charged nothing. Tells who
    /// waits: where headers or buckets say that a limit is reached, and where refusals are the
    /// rule, everybody does.
    pub fn refused(
        &mut self,
        charge: &Charge,
        after: Option<Duration>,
        rates: Option<&RateLimits>,
        now: Duration,
    ) -> Refusal {
        let marks = self.settle(charge, Some([Used::default(); KINDS]));
        self.learn(charge, marks, rates, now);
        let asked = after.filter(|wait| !wait.is_zero());
        let knows_limits = self.pace == Pace::Auto && self.learned.iter().any(Option::is_some);
        let is_reached = self.is_reached(charge, rates, now);
        if !is_reached {
            self.refusals.refused(charge.number);
            if !self.refusals.are_the_rule() {
                self.slots.refused_alone(charge.sent, now);
                return Refusal::RowAlone(asked);
            }
        }
        match knows_limits && is_reached {
            // The buckets say when to go on; how many are in flight was not the cause.
            true => self.slots.end(),
            false => self.slots.refused(charge.sent, now),
        }
        if self.pause.wait(now).is_none() {
            // Calls that met the same refusals do not make the pause longer.
            self.pauses = self.pauses.saturating_add(1);
        }
        let ours = (PAUSE.0 * (1 << self.pauses.saturating_sub(1).min(10))).min(PAUSE.1);
        let wait = asked.unwrap_or(if knows_limits { PAUSE.0 } else { ours });
        let doubted_since = (!is_reached).then_some(charge.sent);
        self.pause.begin(now + wait, WaitReason::Throttled, doubted_since);
        self.slots.paused(wait, now);
        Refusal::Everybody
    }

    /// Whether the headers of a refusal say that a limit is reached, or, where it has none, what
    /// is known of the limits does.
    fn is_reached(&mut self, charge: &Charge, rates: Option<&RateLimits>, now: Duration) -> bool {
        let told = rates.map(|rates| rates.windows()).unwrap_or_default();
        let slack = self.slack(charge.bytes);
        let mut buckets = self.learned.iter_mut().zip(&charge.marks).zip(slack).zip(told);
        buckets.any(|(((bucket, mark), slack), told)| {
            bucket.as_mut().is_some_and(|bucket| bucket.is_nearly_empty(mark, slack, (told, now)))
        })
    }

    /// The quota is used up; returns how long the pause is.
    pub fn exhausted(
        &mut self,
        charge: &Charge,
        after: Option<Duration>,
        message: &str,
        now: Duration,
    ) -> Duration {
        self.settle(charge, Some([Used::default(); KINDS]));
        self.slots.end();
        if !self.is_exhausted(now) {
            self.exhaustions = self.exhaustions.saturating_add(1);
        }
        let ours = (QUOTA_PAUSE.0 * (1 << self.exhaustions.saturating_sub(1).min(10))).min(QUOTA_PAUSE.1);
        let wait = after.filter(|wait| !wait.is_zero()).unwrap_or(ours);
        self.pause.begin(now + wait, WaitReason::Quota(message.to_owned()), None);
        self.slots.paused(wait, now);
        wait
    }

    /// A call was given up before it was known how it ends.
    pub fn cancelled(&mut self, charge: &Charge) {
        self.slots.end();
        self.settle(charge, None);
    }

    /// The provider is back after an outage: calls begin with one.
    pub fn restart(&mut self, now: Duration) {
        self.slots.restart(now);
    }

    /// Settles a call in all buckets; where it stood in those that answers told.
    fn settle(&mut self, charge: &Charge, used: Option<[Used; KINDS]>) -> [Mark; KINDS] {
        let mut marks = charge.marks;
        for (kind, mark) in marks.iter_mut().enumerate() {
            let used = used.as_ref().map(|used| used[kind]);
            self.flying[kind].end(mark);
            if let Some(bucket) = &mut self.set[kind] {
                bucket.settle(*mark, used);
            }
            if let Some(bucket) = &mut self.learned[kind] {
                *mark = bucket.settle(*mark, used);
            }
        }
        marks
    }

    fn learn(&mut self, charge: &Charge, marks: [Mark; KINDS], rates: Option<&RateLimits>, now: Duration) {
        let Some(rates) = rates else { return };
        let told = rates.windows();
        let marks = marks.iter().zip(self.flying);
        for ((bucket, (mark, flying)), window) in self.learned.iter_mut().zip(marks).zip(told) {
            let Some(window) = window.filter(|window: &RateWindow| window.limit > 0) else { continue };
            match bucket {
                Some(bucket) => bucket.learn(window, *mark, charge.sent, now),
                None => *bucket = Some(Bucket::learned(window, flying, now)),
            }
        }
    }
}

/// What the provider charges only when a call ends, of each kind.
fn charged_late(output: f64, set_aside: Option<f64>) -> [f64; KINDS] {
    [0.0, if set_aside.is_some() { 0.0 } else { output }, 0.0, output]
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
