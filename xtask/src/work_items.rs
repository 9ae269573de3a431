//! Processes items with a function that does nothing, to measure the overhead of a batch.

use std::time::Instant;

use clap::{Args, ValueEnum};
use futures_util::StreamExt;
use rowmill::Batch;

use crate::{TaskFailure, printer};

/// Process sample items from code, with a function that does nothing.
#[derive(Debug, Args)]
pub(crate) struct WorkItemsFlags {
    /// How many items.
    #[arg(long, value_name = "N")]
    pub(crate) items: u64,
    /// How results are taken.
    #[arg(long, value_enum)]
    pub(crate) results: ResultsAs,
}

/// How results are taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ResultsAs {
    /// All at once, in the order of the items.
    List,
    /// One by one, as items end.
    Stream,
}

/// Prints how many seconds it took.
pub(crate) fn work_items(flags: &WorkItemsFlags) -> Result<(), TaskFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let began = Instant::now();
    let sum = runtime.block_on(work(flags))?;
    let seconds = began.elapsed().as_secs_f64();
    if sum != flags.items * flags.items.saturating_sub(1) {
        return Err(TaskFailure::new("some result is wrong"));
    }
    printer::say(format_args!("{seconds}"));
    Ok(())
}

/// The sum of all results.
async fn work(flags: &WorkItemsFlags) -> Result<u64, TaskFailure> {
    let batch = Batch::over(0..flags.items).worker_fn(|item| async move { Ok(*item * 2) });
    match flags.results {
        ResultsAs::List => {
            let results = batch.run().await.map_err(TaskFailure::context("the batch failed"))?;
            Ok(results.into_iter().sum())
        }
        ResultsAs::Stream => {
            let mut stream = batch.stream();
            let mut sum = 0;
            while let Some(result) = stream.next().await {
                sum += result.map_err(TaskFailure::context("the batch failed"))?.1;
            }
            Ok(sum)
        }
    }
}
