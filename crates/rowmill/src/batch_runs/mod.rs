//! Runs in the batch lane, found again from any folder: what is known of each, what its provider reports, and how it
//! goes on.

mod continuation;
mod job_info;
mod known_run;
mod memory;
mod registry;
mod status;

pub use continuation::{BatchRunAction, ContinuedRunOutcome, continue_batch_run};
pub use job_info::{BatchJobInfo, BatchJobProgress, overall_batch_state};
pub use known_run::{BatchRunRowCounts, KnownBatchRun, KnownRunState};
pub(crate) use memory::RunMemory;
pub use registry::{KnownBatchRuns, LatestRunReason};
pub use status::{BatchRunStatus, batch_run_status};
