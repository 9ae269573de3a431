//! The conditions in force at a moment, and the changes that the script makes. The time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::distribution::RandomDistribution;
use crate::limiter::SimulatedLimiter;
use crate::limits::{LimitKind, SimulatedLimits};
use crate::outage::OutageKind;
use crate::prompt_cache::PromptCache;
use crate::quota::CallQuota;
use crate::script::SimulatorScript;

/// Something that changes while the simulator runs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SimulatorConditionChange {
    /// Changes a limit per minute; `None` removes it.
    Limit(LimitKind, Option<u64>),
    /// Starts an outage of this length, of this kind or else of the kind that the script sets.
    Outage(Duration, Option<OutageKind>),
    /// Exhausts the quota.
    QuotaExhausted,
    /// Renews the quota.
    QuotaRenewed,
    /// Changes the latency of answers.
    Latency(RandomDistribution),
}

#[derive(Debug, Clone, Copy)]
struct ActiveOutage {
    kind: OutageKind,
    /// Its end, if it has one of its own.
    until: Option<Instant>,
}

/// All state that changes with time and use.
#[derive(Debug)]
pub(crate) struct CurrentConditions {
    pub(crate) limiter: SimulatedLimiter,
    pub(crate) quota: CallQuota,
    pub(crate) cache: PromptCache,
    pub(crate) latency: RandomDistribution,
    outage: Option<ActiveOutage>,
    outage_kind: OutageKind,
    timeline: VecDeque<(Instant, SimulatorConditionChange)>,
    started: Instant,
    /// Every set of limits that was in force, and from when.
    history: Vec<(Instant, SimulatedLimits)>,
}

impl CurrentConditions {
    pub(crate) fn new(script: &SimulatorScript, now: Instant) -> Self {
        let mut timeline: Vec<_> =
            script.changes.iter().map(|(after, change)| (now + *after, *change)).collect();
        timeline.sort_by_key(|(at, _)| *at);
        Self {
            limiter: SimulatedLimiter::new(script.limits),
            quota: CallQuota::new(script.quota_requests, script.quota_renews),
            cache: PromptCache::default(),
            latency: script.latency,
            outage: None,
            outage_kind: script.outage_kind,
            timeline: timeline.into(),
            started: now,
            history: vec![(now, script.limits)],
        }
    }

    /// Makes all changes that are due, each at its own time.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some((at, change)) = self.timeline.pop_front_if(|(at, _)| *at <= now) {
            self.apply(change, at);
        }
        if self.outage.is_some_and(|outage| outage.until.is_some_and(|until| until <= now)) {
            self.outage = None;
        }
    }

    fn apply(&mut self, change: SimulatorConditionChange, at: Instant) {
        match change {
            SimulatorConditionChange::Limit(measure, limit) => {
                self.set_limits(self.limiter.limits().with_limit(measure, limit), at);
            }
            SimulatorConditionChange::Outage(length, kind) => {
                let kind = kind.unwrap_or(self.outage_kind);
                self.outage = Some(ActiveOutage { kind, until: Some(at + length) });
            }
            SimulatorConditionChange::QuotaExhausted => self.quota.exhaust(),
            SimulatorConditionChange::QuotaRenewed => self.quota.renew(),
            SimulatorConditionChange::Latency(latency) => self.latency = latency,
        }
    }

    pub(crate) fn set_limits(&mut self, limits: SimulatedLimits, at: Instant) {
        self.limiter.set(limits, at);
        self.history.push((at, limits));
    }

    /// Starts an outage that lasts until it is ended.
    pub(crate) fn begin_outage(&mut self, kind: OutageKind) {
        self.outage = Some(ActiveOutage { kind, until: None });
    }

    pub(crate) fn end_outage(&mut self) {
        self.outage = None;
    }

    /// The outage that calls meet now, if any.
    pub(crate) fn outage(&self) -> Option<OutageKind> {
        self.outage.map(|outage| outage.kind)
    }

    /// When something may next change without a call.
    pub(crate) fn next_change_at(&self) -> Option<Instant> {
        let change = self.timeline.front().map(|(at, _)| *at);
        let end = self.outage.and_then(|outage| outage.until);
        change.into_iter().chain(end).min()
    }

    /// The minute of a moment, counted from 0.
    pub(crate) fn minute_of(&self, moment: Instant) -> usize {
        let seconds = moment.saturating_duration_since(self.started).as_secs();
        usize::try_from(seconds / 60).unwrap_or(usize::MAX)
    }

    /// How much a limit would have allowed in a minute, up to now; `None` if nothing was limited at any time
    /// in it.
    pub(crate) fn allowed(&self, measure: LimitKind, minute: usize, now: Instant) -> Option<u64> {
        let begin = self.started + Duration::from_secs(60) * u32::try_from(minute).unwrap_or(u32::MAX);
        let end = (begin + Duration::from_secs(60)).min(now);
        let ends = self.history.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let mut allowed = None;
        for ((from, limits), to) in self.history.iter().zip(ends) {
            let time = to.min(end).saturating_duration_since((*from).max(begin));
            if let Some(limit) = limits.limit_on(measure).filter(|_| !time.is_zero()) {
                *allowed.get_or_insert(0.0) += limit as f64 * time.as_secs_f64() / 60.0;
            }
        }
        allowed.map(|amount: f64| amount.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn changes_come_at_their_time_in_their_order() {
        let start = Instant::now();
        let script = SimulatorScript::new()
            .limits(SimulatedLimits { requests: Some(600), ..SimulatedLimits::default() })
            .change_after(seconds(120), SimulatorConditionChange::Limit(LimitKind::Requests, Some(1_200)))
            .change_after(seconds(60), SimulatorConditionChange::Limit(LimitKind::Requests, Some(300)))
            .change_after(seconds(60), SimulatorConditionChange::Limit(LimitKind::Tokens, Some(60_000)));
        let mut conditions = CurrentConditions::new(&script, start);
        for (second, requests, tokens) in [
            (0, 600, None),
            (59, 600, None),
            (60, 300, Some(60_000)),
            (119, 300, Some(60_000)),
            (500, 1_200, Some(60_000)),
        ] {
            conditions.advance(start + seconds(second));
            let limits = conditions.limiter.limits();
            assert_eq!((limits.requests, limits.tokens), (Some(requests), tokens), "{second}");
        }
        let now = start + seconds(150);
        let allowed = |minute| conditions.allowed(LimitKind::Requests, minute, now);
        assert_eq!((allowed(0), allowed(1), allowed(2)), (Some(600), Some(300), Some(600)));
        assert_eq!(conditions.allowed(LimitKind::Tokens, 0, now), None);
        assert_eq!(conditions.allowed(LimitKind::Tokens, 1, now), Some(60_000));
    }

    #[test]
    fn a_minute_in_which_a_limit_changes_allows_what_both_allow() {
        let start = Instant::now();
        let script = SimulatorScript::new()
            .limits(SimulatedLimits { requests: Some(600), ..SimulatedLimits::default() })
            .change_after(seconds(45), SimulatorConditionChange::Limit(LimitKind::Requests, Some(1_200)));
        let mut conditions = CurrentConditions::new(&script, start);
        conditions.advance(start + seconds(300));
        assert_eq!(conditions.allowed(LimitKind::Requests, 0, start + seconds(300)), Some(450 + 300));
    }

    #[test]
    fn an_outage_begins_and_ends_by_itself() {
        let start = Instant::now();
        let script =
            SimulatorScript::new().outage(seconds(60), seconds(30)).outage_kind(OutageKind::Status(529));
        let mut conditions = CurrentConditions::new(&script, start);
        let mut at = |second| {
            conditions.advance(start + seconds(second));
            (conditions.outage(), conditions.next_change_at().map(|turn| (turn - start).as_secs()))
        };
        assert_eq!(at(0), (None, Some(60)));
        assert_eq!(at(60), (Some(OutageKind::Status(529)), Some(90)));
        assert_eq!(at(89), (Some(OutageKind::Status(529)), Some(90)));
        assert_eq!(at(90), (None, None));
    }
}
