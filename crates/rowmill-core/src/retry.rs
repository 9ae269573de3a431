//! When a failed call is retried.

use std::time::Duration;

use rowmill_types::CallRetryClass;

/// How often, and after which waits, calls are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// The first wait; it doubles with each further one.
    pub base: Duration,
    /// The maximum of the waits that we choose.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 4, base: Duration::from_millis(500), cap: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// The wait before the next attempt, or `None` to give up.
    ///
    /// `failed` is the number of failed attempts so far. `jitter`, from 0 to 1, spreads rows that failed together over
    /// the upper half of the wait. A wait requested by the provider is used if it is longer, and is spread upwards,
    /// never downwards.
    ///
    /// ```
    /// # use {rowmill_core::retry::RetryPolicy, rowmill_types::CallRetryClass, std::time::Duration};
    /// let policy = RetryPolicy { retries: 2, base: Duration::from_secs(1), cap: Duration::from_secs(60) };
    /// let busy = CallRetryClass::Transient { after: None };
    /// assert_eq!(policy.next_wait(1, busy, 1.0), Some(Duration::from_secs(1)));
    /// assert_eq!(policy.next_wait(2, busy, 0.0), Some(Duration::from_secs(1)));
    /// assert_eq!(policy.next_wait(3, busy, 1.0), None);
    /// assert_eq!(policy.next_wait(1, CallRetryClass::Permanent, 1.0), None);
    /// ```
    #[must_use]
    pub fn next_wait(&self, failed: u32, fault: CallRetryClass, jitter: f64) -> Option<Duration> {
        let after = match fault {
            CallRetryClass::Transient { after } => after,
            // None of our calls is in flight whose end could free resources; another process may free some.
            CallRetryClass::LocalShortage => None,
            _ => return None,
        };
        if failed > self.retries {
            return None;
        }
        let doubled = self.base.saturating_mul(1 << failed.saturating_sub(1).min(20)).min(self.cap);
        let ours = doubled.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0));
        Some(match after {
            Some(asked) if asked > ours => asked + self.base.min(asked / 10).mul_f64(jitter.clamp(0.0, 1.0)),
            _ => ours,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_the_provider_asks_for_is_never_shortened() {
        let policy = RetryPolicy::default();
        let asked = CallRetryClass::Transient { after: Some(Duration::from_secs(90)) };
        for jitter in [0.0, 0.5, 1.0] {
            assert!(policy.next_wait(1, asked, jitter).unwrap() >= Duration::from_secs(90));
        }
    }

    #[test]
    fn our_own_waits_double_and_stop_at_the_cap() {
        let policy = RetryPolicy { retries: 40, ..RetryPolicy::default() };
        let waits: Vec<_> = [1, 2, 3, 30]
            .iter()
            .map(|&failed| policy.next_wait(failed, CallRetryClass::Transient { after: None }, 1.0).unwrap())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 60_000].map(Duration::from_millis));
    }
}
