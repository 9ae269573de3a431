//! The states that a job passes, as a function of time.

use std::time::Duration;

/// The state of a job, whatever its vendor calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobPhase {
    Validating,
    InProgress,
    Finalizing,
    Cancelling,
    Completed,
    Failed,
    Expired,
    Cancelled,
}

impl JobPhase {
    /// Whether nothing changes any more.
    pub(crate) fn is_final(self) -> bool {
        self >= Self::Completed
    }

    /// Its name in the statistics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::InProgress => "in_progress",
            Self::Finalizing => "finalizing",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What decides when a job passes which state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobTimeline {
    pub(crate) created: Duration,
    /// The time until it is completed, if nothing comes between.
    pub(crate) length: Duration,
    /// The time after which it expires, if it does.
    pub(crate) window: Option<Duration>,
    /// Whether its input is invalid.
    pub(crate) fails: bool,
    pub(crate) cancelled: Option<Duration>,
    /// When a test let it finish.
    pub(crate) finished: Option<Duration>,
}

/// The share of its time that a job is validated, and that it is finalized or cancelled.
const EDGE: u32 = 20;
/// Cancelling takes no longer than this.
const LONGEST_CANCEL: Duration = Duration::from_secs(600);

impl JobTimeline {
    /// When it has been validated.
    pub(crate) fn begins(&self) -> Duration {
        self.early(self.created + self.length / EDGE)
    }

    /// When all of its rows are done.
    pub(crate) fn finalizes(&self) -> Duration {
        self.early(self.created + self.length - self.length / EDGE)
    }

    fn early(&self, time: Duration) -> Duration {
        self.finished.map_or(time, |finished| time.min(finished))
    }

    /// When it expires, if it has a window.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        Some(self.created + self.window?)
    }

    /// Its last state, and when that is reached.
    pub(crate) fn end(&self) -> (JobPhase, Duration) {
        if self.fails {
            return (JobPhase::Failed, self.begins());
        }
        if let Some(cancelled) = self.cancelled {
            let end = cancelled + (self.length / EDGE).min(LONGEST_CANCEL);
            return (JobPhase::Cancelled, self.early(end).max(cancelled));
        }
        let completes = self.early(self.created + self.length);
        match self.deadline() {
            Some(deadline) if deadline < completes => (JobPhase::Expired, deadline),
            _ => (JobPhase::Completed, completes),
        }
    }

    /// The state at a time.
    pub(crate) fn phase(&self, now: Duration) -> JobPhase {
        let (last, ends) = self.end();
        if now >= ends {
            last
        } else if self.cancelled.is_some_and(|cancelled| now >= cancelled) {
            JobPhase::Cancelling
        } else if now < self.begins() || self.fails {
            JobPhase::Validating
        } else if now < self.finalizes() {
            JobPhase::InProgress
        } else {
            JobPhase::Finalizing
        }
    }

    /// The share of the rows that are done at a time.
    pub(crate) fn done_share(&self, now: Duration) -> f64 {
        let now = self.cancelled.map_or(now, |cancelled| now.min(cancelled));
        let now = self.deadline().map_or(now, |deadline| now.min(deadline));
        if self.fails {
            return 0.0;
        }
        if self.cancelled.is_none() && self.finished.is_some_and(|finished| now >= finished) {
            return 1.0;
        }
        let (begins, ends) =
            (self.created + self.length / EDGE, self.created + self.length - self.length / EDGE);
        let span = ends.saturating_sub(begins).as_secs_f64();
        let passed = now.saturating_sub(begins).as_secs_f64();
        if span > 0.0 { (passed / span).clamp(0.0, 1.0) } else { f64::from(u8::from(now >= ends)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(count: u64) -> Duration {
        Duration::from_secs(count * 3_600)
    }

    fn job() -> JobTimeline {
        JobTimeline {
            created: hours(1),
            length: hours(20),
            window: Some(hours(24)),
            fails: false,
            cancelled: None,
            finished: None,
        }
    }

    #[test]
    fn a_job_is_validated_works_finalizes_and_is_completed() {
        let phases = [1, 2, 19, 20, 21, 90].map(|hour| job().phase(hours(hour)));
        let expected = [
            JobPhase::Validating,
            JobPhase::InProgress,
            JobPhase::InProgress,
            JobPhase::Finalizing,
            JobPhase::Completed,
            JobPhase::Completed,
        ];
        assert_eq!(phases, expected);
        assert_eq!([2, 11, 20].map(|hour| job().done_share(hours(hour))), [0.0, 0.5, 1.0]);
    }

    #[test]
    fn a_job_expires_with_the_rows_that_were_done_by_then() {
        let slow = JobTimeline { length: hours(40), ..job() };
        assert_eq!(slow.end(), (JobPhase::Expired, hours(25)));
        assert!((slow.done_share(hours(99)) - 22.0 / 36.0).abs() < 1e-9);
        assert_eq!(JobTimeline { window: None, ..slow }.end(), (JobPhase::Completed, hours(41)));
    }

    #[test]
    fn a_cancelled_job_keeps_what_was_done() {
        let cancelled = JobTimeline { cancelled: Some(hours(11)), ..job() };
        assert_eq!(cancelled.phase(hours(11)), JobPhase::Cancelling);
        assert_eq!(cancelled.end(), (JobPhase::Cancelled, hours(11) + LONGEST_CANCEL));
        assert_eq!(cancelled.done_share(hours(12)), 0.5);
    }

    #[test]
    fn a_job_that_is_let_finish_is_completed_at_once() {
        let finished = JobTimeline { finished: Some(hours(3)), ..job() };
        assert_eq!((finished.phase(hours(3)), finished.done_share(hours(3))), (JobPhase::Completed, 1.0));
        let invalid = JobTimeline { fails: true, ..finished };
        assert_eq!(invalid.phase(hours(3)), JobPhase::Failed);
        assert_eq!(JobTimeline { fails: true, ..job() }.phase(hours(1)), JobPhase::Validating);
    }
}
