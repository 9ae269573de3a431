//! A quota of calls that can be exhausted and renewed.

use std::time::Duration;

use tokio::time::Instant;

/// How many calls are allowed before all further ones are rejected.
#[derive(Debug, Default)]
pub(crate) struct CallQuota {
    /// The number of calls in one quota, if limited.
    pub(crate) calls: Option<u64>,
    /// The time from exhaustion to the next quota, if it is renewed.
    pub(crate) renews: Option<Duration>,
    used: u64,
    spent: Option<Instant>,
    /// Set from outside, independent of use.
    is_exhausted: bool,
}

/// An exhausted quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaExhausted {
    /// The time until it is renewed, if it will be.
    pub(crate) wait: Option<Duration>,
}

impl CallQuota {
    pub(crate) fn new(calls: Option<u64>, renews: Option<Duration>) -> Self {
        Self { calls, renews, ..Self::default() }
    }

    /// Whether another call is allowed.
    pub(crate) fn check(&mut self, now: Instant) -> Result<(), QuotaExhausted> {
        if self.is_exhausted {
            return Err(QuotaExhausted { wait: None });
        }
        if self.calls.is_none_or(|calls| self.used < calls) {
            return Ok(());
        }
        let since = now.saturating_duration_since(*self.spent.get_or_insert(now));
        match self.renews {
            Some(renews) if since >= renews => {
                self.renew();
                Ok(())
            }
            renews => Err(QuotaExhausted { wait: renews.map(|renews| renews - since) }),
        }
    }

    /// Counts an admitted call.
    pub(crate) fn take(&mut self, now: Instant) {
        self.used += 1;
        if self.calls == Some(self.used) {
            self.spent = Some(now);
        }
    }

    /// Rejects all calls from now on.
    pub(crate) fn exhaust(&mut self) {
        self.is_exhausted = true;
    }

    /// Starts a new quota.
    pub(crate) fn renew(&mut self) {
        self.is_exhausted = false;
        self.used = 0;
        self.spent = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_runs_out_and_is_renewed_after_its_time() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut quota = CallQuota::new(Some(2), Some(Duration::from_secs(10)));
        for second in [0, 5] {
            assert_eq!(quota.check(after(second)), Ok(()));
            quota.take(after(second));
        }
        assert_eq!(quota.check(after(6)), Err(QuotaExhausted { wait: Some(Duration::from_secs(9)) }));
        assert_eq!(quota.check(after(15)), Ok(()));
        quota.take(after(15));
        assert_eq!(quota.check(after(16)), Ok(()));
    }

    #[test]
    fn a_quota_that_is_exhausted_from_outside_stays_so_until_it_is_renewed() {
        let start = Instant::now();
        let mut quota = CallQuota::new(None, Some(Duration::from_secs(1)));
        quota.exhaust();
        assert_eq!(quota.check(start + Duration::from_secs(60)), Err(QuotaExhausted { wait: None }));
        quota.renew();
        assert_eq!(quota.check(start), Ok(()));
    }
}
