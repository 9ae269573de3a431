//! Holds requests of the batch APIs until a test lets them go on, or their client is gone.

use std::sync::{Mutex, PoisonError};

use bytes::BytesMut;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::route::{BatchOperation, BatchRoute};
use crate::http_request;
use crate::recorder::RequestRecorder;

/// A kind of request of a batch API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRequestKind {
    /// Sends the bytes of a file.
    Upload,
    /// Creates a job.
    Create,
    /// Lists jobs.
    List,
    /// Asks for the state of one job.
    Report,
    /// Gets results.
    Download,
}

/// When a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldMoment {
    /// Before it has an effect. If its client is gone by then, it never has one.
    Before,
    /// The same, but it has its effect once it is released, even if its client is gone.
    Late,
    /// In the middle of what is sent: the file, the rows of a new job, or the results. Once it is released, the
    /// connection is closed there.
    Within,
    /// After it had its effect, without a response.
    After,
}

/// A request that will be held.
#[derive(Debug)]
struct PlannedHold {
    kind: BatchRequestKind,
    moment: HoldMoment,
    /// How many requests of the kind come before it.
    before: u64,
}

/// Which requests are held.
#[derive(Debug, Default)]
pub(crate) struct BatchHolds {
    planned: Mutex<Vec<PlannedHold>>,
    /// How often everything was released.
    releases: watch::Sender<u64>,
}

impl BatchHolds {
    /// Plans to hold the request of this kind that comes after `before` others.
    pub(crate) fn plan(&self, kind: BatchRequestKind, moment: HoldMoment, before: u64) {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.push(PlannedHold { kind, moment, before });
    }

    /// Releases what is held, and forgets what is planned.
    pub(crate) fn release(&self) {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.releases.send_modify(|releases| *releases += 1);
    }

    /// Whether a request that has arrived is to be held. To be called once for each request.
    pub(crate) fn next(&self, kind: BatchRequestKind) -> Option<HoldMoment> {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = None;
        planned.retain_mut(|hold| {
            if hold.kind != kind || due.is_some() {
                return true;
            }
            if hold.before > 0 {
                hold.before -= 1;
                return true;
            }
            due = Some(hold.moment);
            false
        });
        due
    }

    /// Holds a request. Returns whether it was released; otherwise its client is gone.
    pub(crate) async fn hold(
        &self,
        (stream, buffer): (&mut TcpStream, &mut BytesMut),
        recorder: &RequestRecorder,
    ) -> bool {
        let mut releases = self.releases.subscribe();
        let _held = HeldRequest::count(recorder);
        tokio::select! {
            biased;
            // The sender is a field of this value, so it cannot be gone.
            changed = releases.changed() => changed.is_ok(),
            () = http_request::closed(stream, buffer) => false,
        }
    }

    /// Holds a request until it is released, whether its client is still there or not.
    pub(crate) async fn hold_late(&self, recorder: &RequestRecorder) {
        let mut releases = self.releases.subscribe();
        let _held = HeldRequest::count(recorder);
        drop(releases.changed().await);
    }
}

/// Counts a request as held.
struct HeldRequest<'r>(&'r RequestRecorder);

impl<'r> HeldRequest<'r> {
    fn count(recorder: &'r RequestRecorder) -> Self {
        recorder.count_batches(|counts| counts.held_requests += 1);
        Self(recorder)
    }
}

impl Drop for HeldRequest<'_> {
    fn drop(&mut self) {
        self.0.count_batches(|counts| counts.held_requests -= 1);
    }
}

impl BatchRoute<'_> {
    /// The kind of request that this is with a method, if it can be held.
    pub(crate) fn kind(&self, method: &str) -> Option<BatchRequestKind> {
        Some(match (self.operation, method) {
            (BatchOperation::Files | BatchOperation::FinishUpload(_), "POST") => BatchRequestKind::Upload,
            (BatchOperation::Put(_), "PUT") => BatchRequestKind::Upload,
            (BatchOperation::Jobs | BatchOperation::CreateFor(_), "POST") => BatchRequestKind::Create,
            (BatchOperation::Jobs, "GET") => BatchRequestKind::List,
            (BatchOperation::Job(_), "GET") => BatchRequestKind::Report,
            (BatchOperation::Content(_) | BatchOperation::Results(_), "GET") => BatchRequestKind::Download,
            _ => return None,
        })
    }
}
