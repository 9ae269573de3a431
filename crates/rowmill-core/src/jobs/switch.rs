//! When a run with a deadline leaves its batch jobs and goes on with live calls.

use std::time::Duration;

use crate::forecast::estimate_duration_at_limits;
use crate::limits::{CallParallelism, MinuteLimits};

/// What a live pass is allowed to take, compared with its estimate.
const MARGIN: f64 = 1.5;
/// Calls in flight at the start, if their number adapts to the provider.
const FIRST_CALLS: usize = 8;

/// How fast live calls can be answered, as far as it is known. Where it is not known, the values are those of slow
/// calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LivePace {
    /// The limits per minute: those of the user, and those that the provider has reported.
    pub limits: MinuteLimits,
    /// How many calls may be in flight.
    pub parallel: CallParallelism,
    /// How long a slow call takes.
    pub call_time: Duration,
    /// The prompt tokens of a call.
    pub input_tokens: f64,
    /// The generated tokens of a call.
    pub output_tokens: f64,
}

impl LivePace {
    /// How long this many calls may take, with a margin of half as much again.
    ///
    /// Whatever is slower counts: the limits per minute, or rounds of calls that are all slow. One call is added for the
    /// end, when the last of them is waited for alone.
    #[must_use]
    pub fn time_for(&self, calls: u64) -> Duration {
        if calls == 0 {
            return Duration::ZERO;
        }
        let input = calls as f64 * self.input_tokens;
        let output = calls as f64 * self.output_tokens;
        let limited =
            estimate_duration_at_limits(self.limits, calls, input, Some(output)).unwrap_or_default();
        let at_once = match self.parallel {
            CallParallelism::Auto => FIRST_CALLS,
            CallParallelism::AutoUpTo(most) => most.clamp(1, FIRST_CALLS),
            CallParallelism::AtMost(most) => most.max(1),
        };
        let rounds = u32::try_from(calls.div_ceil(at_once as u64)).unwrap_or(u32::MAX);
        let answered = self.call_time.saturating_mul(rounds);
        let longest = limited.max(answered).saturating_add(self.call_time);
        Duration::try_from_secs_f64(longest.as_secs_f64() * MARGIN).unwrap_or(Duration::MAX)
    }
}

/// What a run that waits for batch jobs still has to do before its deadline, if it switches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchFacts {
    /// The time until the deadline.
    pub time_left: Duration,
    /// Live calls that the unfinished requests would take.
    pub calls: u64,
    /// How fast live calls can be answered.
    pub pace: LivePace,
    /// How long jobs may take to end once they are cancelled.
    pub cancel_time: Duration,
    /// How long a pass over the input takes that makes no calls.
    pub pass_time: Duration,
}

impl SwitchFacts {
    /// How long the run may still wait for its jobs; `None` if it has to cancel them now.
    ///
    /// The time left must suffice for the end of the jobs, for a pass that collects what they have finished, for one
    /// that begins, and for the live calls.
    #[must_use]
    pub fn time_for_jobs(&self) -> Option<Duration> {
        let needed = self.time_for_live_calls().saturating_add(self.cancel_time);
        self.time_left.checked_sub(needed).filter(|left| !left.is_zero())
    }

    /// How long to wait for the end of jobs that are being cancelled, because their results say which requests were
    /// paid for.
    ///
    /// As long as the live calls can still be made after it. If the deadline is nearer than that, it is missed whatever
    /// is done, so the jobs get the time that they usually take, but no more than half of what is left.
    #[must_use]
    pub fn time_for_cancelling(&self) -> Duration {
        let spare = self.time_left.saturating_sub(self.time_for_live_calls());
        spare.max(self.cancel_time.min(self.time_left / 2))
    }

    fn time_for_live_calls(&self) -> Duration {
        self.pace.time_for(self.calls).saturating_add(self.pass_time.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace() -> LivePace {
        LivePace {
            limits: MinuteLimits::default(),
            parallel: CallParallelism::AtMost(10),
            call_time: 20 * SECOND,
            input_tokens: 100.0,
            output_tokens: 50.0,
        }
    }

    fn facts(time_left: Duration) -> SwitchFacts {
        let (cancel_time, pass_time) = (600 * SECOND, 5 * SECOND);
        SwitchFacts { time_left, calls: 100, pace: pace(), cancel_time, pass_time }
    }

    #[test]
    fn slow_calls_in_rounds_take_half_as_long_again_as_their_sum() {
        // Ten rounds and the last call, at 20 s each.
        assert_eq!(pace().time_for(100), 330 * SECOND);
        assert_eq!(pace().time_for(0), Duration::ZERO);
        let adapts = LivePace { parallel: CallParallelism::Auto, ..pace() };
        assert_eq!(adapts.time_for(16), 90 * SECOND);
        let few = LivePace { parallel: CallParallelism::AutoUpTo(2), ..pace() };
        assert_eq!(few.time_for(16), 270 * SECOND);
        assert!(pace().time_for(u64::MAX) > 1_000_000 * 3_600 * SECOND);
    }

    #[test]
    fn the_strictest_limit_per_minute_counts_where_it_is_slower_than_the_calls() {
        let limited = |limits| LivePace { limits, ..pace() }.time_for(100);
        // A hundred requests take ten minutes, and then there is the last one.
        assert_eq!(limited(MinuteLimits { requests: Some(10), ..MinuteLimits::default() }), 930 * SECOND);
        assert_eq!(limited(MinuteLimits { requests: Some(1_000), ..MinuteLimits::default() }), 330 * SECOND);
        assert_eq!(limited(MinuteLimits { tokens: Some(1_000), ..MinuteLimits::default() }), 1_380 * SECOND);
        let output = MinuteLimits { output_tokens: Some(500), ..MinuteLimits::default() };
        assert_eq!(limited(output), 930 * SECOND);
    }

    #[test]
    fn jobs_are_waited_for_as_long_as_the_rest_of_the_time_suffices() {
        // 600 s for cancelling, two passes of 5 s, 330 s for the calls.
        assert_eq!(facts(1_000 * SECOND).time_for_jobs(), Some(60 * SECOND));
        assert_eq!(facts(940 * SECOND).time_for_jobs(), None);
        assert_eq!(facts(10 * SECOND).time_for_jobs(), None);
        let fewer = SwitchFacts { calls: 10, ..facts(1_000 * SECOND) };
        assert_eq!(fewer.time_for_jobs(), Some(330 * SECOND), "finished requests move the moment");
    }

    #[test]
    fn the_end_of_cancelling_is_waited_for_until_the_last_moment() {
        assert_eq!(facts(1_000 * SECOND).time_for_cancelling(), 660 * SECOND);
        // The deadline is missed anyway: no row is paid for twice just to miss it by less.
        assert_eq!(facts(300 * SECOND).time_for_cancelling(), 150 * SECOND);
        let quick = SwitchFacts { cancel_time: 60 * SECOND, ..facts(300 * SECOND) };
        assert_eq!(quick.time_for_cancelling(), 60 * SECOND);
    }
}
