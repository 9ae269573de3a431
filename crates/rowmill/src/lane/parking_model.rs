//! A model that makes no calls: answers come from finished jobs, and everything else is added to a job.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::ports::Model;
use rowmill_types::{CallError, Completion, Request};

use super::lane_state::BatchLane;

/// A model in the batch lane.
#[derive(Debug)]
pub(super) struct ParkingModel {
    pub(super) lane: Arc<BatchLane>,
    /// Identifies it among the models of the run.
    pub(super) endpoint: String,
}

impl Model for ParkingModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        // Reads a few kilobytes from a file that was just written, or adds some to a buffer.
        ready(self.lane.answer_or_park(&self.endpoint, request)).boxed()
    }
}
