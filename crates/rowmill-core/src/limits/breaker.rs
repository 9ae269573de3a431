//! Tells an outage of a provider from a row that it cannot answer.

use std::time::Duration;

use rowmill_types::CallFailure;

/// So many failures in a row, without an answer between them, are an outage …
const STREAK: u32 = 5;
/// … if they were met by this many rows; one row alone may be the cause itself.
const ROWS: usize = 3;
/// The first wait between probes; it doubles up to the last.
const PROBE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Who is to blame for a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The row, perhaps: it costs one of its tries.
    Row,
    /// The provider: the row waits its turn and loses nothing.
    Provider,
}

/// Whether a call may go to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It may.
    Free,
    /// It may, alone, to see whether the provider is back.
    Probe,
    /// Not before this time; `None` while a probe is under way.
    Wait(Option<Duration>),
}

/// The state of one provider.
#[derive(Debug, Clone)]
pub struct Breaker {
    state: State,
    streak: u32,
    rows: Vec<u64>,
    ever_answered: bool,
    last_answer: Duration,
    said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Duration, wait: Duration },
    Probing { wait: Duration },
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            state: State::Closed,
            streak: 0,
            rows: Vec::new(),
            ever_answered: false,
            last_answer: Duration::ZERO,
            said: String::new(),
        }
    }
}

impl Breaker {
    /// Whether a call may be sent now.
    #[must_use]
    pub fn passage(&self, now: Duration) -> Passage {
        match self.state {
            State::Closed => Passage::Free,
            State::Open { until, .. } if until <= now => Passage::Probe,
            State::Open { until, .. } => Passage::Wait(Some(until)),
            State::Probing { .. } => Passage::Wait(None),
        }
    }

    /// Whether the provider is taken to be down.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// What the last failure said.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }

    /// When the provider last answered.
    #[must_use]
    pub fn last_answer(&self) -> Duration {
        self.last_answer
    }

    /// A probe was sent.
    pub fn probe(&mut self) {
        if let State::Open { wait, .. } = self.state {
            self.state = State::Probing { wait };
        }
    }

    /// A probe was given up before it said anything; another call may probe.
    pub fn probe_lost(&mut self, now: Duration) {
        if let State::Probing { wait } = self.state {
            self.state = State::Open { until: now, wait };
        }
    }

    /// The provider answered; `true` if this ends an outage.
    pub fn answered(&mut self, now: Duration) -> bool {
        let ends_outage = self.is_open();
        self.state = State::Closed;
        self.streak = 0;
        self.rows.clear();
        self.ever_answered = true;
        self.last_answer = now;
        ends_outage
    }

    /// A call of `row` failed in a way that the provider may be to blame for.
    pub fn failed(&mut self, row: u64, failure: CallFailure, message: &str, now: Duration) -> Blame {
        self.said.clear();
        self.said.push_str(message);
        match self.state {
            State::Probing { wait } => {
                let wait = (wait * 2).min(PROBE.1);
                self.state = State::Open { until: now + wait, wait };
                return Blame::Provider;
            }
            State::Open { .. } => return Blame::Provider,
            State::Closed => {}
        }
        self.streak += 1;
        if self.rows.len() < ROWS && !self.rows.contains(&row) {
            self.rows.push(row);
        }
        // A server that has answered and now takes no connection is down, whatever the row.
        let refused = failure == CallFailure::Connect && self.ever_answered;
        if refused || (self.streak >= STREAK && self.rows.len() >= ROWS) {
            self.state = State::Open { until: now + PROBE.0, wait: PROBE.0 };
            return Blame::Provider;
        }
        Blame::Row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn fail(breaker: &mut Breaker, row: u64, now: u64) -> Blame {
        breaker.failed(row, CallFailure::Server, "503", at(now))
    }

    #[test]
    fn failures_of_several_rows_without_an_answer_between_them_are_an_outage() {
        let mut breaker = Breaker::default();
        let blames: Vec<_> = (1..=6).map(|row| fail(&mut breaker, row, 0)).collect();
        assert_eq!(blames[..4], [Blame::Row; 4]);
        assert_eq!(blames[4..], [Blame::Provider; 2]);
        assert_eq!(breaker.passage(at(0)), Passage::Wait(Some(at(1))));
        assert_eq!(breaker.said(), "503");
    }

    #[test]
    fn one_row_that_keeps_failing_is_no_outage() {
        let mut breaker = Breaker::default();
        assert!((0..50).all(|now| fail(&mut breaker, 7, now) == Blame::Row));
        let mut breaker = Breaker::default();
        for row in 0..50 {
            assert_eq!(fail(&mut breaker, row, 0), Blame::Row);
            breaker.answered(at(0));
        }
    }

    #[test]
    fn one_probe_at_a_time_finds_out_whether_the_provider_is_back() {
        let mut breaker = Breaker::default();
        (1..=4).for_each(|row| assert_eq!(fail(&mut breaker, row, 0), Blame::Row));
        assert_eq!(fail(&mut breaker, 5, 0), Blame::Provider);
        assert_eq!(breaker.passage(at(1)), Passage::Probe);
        breaker.probe();
        assert_eq!(breaker.passage(at(1)), Passage::Wait(None));
        assert_eq!(fail(&mut breaker, 9, 2), Blame::Provider);
        assert_eq!(breaker.passage(at(2)), Passage::Wait(Some(at(4))));
        breaker.probe_lost(at(4));
        breaker.probe();
        assert!(breaker.answered(at(5)));
        assert_eq!(breaker.passage(at(5)), Passage::Free);
        assert!(!breaker.answered(at(6)));
    }

    #[test]
    fn a_probe_that_is_given_up_leaves_the_way_to_another() {
        let mut breaker = Breaker::default();
        (1..=4).for_each(|row| assert_eq!(fail(&mut breaker, row, 0), Blame::Row));
        assert_eq!(fail(&mut breaker, 5, 0), Blame::Provider);
        breaker.probe();
        breaker.probe_lost(at(3));
        assert_eq!(breaker.passage(at(3)), Passage::Probe);
    }

    #[test]
    fn a_refused_connection_is_an_outage_only_of_a_server_that_has_answered() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.failed(1, CallFailure::Connect, "refused", at(0)), Blame::Row);
        breaker.answered(at(1));
        assert_eq!(breaker.failed(1, CallFailure::Connect, "refused", at(2)), Blame::Provider);
    }
}
