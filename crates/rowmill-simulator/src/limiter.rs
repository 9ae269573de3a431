//! The token buckets of every key and model: admits calls, and settles their use afterwards.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::bucket::{Bucket, Standing};
use crate::limits::{Limits, Measure};

/// The owner of buckets: a key and a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    pub(crate) key: String,
    pub(crate) model: String,
}

/// What a call takes from the token buckets when it is admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// From the bucket for both directions.
    pub(crate) tokens: u64,
    /// From the bucket for prompts.
    pub(crate) input: u64,
}

/// What a call actually used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// The states of an account's buckets, for each limit that is set.
pub(crate) type Standings = Vec<(Measure, Standing)>;

/// A call that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limited {
    /// The limit with the longest wait.
    pub(crate) by: Measure,
    /// The time until this call would be admitted.
    pub(crate) wait: Duration,
    pub(crate) standings: Standings,
}

/// The buckets of all accounts, and the limits in force.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    limits: Limits,
    accounts: HashMap<Account, Buckets>,
}

type Buckets = [Option<Bucket>; Measure::ALL.len()];

impl Limiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, accounts: HashMap::new() }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Changes the limits from now on.
    pub(crate) fn set(&mut self, limits: Limits, now: Instant) {
        self.limits = limits;
        for buckets in self.accounts.values_mut() {
            for (bucket, measure) in buckets.iter_mut().zip(Measure::ALL) {
                match (limits.of(measure), &mut *bucket) {
                    (None, _) => *bucket = None,
                    (Some(limit), Some(bucket)) => bucket.change(limit, now),
                    (Some(limit), None) => *bucket = Some(Bucket::full(limit, now)),
                }
            }
        }
    }

    /// Takes what a call needs, or returns how long it must wait and takes nothing.
    pub(crate) fn admit(
        &mut self,
        account: &Account,
        claim: Claim,
        now: Instant,
    ) -> Result<Standings, Limited> {
        if self.limits == Limits::default() {
            return Ok(Vec::new());
        }
        let limits = self.limits;
        let buckets = self.accounts.entry(account.clone()).or_insert_with(|| {
            Measure::ALL.map(|measure| limits.of(measure).map(|limit| Bucket::full(limit, now)))
        });
        let wait = |(bucket, measure): (&Option<Bucket>, Measure)| {
            let bucket = bucket.as_ref()?;
            let wait = match measure {
                Measure::Requests => bucket.wait_for(1, now),
                Measure::Tokens => bucket.wait_for(claim.tokens, now),
                Measure::InputTokens => bucket.wait_for(claim.input, now),
                // The number of generated tokens is not known yet, so it is enough that something is left.
                Measure::OutputTokens => bucket.wait_for_any(now),
            };
            Some((measure, wait))
        };
        let longest = buckets.iter().zip(Measure::ALL).filter_map(wait).max_by_key(|(_, wait)| *wait);
        if let Some((by, wait)) = longest.filter(|(_, wait)| !wait.is_zero()) {
            return Err(Limited { by, wait, standings: standings(buckets, now) });
        }
        for (bucket, measure) in buckets.iter_mut().zip(Measure::ALL) {
            if let Some(bucket) = bucket {
                match measure {
                    Measure::Requests => bucket.take(1, now),
                    Measure::Tokens => bucket.take(claim.tokens, now),
                    Measure::InputTokens => bucket.take(claim.input, now),
                    Measure::OutputTokens => {}
                }
            }
        }
        Ok(standings(buckets, now))
    }

    /// Corrects what was taken to what was actually used.
    pub(crate) fn settle(&mut self, account: &Account, claim: Claim, used: Used, now: Instant) {
        let Some(buckets) = self.accounts.get_mut(account) else { return };
        for (bucket, measure) in buckets.iter_mut().zip(Measure::ALL) {
            let Some(bucket) = bucket else { continue };
            let (taken, due) = match measure {
                Measure::Requests => continue,
                Measure::Tokens => (claim.tokens, used.input + used.output),
                Measure::InputTokens => (claim.input, used.input),
                Measure::OutputTokens => (0, used.output),
            };
            if taken > due {
                bucket.give_back(taken - due, now);
            } else {
                bucket.take(due - taken, now);
            }
        }
    }
}

fn standings(buckets: &Buckets, now: Instant) -> Standings {
    let standing =
        |(bucket, measure): (&Option<Bucket>, Measure)| Some((measure, bucket.as_ref()?.standing(now)));
    buckets.iter().zip(Measure::ALL).filter_map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(key: &str) -> Account {
        Account { key: key.into(), model: "m".into() }
    }

    fn remaining(standings: &Standings, measure: Measure) -> u64 {
        standings.iter().find(|(held, _)| *held == measure).unwrap().1.remaining
    }

    #[test]
    fn a_call_that_does_not_fit_takes_nothing_and_is_told_its_own_wait() {
        let now = Instant::now();
        let limits = Limits { requests: Some(60), tokens: Some(600), ..Limits::default() };
        let mut limiter = Limiter::new(limits);
        let large = Claim { tokens: 500, input: 500 };
        assert!(limiter.admit(&account("a"), large, now).is_ok());
        let limited = limiter.admit(&account("a"), large, now).unwrap_err();
        assert_eq!((limited.by, limited.wait), (Measure::Tokens, Duration::from_secs(40)));
        assert_eq!(remaining(&limited.standings, Measure::Requests), 59);
        let small = limiter.admit(&account("a"), Claim { tokens: 100, input: 100 }, now).unwrap();
        assert_eq!((remaining(&small, Measure::Requests), remaining(&small, Measure::Tokens)), (58, 0));
        assert!(limiter.admit(&account("b"), large, now).is_ok());
    }

    #[test]
    fn settling_gives_back_or_takes_more_and_leaves_the_request() {
        let now = Instant::now();
        let limits = Limits {
            requests: Some(10),
            tokens: Some(1_000),
            input_tokens: Some(1_000),
            output_tokens: Some(100),
        };
        let mut limiter = Limiter::new(limits);
        let claim = Claim { tokens: 400, input: 100 };
        limiter.admit(&account("a"), claim, now).unwrap();
        limiter.settle(&account("a"), claim, Used { input: 120, output: 130 }, now);
        let limited = limiter.admit(&account("a"), Claim::default(), now).unwrap_err();
        assert_eq!(limited.by, Measure::OutputTokens);
        let left = Measure::ALL.map(|measure| remaining(&limited.standings, measure));
        assert_eq!(left, [9, 750, 880, 0]);
    }

    #[test]
    fn limits_can_come_and_go_while_it_runs() {
        let now = Instant::now();
        let mut limiter = Limiter::new(Limits { requests: Some(1), ..Limits::default() });
        limiter.admit(&account("a"), Claim::default(), now).unwrap();
        assert!(limiter.admit(&account("a"), Claim::default(), now).is_err());
        limiter.set(Limits { tokens: Some(10), ..Limits::default() }, now);
        let standings = limiter.admit(&account("a"), Claim { tokens: 4, input: 4 }, now).unwrap();
        assert_eq!((standings.len(), remaining(&standings, Measure::Tokens)), (1, 6));
        limiter.set(Limits::default(), now);
        assert_eq!(limiter.admit(&account("a"), Claim { tokens: 99, input: 9 }, now), Ok(Vec::new()));
    }
}
