//! Limits the duration of a run, from its very beginning.

use std::time::Duration;

use rowmill_types::settings::DEADLINE;
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use crate::control::RunControl;
use crate::spec::RunSpec;

/// The deadline of a run that has started, and its control.
pub(crate) struct RunClock<'c> {
    control: &'c RunControl,
    began: Instant,
    deadline: Option<Duration>,
}

impl<'c> RunClock<'c> {
    /// Starts the clock of a run.
    pub(crate) fn start(spec: &RunSpec, control: &'c RunControl) -> Self {
        Self { control, began: Instant::now(), deadline: spec.work.stop_rules.deadline }
    }

    /// The remaining time, if there is a deadline.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.began.elapsed()))
    }

    /// Does the work before the first row, unless the run is stopped or its time is over meanwhile.
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.control.stop.wait_for_drain() => {
                let message = "interrupted before the first row; nothing was sent";
                Err(Problem::new(ProblemCode::Interrupted, message).hint("run the same command again"))
            }
            () = self.over() => {
                let message = "the deadline passed before the first row was read; nothing was sent";
                Err(Problem::new(ProblemCode::DeadlinePassed, message)
                    .hint(format!("allow more time with {DEADLINE}, or check what the input is waiting for")))
            }
        }
    }

    /// Waits until the time is over; forever if there is no deadline.
    async fn over(&self) {
        // With a limit of zero, the run itself reports its end. The longest durations have no
        // representable end time.
        let deadline = self.deadline.filter(|deadline| !deadline.is_zero());
        match deadline.and_then(|deadline| self.began.checked_add(deadline)) {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    }
}
