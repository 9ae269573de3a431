//! The token buckets of every key and model: admits calls, and settles their use afterwards.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::bucket::{BucketState, SimulatedBucket};
use crate::limits::{LimitKind, SimulatedLimits};

/// The owner of buckets: a key and a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LimitAccount {
    pub(crate) key: String,
    pub(crate) model: String,
}

/// What a call takes from the token buckets when it is admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallClaim {
    /// From the bucket for both directions.
    pub(crate) tokens: u64,
    /// From the bucket for prompts.
    pub(crate) input: u64,
}

/// What a call actually used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallUsage {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// The states of an account's buckets, for each limit that is set.
pub(crate) type BucketStates = Vec<(LimitKind, BucketState)>;

/// A call that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitExceeded {
    /// The limit with the longest wait.
    pub(crate) by: LimitKind,
    /// The time until this call would be admitted.
    pub(crate) wait: Duration,
    pub(crate) standings: BucketStates,
}

/// The buckets of all accounts, and the limits in force.
#[derive(Debug, Default)]
pub(crate) struct SimulatedLimiter {
    limits: SimulatedLimits,
    accounts: HashMap<LimitAccount, Buckets>,
}

type Buckets = [Option<SimulatedBucket>; LimitKind::ALL.len()];

impl SimulatedLimiter {
    pub(crate) fn new(limits: SimulatedLimits) -> Self {
        Self { limits, accounts: HashMap::new() }
    }

    pub(crate) fn limits(&self) -> SimulatedLimits {
        self.limits
    }

    /// Changes the limits from now on.
    pub(crate) fn set(&mut self, limits: SimulatedLimits, now: Instant) {
        self.limits = limits;
        for buckets in self.accounts.values_mut() {
            for (bucket, measure) in buckets.iter_mut().zip(LimitKind::ALL) {
                match (limits.limit_on(measure), &mut *bucket) {
                    (None, _) => *bucket = None,
                    (Some(limit), Some(bucket)) => bucket.set_limit(limit, now),
                    (Some(limit), None) => *bucket = Some(SimulatedBucket::full(limit, now)),
                }
            }
        }
    }

    /// Takes what a call needs, or returns how long it must wait and takes nothing.
    pub(crate) fn admit(
        &mut self,
        account: &LimitAccount,
        claim: CallClaim,
        now: Instant,
    ) -> Result<BucketStates, LimitExceeded> {
        if self.limits == SimulatedLimits::default() {
            return Ok(Vec::new());
        }
        let limits = self.limits;
        let buckets = self.accounts.entry(account.clone()).or_insert_with(|| {
            LimitKind::ALL
                .map(|measure| limits.limit_on(measure).map(|limit| SimulatedBucket::full(limit, now)))
        });
        let wait = |(bucket, measure): (&Option<SimulatedBucket>, LimitKind)| {
            let bucket = bucket.as_ref()?;
            let wait = match measure {
                LimitKind::Requests => bucket.wait_for(1, now),
                LimitKind::Tokens => bucket.wait_for(claim.tokens, now),
                LimitKind::InputTokens => bucket.wait_for(claim.input, now),
                // The number of generated tokens is not known yet, so it is enough that something is left.
                LimitKind::OutputTokens => bucket.wait_for_any(now),
            };
            Some((measure, wait))
        };
        let longest = buckets.iter().zip(LimitKind::ALL).filter_map(wait).max_by_key(|(_, wait)| *wait);
        if let Some((by, wait)) = longest.filter(|(_, wait)| !wait.is_zero()) {
            return Err(LimitExceeded { by, wait, standings: standings(buckets, now) });
        }
        for (bucket, measure) in buckets.iter_mut().zip(LimitKind::ALL) {
            if let Some(bucket) = bucket {
                match measure {
                    LimitKind::Requests => bucket.take(1, now),
                    LimitKind::Tokens => bucket.take(claim.tokens, now),
                    LimitKind::InputTokens => bucket.take(claim.input, now),
                    LimitKind::OutputTokens => {}
                }
            }
        }
        Ok(standings(buckets, now))
    }

    /// Corrects what was taken to what was actually used.
    pub(crate) fn settle(&mut self, account: &LimitAccount, claim: CallClaim, used: CallUsage, now: Instant) {
        let Some(buckets) = self.accounts.get_mut(account) else { return };
        for (bucket, measure) in buckets.iter_mut().zip(LimitKind::ALL) {
            let Some(bucket) = bucket else { continue };
            let (taken, due) = match measure {
                LimitKind::Requests => continue,
                LimitKind::Tokens => (claim.tokens, used.input + used.output),
                LimitKind::InputTokens => (claim.input, used.input),
                LimitKind::OutputTokens => (0, used.output),
            };
            if taken > due {
                bucket.give_back(taken - due, now);
            } else {
                bucket.take(due - taken, now);
            }
        }
    }
}

fn standings(buckets: &Buckets, now: Instant) -> BucketStates {
    let standing = |(bucket, measure): (&Option<SimulatedBucket>, LimitKind)| {
        Some((measure, bucket.as_ref()?.state(now)))
    };
    buckets.iter().zip(LimitKind::ALL).filter_map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(key: &str) -> LimitAccount {
        LimitAccount { key: key.into(), model: "m".into() }
    }

    fn remaining(standings: &BucketStates, measure: LimitKind) -> u64 {
        standings.iter().find(|(held, _)| *held == measure).unwrap().1.remaining
    }

    #[test]
    fn a_call_that_does_not_fit_takes_nothing_and_is_reported_its_own_wait() {
        let now = Instant::now();
        let limits = SimulatedLimits { requests: Some(60), tokens: Some(600), ..SimulatedLimits::default() };
        let mut limiter = SimulatedLimiter::new(limits);
        let large = CallClaim { tokens: 500, input: 500 };
        assert!(limiter.admit(&account("a"), large, now).is_ok());
        let limited = limiter.admit(&account("a"), large, now).unwrap_err();
        assert_eq!((limited.by, limited.wait), (LimitKind::Tokens, Duration::from_secs(40)));
        assert_eq!(remaining(&limited.standings, LimitKind::Requests), 59);
        let small = limiter.admit(&account("a"), CallClaim { tokens: 100, input: 100 }, now).unwrap();
        assert_eq!((remaining(&small, LimitKind::Requests), remaining(&small, LimitKind::Tokens)), (58, 0));
        assert!(limiter.admit(&account("b"), large, now).is_ok());
    }

    #[test]
    fn settling_gives_back_or_takes_more_and_leaves_the_request() {
        let now = Instant::now();
        let limits = SimulatedLimits {
            requests: Some(10),
            tokens: Some(1_000),
            input_tokens: Some(1_000),
            output_tokens: Some(100),
        };
        let mut limiter = SimulatedLimiter::new(limits);
        let claim = CallClaim { tokens: 400, input: 100 };
        limiter.admit(&account("a"), claim, now).unwrap();
        limiter.settle(&account("a"), claim, CallUsage { input: 120, output: 130 }, now);
        let limited = limiter.admit(&account("a"), CallClaim::default(), now).unwrap_err();
        assert_eq!(limited.by, LimitKind::OutputTokens);
        let left = LimitKind::ALL.map(|measure| remaining(&limited.standings, measure));
        assert_eq!(left, [9, 750, 880, 0]);
    }

    #[test]
    fn limits_can_come_and_go_while_it_runs() {
        let now = Instant::now();
        let mut limiter =
            SimulatedLimiter::new(SimulatedLimits { requests: Some(1), ..SimulatedLimits::default() });
        limiter.admit(&account("a"), CallClaim::default(), now).unwrap();
        assert!(limiter.admit(&account("a"), CallClaim::default(), now).is_err());
        limiter.set(SimulatedLimits { tokens: Some(10), ..SimulatedLimits::default() }, now);
        let standings = limiter.admit(&account("a"), CallClaim { tokens: 4, input: 4 }, now).unwrap();
        assert_eq!((standings.len(), remaining(&standings, LimitKind::Tokens)), (1, 6));
        limiter.set(SimulatedLimits::default(), now);
        assert_eq!(limiter.admit(&account("a"), CallClaim { tokens: 99, input: 9 }, now), Ok(Vec::new()));
    }
}
