//! What the parts of a run know of its batch lane.

use std::path::Path;
use std::sync::Arc;

use rowmill_types::Problem;

use super::lane_state::BatchLane;
use crate::run_storage::RunStorage;

/// The batch lane of a run that is in progress. Callers leave it at its default.
#[derive(Debug, Clone, Default)]
pub struct BatchLaneHandle(pub(crate) Option<Arc<BatchLane>>);

impl BatchLaneHandle {
    /// The storage of the run. In the batch lane, the lock on it is held during all passes.
    pub(crate) fn storage(&self, folder: &Path) -> Result<RunStorage, Problem> {
        match &self.0 {
            Some(lane) => Ok(lane.storage.clone()),
            None => RunStorage::open(folder),
        }
    }
}
