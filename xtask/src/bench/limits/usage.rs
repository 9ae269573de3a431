//! The share of the limits that was used, from the simulator's counts.

use std::ops::Range;

use serde::Deserialize;

/// The simulator's counts.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SimulatorCounts {
    pub(super) requests: u64,
    pub(super) answers: u64,
    pub(super) rate_limited: u64,
    pub(super) max_in_flight: u64,
    pub(super) minutes: Vec<MinuteCounts>,
}

/// The admitted and the allowed amounts of a minute.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct MinuteCounts {
    requests: u64,
    input_tokens: u64,
    output_tokens: u64,
    quota_requests: Option<u64>,
    quota_tokens: Option<u64>,
    quota_input_tokens: Option<u64>,
    quota_output_tokens: Option<u64>,
}

/// How much of the tightest limit was used in a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LimitUse {
    pub(super) limit: &'static str,
    pub(super) used: f64,
}

impl SimulatorCounts {
    /// The share of calls that were rejected because of a limit, in percent.
    pub(super) fn refused(&self) -> f64 {
        self.rate_limited as f64 * 100.0 / self.requests.max(1) as f64
    }

    /// The use from one minute up to another, for the limit with the highest use.
    pub(super) fn share(&self, phase: Range<usize>) -> Option<LimitUse> {
        let minutes = self.minutes.get(phase)?;
        let share =
            |limit: &'static str, used: fn(&MinuteCounts) -> u64, quota: fn(&MinuteCounts) -> Option<u64>| {
                let quota = minutes.iter().map(quota).sum::<Option<u64>>().filter(|quota| *quota > 0)?;
                let used: u64 = minutes.iter().map(used).sum();
                Some(LimitUse { limit, used: used as f64 * 100.0 / quota as f64 })
            };
        let shares = [
            share("requests", |minute| minute.requests, |minute| minute.quota_requests),
            share(
                "tokens",
                |minute| minute.input_tokens + minute.output_tokens,
                |minute| minute.quota_tokens,
            ),
            share("input tokens", |minute| minute.input_tokens, |minute| minute.quota_input_tokens),
            share("output tokens", |minute| minute.output_tokens, |minute| minute.quota_output_tokens),
        ];
        shares.into_iter().flatten().max_by(|one, other| one.used.total_cmp(&other.used))
    }

    /// The use in all phases, in percent. Phases do not compensate for each other: use above the limit in one
    /// phase, because of saved-up tokens, does not count.
    pub(super) fn used(&self, phases: &[Range<usize>]) -> Option<f64> {
        let mut used = 0.0;
        for phase in phases {
            used += self.share(phase.clone())?.used.min(100.0) * phase.len() as f64;
        }
        Some(used / phases.iter().map(Range::len).sum::<usize>() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(requests: u64, tokens: u64, factor: u64) -> MinuteCounts {
        MinuteCounts {
            requests,
            input_tokens: tokens / 2,
            output_tokens: tokens - tokens / 2,
            quota_requests: Some(600 * factor),
            quota_tokens: Some(60_000 * factor),
            ..MinuteCounts::default()
        }
    }

    #[test]
    fn a_phase_is_judged_by_the_limit_that_was_met_and_none_makes_up_for_another() {
        let minutes =
            vec![minute(999, 0, 1), minute(600, 30_000, 1), minute(660, 33_000, 1), minute(600, 96_000, 2)];
        let stats =
            SimulatorCounts { requests: 3_000, rate_limited: 15, minutes, ..SimulatorCounts::default() };
        assert_eq!(stats.share(1..3), Some(LimitUse { limit: "requests", used: 105.0 }));
        assert_eq!(stats.share(3..4), Some(LimitUse { limit: "tokens", used: 80.0 }));
        let used = stats.used(&[1..3, 3..4]).unwrap();
        assert!((used - 280.0 / 3.0).abs() < 1e-9, "{used}");
        assert_eq!(stats.share(3..5), None);
        assert!((stats.refused() - 0.5).abs() < 1e-9);
    }
}
