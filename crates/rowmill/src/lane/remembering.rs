//! Keeps what later commands know of a run up to date.

use super::lane_state::BatchLane;
use crate::report::RunReport;

impl BatchLane {
    /// Remembers the run as it is after a pass.
    pub(super) fn remember(&self, report: &RunReport) {
        let jobs = self.lock().jobs.jobs().to_vec();
        self.memory.remember(report, &jobs);
    }

    /// Remembers what has become of its jobs.
    pub(super) fn remember_jobs(&self) {
        let jobs = self.lock().jobs.jobs().to_vec();
        self.memory.remember_jobs(&jobs);
    }
}
