//! A measurement of how long calls take while the maximum number is in flight.

use std::time::Duration;

/// Above this share of refusals fewer calls at once may be better.
const OFTEN: f64 = 0.1;

/// The results of the calls that were sent since the measurement began.
///
/// Uses the geometric mean of the answer times, so that a few very slow calls do not dominate.
#[derive(Debug, Clone, Default)]
pub(super) struct MeasurementWindow {
    began: Duration,
    answers: u64,
    logarithms: f64,
    refusals: u64,
    /// The time that refused calls took.
    lost: f64,
    /// Whether a call was kept waiting for a slot.
    pub(super) was_full: bool,
}

impl MeasurementWindow {
    pub(super) fn begin(now: Duration) -> Self {
        Self { began: now, ..Self::default() }
    }

    /// Adds an answer, if its call was sent after the measurement began.
    pub(super) fn record_answer(&mut self, sent: Duration, now: Duration) {
        if sent >= self.began {
            self.answers += 1;
            self.logarithms += now.saturating_sub(sent).as_secs_f64().max(1e-6).ln();
        }
    }

    /// Adds an isolated refusal, under the same condition.
    pub(super) fn record_refusal(&mut self, sent: Duration, now: Duration) {
        if sent >= self.began {
            self.refusals += 1;
            self.lost += now.saturating_sub(sent).as_secs_f64();
        }
    }

    /// The number of answered calls.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// How long a slot is occupied for each answer, including the refusals before it.
    pub(super) fn seconds_per_answer(&self) -> f64 {
        let answers = self.answers.max(1) as f64;
        (self.logarithms / answers).exp() + self.lost / answers
    }

    /// Whether calls are refused so often that fewer of them may be better.
    pub(super) fn is_often_refused(&self) -> bool {
        self.refusals as f64 > (self.refusals + self.answers) as f64 * OFTEN
    }
}
