//! Providers that do not answer while jobs are submitted or looked at.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rowmill_types::actions::RUN_AGAIN;
use rowmill_types::{CallError, CallFailure, Problem, ProblemCode};
use tokio::time::Instant;

use super::driver::JobDriver;
use crate::control::RunNotice;
use crate::counts::count_phrase;

/// How long a provider may be silent that has never answered this process: it is more likely misconfigured than down.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);

/// How long a provider is waited for that does not answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutageLimits {
    /// The longest outage; zero means that only attempts count.
    pub(super) patience: Duration,
    /// How often a call is repeated.
    pub(super) retries: u32,
}

/// The providers that do not answer now.
#[derive(Debug)]
pub(super) struct ProviderOutages {
    limits: OutageLimits,
    have_answered: HashSet<String>,
    now: HashMap<String, Outage>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    calls: u32,
    cause: String,
}

/// What is to be done about a call that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutageStep {
    /// The user is told: the cause is new.
    Tell,
    /// Nothing but waiting.
    Wait,
    /// It has been waited for long enough.
    GiveUp(ProblemCode),
}

impl ProviderOutages {
    pub(super) fn new(limits: OutageLimits) -> Self {
        Self { limits, have_answered: HashSet::new(), now: HashMap::new() }
    }

    /// A provider has answered.
    pub(super) fn answered(&mut self, provider: &str) {
        if self.now.remove(provider).is_some() || !self.have_answered.contains(provider) {
            self.have_answered.insert(provider.to_owned());
        }
    }

    /// A call to a provider has failed.
    fn failed(&mut self, provider: &str, error: &CallError, now: Instant) -> OutageStep {
        let has_answered = self.have_answered.contains(provider);
        let new = || Outage { since: now, calls: 0, cause: String::new() };
        let outage = self.now.entry(provider.to_owned()).or_insert_with(new);
        outage.calls += 1;
        let OutageLimits { patience, retries } = self.limits;
        let tried_enough = outage.calls > retries;
        let lasted = now.saturating_duration_since(outage.since);
        let first = patience.min(FIRST_PATIENCE);
        match error.failure {
            CallFailure::Connect if !has_answered && tried_enough => {
                return OutageStep::GiveUp(ProblemCode::Unreachable);
            }
            _ if tried_enough && lasted >= if has_answered { patience } else { first } => {
                return OutageStep::GiveUp(ProblemCode::ProviderDown);
            }
            _ => {}
        }
        let cause = error.to_string();
        if outage.cause == cause {
            return OutageStep::Wait;
        }
        outage.cause = cause;
        OutageStep::Tell
    }
}

impl JobDriver<'_> {
    /// A provider did not answer: says so once for each cause, and gives up when it has been waited for long enough.
    pub(super) fn missed(&mut self, provider: &str, error: &CallError) -> Result<(), Problem> {
        match self.outages.failed(provider, error, Instant::now()) {
            OutageStep::Wait => Ok(()),
            OutageStep::Tell => {
                let text = format!("`{provider}` does not answer, and is asked again: {error}");
                self.notice(RunNotice::warning(text));
                Ok(())
            }
            OutageStep::GiveUp(code) => Err(self.gave_up(code, error)),
        }
    }

    fn gave_up(&self, code: ProblemCode, error: &CallError) -> Problem {
        let counts = self.lane.job_counts();
        let jobs = match counts.submitted {
            0 => "no batch job is at the provider".to_owned(),
            jobs => format!("{} at the provider go on", count_phrase(jobs, "batch job")),
        };
        let first = match code {
            ProblemCode::Unreachable => {
                "start the server or correct the base URL (`rowmill models` shows it)"
            }
            _ => "wait until the provider is back",
        };
        let (message, hint) = (error.message.clone(), format!("{jobs}; {first}, then {RUN_AGAIN}"));
        Problem::new(code, message).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outages(patience: u64) -> ProviderOutages {
        ProviderOutages::new(OutageLimits { patience: Duration::from_secs(patience), retries: 1 })
    }

    fn error(failure: CallFailure) -> CallError {
        CallError::new(failure, "no")
    }

    #[test]
    fn a_server_that_accepts_no_connection_from_the_start_is_given_up_after_its_attempts() {
        let (mut outages, now) = (outages(3_600), Instant::now());
        let refused = error(CallFailure::Connect);
        assert_eq!(outages.failed("p", &refused, now), OutageStep::Tell);
        assert_eq!(outages.failed("p", &refused, now), OutageStep::GiveUp(ProblemCode::Unreachable));
    }

    #[test]
    fn a_provider_that_has_answered_is_waited_for_as_long_as_an_outage_may_last() {
        let (mut outages, now) = (outages(3_600), Instant::now());
        outages.answered("p");
        let mut step =
            |failure, seconds| outages.failed("p", &error(failure), now + Duration::from_secs(seconds));
        assert_eq!(step(CallFailure::Connect, 0), OutageStep::Tell);
        assert_eq!(step(CallFailure::Server, 3_599), OutageStep::Wait);
        assert_eq!(step(CallFailure::Server, 3_600), OutageStep::GiveUp(ProblemCode::ProviderDown));
        outages.answered("p");
        let later = now + Duration::from_secs(9_000);
        assert_eq!(outages.failed("p", &error(CallFailure::Server), later), OutageStep::Tell);
    }

    #[test]
    fn a_provider_that_never_answered_is_waited_for_a_minute_and_without_patience_only_attempts_count() {
        let now = Instant::now();
        for (patience, seconds) in [(3_600, 60), (0, 0)] {
            let mut outages = outages(patience);
            let broken = error(CallFailure::Timeout);
            assert_eq!(outages.failed("p", &broken, now), OutageStep::Tell);
            let later = now + Duration::from_secs(seconds);
            let end = OutageStep::GiveUp(ProblemCode::ProviderDown);
            assert_eq!(outages.failed("p", &broken, later), end, "{patience}");
        }
    }
}
