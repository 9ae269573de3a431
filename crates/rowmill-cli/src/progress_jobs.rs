//! The progress of a run whose batch jobs are waited for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rowmill::{Money, RunJobCounts};

use crate::batch_text::{age_text, window_text};
use crate::number_text::{count_phrase, group_digits};
use crate::progress_line::{PartImportance, ProgressPart};

/// What is known of the batch jobs of a run.
#[derive(Debug, Default)]
pub(crate) struct JobProgress {
    state: Mutex<JobState>,
}

#[derive(Debug, Clone, Copy, Default)]
struct JobState {
    /// The latest numbers; `None` if the run has no jobs.
    counts: Option<RunJobCounts>,
    /// Whether nothing but jobs is waited for.
    waits: bool,
}

impl JobProgress {
    /// Takes over what is reported of the jobs.
    pub(crate) fn saw(&self, counts: &RunJobCounts) {
        *self.lock() = JobState { counts: Some(*counts), waits: counts.submitted + counts.waiting > 0 };
    }

    /// Rows are worked on again.
    pub(crate) fn rows_go_on(&self) {
        self.lock().waits = false;
    }

    /// Whether this is not the first pass over the rows: they were counted before.
    pub(crate) fn is_later_pass(&self) -> bool {
        self.lock().counts.is_some()
    }

    /// Whether nothing but jobs is waited for.
    #[cfg(test)]
    fn waits(&self) -> bool {
        self.lock().waits
    }

    /// What a user is told who stops waiting for jobs; `None` if rows are worked on.
    pub(crate) fn stop_waiting_message(&self) -> Option<String> {
        let JobState { counts: Some(counts), waits: true } = *self.lock() else { return None };
        let later = "`rowmill batch retrieve` collects their results";
        Some(match (counts.submitted, counts.waiting) {
            (0, _) => "no longer waiting: no batch job is at the provider; `rowmill batch retrieve` submits those that \
                       wait"
                .to_owned(),
            (_, 0) => format!("no longer waiting: the batch jobs go on at the provider; {later}"),
            (submitted, waiting) => format!(
                "no longer waiting: {} at the provider, {} not submitted; {later}, and submits the others",
                count_phrase(submitted, "batch job"),
                group_digits(waiting)
            ),
        })
    }

    /// The state of the jobs, in the order of display; nothing while rows are worked on.
    pub(crate) fn parts(&self) -> Vec<ProgressPart> {
        let JobState { counts: Some(counts), waits: true } = *self.lock() else { return Vec::new() };
        let jobs = count_phrase(counts.jobs, "job");
        let mut parts = vec![part(
            PartImportance::Rows,
            match counts.waiting {
                0 => format!("{} of {jobs} done", group_digits(counts.ended)),
                waiting => format!(
                    "{} of {jobs} done, {} not submitted",
                    group_digits(counts.ended),
                    group_digits(waiting)
                ),
            },
        )];
        let (finished, out) = (group_digits(counts.requests_finished), group_digits(counts.requests_out));
        parts.push(part(PartImportance::InFlight, format!("{finished} of {out} requests finished")));
        if let Some(oldest) = counts.oldest {
            parts.push(part(PartImportance::Rate, format!("submitted {} ago", age_text(oldest))));
        }
        if counts.reserved > Money::ZERO {
            parts.push(part(PartImportance::Cost, format!("at most {} more", counts.reserved)));
        }
        if let Some(end) = counts.first_expiry {
            parts.push(part(PartImportance::TimeLeft, window_text(end)));
        }
        parts
    }

    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn part(importance: PartImportance, text: String) -> ProgressPart {
    ProgressPart { importance, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress_line::join_parts;

    #[test]
    fn jobs_are_shown_while_nothing_else_is_waited_for() {
        let jobs = JobProgress::default();
        assert!(jobs.parts().is_empty() && !jobs.waits() && !jobs.is_later_pass());
        let counts = RunJobCounts {
            jobs: 3,
            waiting: 1,
            submitted: 1,
            ended: 1,
            requests_out: 2_000,
            requests_finished: 1_500,
            reserved: Money::from_dollars(1.5).unwrap(),
            first_expiry: Some(0),
            ..RunJobCounts::default()
        };
        jobs.saw(&counts);
        let expected = "1 of 3 jobs done, 1 not submitted, 1,500 of 2,000 requests finished, at most $1.50 more, \
                        its window is over";
        assert_eq!(join_parts(&jobs.parts()), expected);
        jobs.rows_go_on();
        assert!(jobs.parts().is_empty() && jobs.is_later_pass());
        jobs.saw(&RunJobCounts { jobs: 3, ended: 3, ..counts });
        assert!(jobs.waits(), "one waits to be submitted");
        jobs.saw(&RunJobCounts { jobs: 3, ended: 3, submitted: 0, waiting: 0, ..counts });
        assert!(!jobs.waits());
    }

    #[test]
    fn who_stops_waiting_learns_which_jobs_are_at_the_provider() {
        let jobs = JobProgress::default();
        assert_eq!(jobs.stop_waiting_message(), None);
        for (submitted, waiting, expected) in [
            (0, 2, "no batch job is at the provider; `rowmill batch retrieve` submits those that wait"),
            (2, 0, "the batch jobs go on at the provider; `rowmill batch retrieve` collects their results"),
            (
                1,
                2,
                "1 batch job at the provider, 2 not submitted; `rowmill batch retrieve` collects their results, \
                 and submits the others",
            ),
        ] {
            jobs.saw(&RunJobCounts { submitted, waiting, ..RunJobCounts::default() });
            assert_eq!(jobs.stop_waiting_message(), Some(format!("no longer waiting: {expected}")));
        }
    }
}
