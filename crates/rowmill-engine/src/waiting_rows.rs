//! Rows that wait out a refusal of their own while other rows continue.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// At most this many of them free their slot for another row, so that memory stays bounded.
const MOST: usize = 1_024;

/// Counts waiting rows, so that other rows can use their slots.
#[derive(Debug, Default)]
pub(crate) struct WaitingRows {
    rows: AtomicUsize,
    changed: Notify,
}

impl WaitingRows {
    /// Marks a row as waiting until the guard is dropped.
    pub(crate) fn begin_wait(&self) -> WaitingRow<'_> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        WaitingRow(self)
    }

    /// The number of slots that waiting rows free.
    pub(crate) fn freed_slots(&self) -> usize {
        self.rows.load(Ordering::Relaxed).min(MOST)
    }

    /// Waits until another row starts to wait.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// A waiting row.
pub(crate) struct WaitingRow<'a>(&'a WaitingRows);

impl Drop for WaitingRow<'_> {
    fn drop(&mut self) {
        self.0.rows.fetch_sub(1, Ordering::Relaxed);
    }
}
