//! Stopping a run from outside: first drain, then abort.

use tokio_util::sync::CancellationToken;

/// A handle that stops a run. Clones stop the same run; a stop cannot be taken back.
#[derive(Debug, Clone, Default)]
pub struct StopHandle {
    drain: CancellationToken,
    abort: CancellationToken,
}

impl StopHandle {
    /// Takes no further rows and lets calls in flight finish.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Drops calls in flight; their rows are recorded as *outcome unknown*.
    pub fn abort(&self) {
        self.drain.cancel();
        self.abort.cancel();
    }

    /// A handle that stops only a part of what this one stops.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { drain: self.drain.child_token(), abort: self.abort.child_token() }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    pub(crate) fn is_aborting(&self) -> bool {
        self.abort.is_cancelled()
    }

    /// Waits until the run is drained or aborted.
    pub async fn wait_for_drain(&self) {
        self.drain.cancelled().await;
    }

    pub(crate) async fn wait_for_abort(&self) {
        self.abort.cancelled().await;
    }
}
