//! Rows that wait out a refusal of their own while other rows continue.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// At most this many of them free their slot for another row, so that memory stays bounded.
const MOST: usize = 1_024;

/// Counts waiting rows, so that other rows can use their slots.
#[derive(Debug, Default)]
pub(crate) struct RowsAside {
    rows: AtomicUsize,
    changed: Notify,
}

impl RowsAside {
    /// Marks a row as waiting until the guard is dropped.
    pub(crate) fn step(&self) -> Aside<'_> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        Aside(self)
    }

    /// The number of slots that waiting rows free.
    pub(crate) fn places(&self) -> usize {
        self.rows.load(Ordering::Relaxed).min(MOST)
    }

    /// Waits until another row starts to wait.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// A waiting row.
pub(crate) struct Aside<'a>(&'a RowsAside);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.rows.fetch_sub(1, Ordering::Relaxed);
    }
}
