//! What a pass in the batch lane does with requests that no finished job has answered.

/// The phase of a run in the batch lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LanePhase {
    /// They are added to jobs.
    Jobs,
    /// Answers that violated the schema are sent back as live calls; everything else is left to the next pass.
    LiveRepairs,
    /// Nothing is sent: the jobs are being cancelled, because the deadline is near.
    Leaving,
    /// They are sent as live calls.
    Live,
}

impl LanePhase {
    /// Whether a pass makes calls.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::LiveRepairs | Self::Live)
    }
}
