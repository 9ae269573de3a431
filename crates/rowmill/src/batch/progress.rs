//! How far a batch has come.

use std::time::Duration;

use rowmill_types::{Money, Usage};

/// How far a batch has come, as the function given to
/// [`Batch::on_progress`](super::Batch::on_progress) gets to see it whenever an item has ended.
///
/// ```
/// use rowmill::Batch;
///
/// let batch = Batch::over(0..100).worker_fn(|item| async move { Ok(*item) });
/// batch
///     .on_progress(|progress| {
///         assert!(progress.done() <= 100 && progress.total == Some(100));
///         if progress.done() % 25 == 0 {
///             println!("{} done, {:.0} per second", progress.done(), progress.rate());
///         }
///     })
///     .run_blocking()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress {
    /// Items with a result.
    pub ok: u64,
    /// Items that failed.
    pub failed: u64,
    /// Those of the results that an earlier run had paid for.
    pub kept: u64,
    /// Items that are being worked on.
    pub in_flight: u64,
    /// How many items there are, where that is known.
    pub total: Option<u64>,
    /// What the calls used, as far as providers reported.
    pub usage: Usage,
    /// What they cost, as far as prices are known.
    pub cost: Money,
    /// How long it has taken so far.
    pub elapsed: Duration,
}

impl Progress {
    /// Items that have ended.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.ok + self.failed
    }

    /// Items per second, on average; those of an earlier run do not count.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let worked = self.done().saturating_sub(self.kept) as f64;
        worked / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// How long the rest will take at this rate, where it is known how much that is.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.total?.saturating_sub(self.done()) as f64;
        Duration::try_from_secs_f64(left / self.rate().max(1e-9)).ok()
    }
}
