//! The progress of a batch.

use std::time::Duration;

use rowmill_types::{Money, TokenUsage};

/// The progress of a batch, the argument of the callback given to
/// [`Batch::on_progress`](super::Batch::on_progress), which is called whenever an item has ended.
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
pub struct BatchProgress {
    /// Items with a result.
    pub ok: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items with a result that an earlier run had already paid for.
    pub kept: u64,
    /// Items that are being worked on.
    pub in_flight: u64,
    /// The number of items, if known.
    pub total: Option<u64>,
    /// The tokens that the calls used, as far as providers reported them.
    pub usage: TokenUsage,
    /// The cost of the calls, as far as prices are known.
    pub cost: Money,
    /// The time since the start.
    pub elapsed: Duration,
}

impl BatchProgress {
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

    /// The estimated remaining time at this rate, if the number of items is known.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.total?.saturating_sub(self.done()) as f64;
        Duration::try_from_secs_f64(left / self.rate().max(1e-9)).ok()
    }
}
