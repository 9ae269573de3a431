//! Distinguishes an outage of a provider from a row that it cannot answer.

use std::time::Duration;

use rowmill_types::CallFailure;

/// This many consecutive failures, without an answer between them, are an outage …
const STREAK: u32 = 5;
/// … if they hit at least this many rows; a single row may be the cause itself.
const ROWS: usize = 3;
/// The first wait between probes, and the maximum to which it doubles.
const PROBE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Who is to blame for a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureBlame {
    /// Possibly the row: this costs it an attempt.
    Row,
    /// The provider: the row waits and loses no attempt.
    Provider,
    /// Nobody: an isolated refusal. The row waits for the requested time, other rows continue.
    StrayRefusal(Option<Duration>),
    /// The provider, which refuses every call and is not waited for: this costs the row an attempt.
    ProviderNotAwaited,
}

/// Whether a call may go to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerDecision {
    /// It may be sent.
    Allowed,
    /// It may be sent, alone, to test whether the provider is back.
    Probe,
    /// Not before this time; `None` while a probe is under way.
    Wait(Option<Duration>),
}

/// The state of one provider.
///
/// Every report about a call is judged by the time when the call was sent: a call that was sent before or during an
/// outage proves nothing about the provider afterwards.
#[derive(Debug, Clone)]
pub struct CircuitBreaker {
    state: BreakerState,
    streak: u32,
    /// The rows hit by the failures, with their runs.
    rows: Vec<(u64, u64)>,
    ever_answered: bool,
    /// When the latest answered call was sent.
    alive: Duration,
    /// When the provider last went down, and when it last came back.
    went_down: Duration,
    came_back: Duration,
    /// The time since which it has let no call through.
    stuck_since: Option<Duration>,
    last_message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    Closed,
    Open { until: Duration, wait: Duration },
    Probing { wait: Duration },
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            state: BreakerState::Closed,
            streak: 0,
            rows: Vec::new(),
            ever_answered: false,
            alive: Duration::ZERO,
            went_down: Duration::ZERO,
            came_back: Duration::ZERO,
            stuck_since: None,
            last_message: String::new(),
        }
    }
}

impl CircuitBreaker {
    /// Whether a call may be sent now.
    #[must_use]
    pub fn decide(&self, now: Duration) -> BreakerDecision {
        match self.state {
            BreakerState::Closed => BreakerDecision::Allowed,
            BreakerState::Open { until, .. } if until <= now => BreakerDecision::Probe,
            BreakerState::Open { until, .. } => BreakerDecision::Wait(Some(until)),
            BreakerState::Probing { .. } => BreakerDecision::Wait(None),
        }
    }

    /// Whether the provider is considered down.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != BreakerState::Closed
    }

    /// The message of the last failure.
    #[must_use]
    pub fn last_message(&self) -> &str {
        &self.last_message
    }

    /// Whether the provider has ever been reachable.
    #[must_use]
    pub fn was_ever_reached(&self) -> bool {
        self.ever_answered
    }

    /// For how long the provider has let no call through, although calls were sent.
    #[must_use]
    pub fn time_without_answer(&self, now: Duration) -> Duration {
        self.stuck_since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// A probe was sent.
    pub fn record_probe_sent(&mut self) {
        if let BreakerState::Open { wait, .. } = self.state {
            self.state = BreakerState::Probing { wait };
        }
    }

    /// A probe was dropped without a result; another call may probe.
    pub fn record_lost_probe(&mut self, now: Duration) {
        if let BreakerState::Probing { wait } = self.state {
            self.state = BreakerState::Open { until: now, wait };
        }
    }

    /// The provider answered a call that was sent at `sent`; returns `true` if this ends an outage.
    pub fn record_answer(&mut self, sent: Duration, now: Duration) -> bool {
        self.stuck_since = None;
        self.is_alive(sent, now)
    }

    /// The provider refused a call because of a limit: it is up, but lets no calls through. Returns `true` if this ends
    /// an outage.
    pub fn record_refusal(&mut self, sent: Duration, now: Duration) -> bool {
        self.stuck_since.get_or_insert(now);
        self.is_alive(sent, now)
    }

    fn is_alive(&mut self, sent: Duration, now: Duration) -> bool {
        self.ever_answered = true;
        self.alive = self.alive.max(sent);
        let is_open = self.is_open();
        if is_open && sent < self.went_down {
            return false;
        }
        if is_open {
            self.came_back = now;
        }
        self.state = BreakerState::Closed;
        self.streak = 0;
        self.rows.clear();
        is_open
    }

    /// A call failed, possibly through the provider's fault.
    pub fn record_failure(&mut self, call: FailedCall<'_>, now: Duration) -> FailureBlame {
        let FailedCall { run, row, sent, failure, message } = call;
        self.last_message.clear();
        self.last_message.push_str(message);
        self.stuck_since.get_or_insert(now);
        match self.state {
            BreakerState::Probing { wait } if sent >= self.went_down => {
                let wait = (wait * 2).min(PROBE.1);
                self.state = BreakerState::Open { until: now + wait, wait };
                return FailureBlame::Provider;
            }
            BreakerState::Probing { .. } | BreakerState::Open { .. } => return FailureBlame::Provider,
            BreakerState::Closed if sent < self.came_back => return FailureBlame::Provider,
            // A call that was sent later was answered, so the provider is up.
            BreakerState::Closed if sent < self.alive => return FailureBlame::Row,
            BreakerState::Closed => {}
        }
        if failure == CallFailure::Connect && !self.ever_answered {
            // The provider was never reachable: the address is wrong, and waiting does not fix that.
            return FailureBlame::Row;
        }
        self.streak += 1;
        if self.rows.len() < ROWS && !self.rows.contains(&(run, row)) {
            self.rows.push((run, row));
        }
        // A server that has answered and now refuses connections is down, whatever the row.
        let takes_no_connection = failure == CallFailure::Connect;
        if takes_no_connection || (self.streak >= STREAK && self.rows.len() >= ROWS) {
            self.state = BreakerState::Open { until: now + PROBE.0, wait: PROBE.0 };
            self.went_down = now;
            return FailureBlame::Provider;
        }
        FailureBlame::Row
    }
}

/// A failed call.
#[derive(Debug, Clone, Copy)]
pub struct FailedCall<'a> {
    /// The run that made it: rows of two runs have the same numbers.
    pub run: u64,
    /// The row that it was made for.
    pub row: u64,
    /// When it was sent.
    pub sent: Duration,
    /// The kind of failure.
    pub failure: CallFailure,
    /// The error message, for users.
    pub message: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn fail(breaker: &mut CircuitBreaker, row: u64, now: u64) -> FailureBlame {
        failed_as(breaker, CallFailure::Server, row, (now, now))
    }

    fn failed_as(
        breaker: &mut CircuitBreaker,
        failure: CallFailure,
        row: u64,
        (sent, now): (u64, u64),
    ) -> FailureBlame {
        breaker.record_failure(FailedCall { run: 0, row, sent: at(sent), failure, message: "503" }, at(now))
    }

    fn down_at(now: u64) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        breaker.record_answer(at(0), at(0));
        (1..=4).for_each(|row| assert_eq!(fail(&mut breaker, row, now), FailureBlame::Row));
        assert_eq!(fail(&mut breaker, 5, now), FailureBlame::Provider);
        breaker
    }

    #[test]
    fn failures_of_several_rows_without_an_answer_between_them_are_an_outage() {
        let mut breaker = CircuitBreaker::default();
        let blames: Vec<_> = (1..=6).map(|row| fail(&mut breaker, row, 0)).collect();
        assert_eq!(blames[..4], [FailureBlame::Row; 4]);
        assert_eq!(blames[4..], [FailureBlame::Provider; 2]);
        assert_eq!(breaker.decide(at(0)), BreakerDecision::Wait(Some(at(1))));
        assert_eq!(breaker.last_message(), "503");
    }

    #[test]
    fn one_row_that_keeps_failing_is_no_outage() {
        let mut breaker = CircuitBreaker::default();
        assert!((0..50).all(|now| fail(&mut breaker, 7, now) == FailureBlame::Row));
        let mut breaker = CircuitBreaker::default();
        for row in 0..50 {
            assert_eq!(fail(&mut breaker, row, 0), FailureBlame::Row);
            breaker.record_answer(at(0), at(0));
        }
    }

    #[test]
    fn rows_of_several_runs_are_several_rows_whatever_their_numbers() {
        let mut breaker = CircuitBreaker::default();
        let mut failed = |run| {
            let call = FailedCall { run, row: 1, sent: at(0), failure: CallFailure::Server, message: "503" };
            breaker.record_failure(call, at(0))
        };
        assert!((0..6).any(|run| failed(run) == FailureBlame::Provider));
    }

    #[test]
    fn calls_that_hang_while_others_sent_later_are_answered_are_no_outage() {
        let mut breaker = CircuitBreaker::default();
        breaker.record_answer(at(5), at(6));
        let hung = |breaker: &mut CircuitBreaker, row| failed_as(breaker, CallFailure::Timeout, row, (4, 64));
        assert!((0..50).all(|row| hung(&mut breaker, row) == FailureBlame::Row));
        assert_eq!(breaker.decide(at(64)), BreakerDecision::Allowed);
        assert!((0..5).any(|row| fail(&mut breaker, row, 65) == FailureBlame::Provider));
    }

    #[test]
    fn one_probe_at_a_time_finds_out_whether_the_provider_is_back() {
        let mut breaker = down_at(0);
        assert_eq!(breaker.decide(at(1)), BreakerDecision::Probe);
        breaker.record_probe_sent();
        assert_eq!(breaker.decide(at(1)), BreakerDecision::Wait(None));
        assert_eq!(fail(&mut breaker, 9, 2), FailureBlame::Provider);
        assert_eq!(breaker.decide(at(2)), BreakerDecision::Wait(Some(at(4))));
        breaker.record_lost_probe(at(4));
        breaker.record_probe_sent();
        assert!(breaker.record_answer(at(4), at(5)));
        assert_eq!(breaker.decide(at(5)), BreakerDecision::Allowed);
        assert!(!breaker.record_answer(at(5), at(6)));
    }

    #[test]
    fn a_probe_that_is_given_up_leaves_the_way_to_another() {
        let mut breaker = down_at(0);
        breaker.record_probe_sent();
        breaker.record_lost_probe(at(3));
        assert_eq!(breaker.decide(at(3)), BreakerDecision::Probe);
    }

    #[test]
    fn a_refused_connection_is_an_outage_only_of_a_server_that_has_answered() {
        let connect =
            |breaker: &mut CircuitBreaker, row| failed_as(breaker, CallFailure::Connect, row, (0, 0));
        let mut breaker = CircuitBreaker::default();
        assert!((1..=20).all(|row| connect(&mut breaker, row) == FailureBlame::Row));
        breaker.record_answer(at(0), at(0));
        assert_eq!(connect(&mut breaker, 1), FailureBlame::Provider);
    }

    #[test]
    fn what_was_sent_before_the_outage_neither_ends_it_nor_speaks_for_the_probe() {
        let mut breaker = down_at(10);
        assert!(!breaker.record_answer(at(9), at(10)), "it was taken in before the provider went down");
        assert_eq!(breaker.decide(at(11)), BreakerDecision::Probe);
        breaker.record_probe_sent();
        assert_eq!(
            failed_as(&mut breaker, CallFailure::ConnectionBroken, 1, (9, 12)),
            FailureBlame::Provider
        );
        assert_eq!(breaker.decide(at(12)), BreakerDecision::Wait(None), "the probe is still under way");
        assert!(breaker.record_answer(at(11), at(13)));
    }

    #[test]
    fn calls_that_met_the_outage_count_against_nobody_when_they_fail_after_it() {
        let mut breaker = down_at(10);
        breaker.record_probe_sent();
        assert!(breaker.record_answer(at(11), at(12)));
        for row in 0..20 {
            assert_eq!(failed_as(&mut breaker, CallFailure::Timeout, row, (9, 13)), FailureBlame::Provider);
        }
        assert_eq!(breaker.decide(at(13)), BreakerDecision::Allowed);
    }

    #[test]
    fn a_provider_is_stuck_from_its_first_failure_or_refusal_until_it_answers() {
        let mut breaker = down_at(10);
        breaker.record_probe_sent();
        fail(&mut breaker, 6, 20);
        assert_eq!(breaker.time_without_answer(at(30)), at(20));
        breaker.record_refusal(at(30), at(31));
        assert_eq!((breaker.is_open(), breaker.time_without_answer(at(40))), (false, at(30)));
        breaker.record_answer(at(40), at(41));
        assert_eq!(breaker.time_without_answer(at(50)), at(0));
    }
}
