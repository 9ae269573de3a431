//! Rows that wait out a refusal of their own while others continue.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// So many of them give their place to another row; what is in memory stays bounded.
const MOST: usize = 1_024;

/// Counts rows that wait, so that others can have their places.
#[derive(Debug, Default)]
pub(crate) struct RowsAside {
    rows: AtomicUsize,
    changed: Notify,
}

impl RowsAside {
    /// A row begins to wait; it is back when the guard is dropped.
    pub(crate) fn step(&self) -> Aside<'_> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        Aside(self)
    }

    /// How many places are free because of them.
    pub(crate) fn places(&self) -> usize {
        self.rows.load(Ordering::Relaxed).min(MOST)
    }

    /// Waits until another row begins to wait.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// A row that waits.
pub(crate) struct Aside<'a>(&'a RowsAside);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.rows.fetch_sub(1, Ordering::Relaxed);
    }
}
