//! Waits for the jobs of a run between two passes.

use std::time::Duration;

use rowmill_types::Problem;
use tokio::time::Instant;

use super::driver::JobDriver;
use super::switching::SwitchPlan;
use crate::control::RunControl;
use crate::spec::RunSpec;

/// Why jobs are no longer waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// Rows can be worked on.
    Results,
    /// All jobs are submitted, and nobody waits for them.
    Detached,
    /// The user has stopped the run.
    Stopped,
    /// The time of the run is over.
    Deadline,
    /// The time left just suffices for live calls.
    Switch,
}

/// Works on jobs until rows can be worked on, or nobody waits any more.
pub(super) async fn wait_for_jobs(
    driver: &mut JobDriver<'_>,
    (spec, control): (&RunSpec, &RunControl),
    (deadline, switch): (Option<Instant>, Option<&SwitchPlan>),
) -> Result<WaitEnd, Problem> {
    let mut over = std::pin::pin!(sleep_until(deadline));
    loop {
        // Whatever the provider reports of its progress moves the moment.
        let patience = match switch.map(|plan| driver.lane.switch_facts(plan).time_for_jobs()) {
            Some(None) => return Ok(WaitEnd::Switch),
            Some(Some(patience)) => patience,
            None => Duration::MAX,
        };
        let switch_at = Instant::now().checked_add(patience);
        tokio::select! {
            biased;
            () = control.stop.wait_for_drain() => return Ok(WaitEnd::Stopped),
            () = &mut over => return Ok(WaitEnd::Deadline),
            // A step that was broken off is recorded, and goes on.
            () = sleep_until(switch_at) => continue,
            advanced = driver.advance() => advanced?,
        }
        let has_results = driver.lane.lock().jobs.has_collectable();
        let has_unsubmitted = driver.has_jobs_to_submit();
        if has_results {
            return Ok(WaitEnd::Results);
        }
        if spec.work.lane.detach && !has_unsubmitted {
            return Ok(WaitEnd::Detached);
        }
        let wait = driver.next_wait();
        tokio::select! {
            biased;
            () = control.stop.wait_for_drain() => return Ok(WaitEnd::Stopped),
            () = &mut over => return Ok(WaitEnd::Deadline),
            () = sleep_until(switch_at) => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Waits until then; forever if it is never.
async fn sleep_until(then: Option<Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}
