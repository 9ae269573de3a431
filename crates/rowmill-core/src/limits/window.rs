//! A measurement of how long calls take while as many are in flight as may be.

use std::time::Duration;

/// Above this share of refusals fewer calls at once may be better.
const OFTEN: f64 = 0.1;

/// What became of the calls that were sent since it began.
///
/// The middle of the times of answers is taken by ratio, so that a few calls that take very long
/// decide nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    began: Duration,
    answers: u64,
    logarithms: f64,
    refusals: u64,
    /// The time that refused calls took.
    lost: f64,
    /// Whether a call was kept waiting for a slot.
    pub(super) was_full: bool,
}

impl Window {
    pub(super) fn begin(now: Duration) -> Self {
        Self { began: now, ..Self::default() }
    }

    /// Takes in an answer, if its call was sent after the measurement began.
    pub(super) fn was_answered(&mut self, sent: Duration, now: Duration) {
        if sent >= self.began {
            self.answers += 1;
            self.logarithms += now.saturating_sub(sent).as_secs_f64().max(1e-6).ln();
        }
    }

    /// Takes in a refusal that stands alone, likewise.
    pub(super) fn was_refused(&mut self, sent: Duration, now: Duration) {
        if sent >= self.began {
            self.refusals += 1;
            self.lost += now.saturating_sub(sent).as_secs_f64();
        }
    }

    /// How many calls were answered.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// How long a slot is taken for each answer, refusals on the way to it included.
    pub(super) fn seconds_per_answer(&self) -> f64 {
        let answers = self.answers.max(1) as f64;
        (self.logarithms / answers).exp() + self.lost / answers
    }

    /// Whether calls are refused so often that fewer of them may be better.
    pub(super) fn is_often_refused(&self) -> bool {
        self.refusals as f64 > (self.refusals + self.answers) as f64 * OFTEN
    }
}
