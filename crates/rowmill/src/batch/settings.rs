//! The settings of a batch. Each has the same meaning as its flag of `rowmill run`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{BudgetLimits, CallParallelism, MinuteLimits, PaceMode};
use rowmill_core::ports::Durability;
use rowmill_engine::{ErrorRateLimit, OnQuota, SharedLimits, StopHandle};
use rowmill_types::Money;

use super::builder::Batch;
use super::ledger::LedgerOptions;
use super::result_collector::BatchCallbacks;
use crate::control::RunNotice;
use crate::environment::RunEnvironment;
use crate::work_spec::WorkSpec;

/// The settings of a batch that do not depend on the types of its items.
#[derive(Clone, Default)]
pub(super) struct BatchSettings {
    pub(super) work: WorkSpec,
    /// How many items are worked on at once, if set.
    pub(super) concurrency: Option<usize>,
    /// The number of items per group, if items are worked on in groups.
    pub(super) batch_size: Option<usize>,
    pub(super) ledger: Option<LedgerOptions>,
    pub(super) hooks: BatchCallbacks,
    pub(super) notice: Option<Arc<dyn Fn(RunNotice) + Send + Sync>>,
    pub(super) stop: StopHandle,
    pub(super) limits: SharedLimits,
    pub(super) environment: RunEnvironment,
}

impl fmt::Debug for BatchSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settings")
            .field("work", &self.work)
            .field("concurrency", &self.concurrency)
            .field("batch_size", &self.batch_size)
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

/// Concurrency, and the order in which items start.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// Works on this many items at once: as soon as one has ended, the next starts. By default, the
    /// number adapts to the answers of the model, and is 64 if a function works on the items. A model
    /// gets only a few calls until its first answer arrives, so that a wrong key or an unknown model is
    /// not reported a hundred times.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(0..10).worker_fn(|item| async move { Ok(*item) }).concurrency(4);
    /// assert_eq!(batch.run_blocking()?.items.len(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn concurrency(mut self, items: usize) -> Self {
        self.settings.concurrency = Some(items);
        self
    }

    /// Works on one item after the other, in their order.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(["b", "a"]).prompt(|item| *item).worker("passthrough").sequential();
    /// assert_eq!(batch.run_blocking()?.items, ["b", "a"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sequential(self) -> Self {
        self.concurrency(1)
    }

    /// Works on groups of this many items, and starts the next group when all items of the last one
    /// have ended. Within a group all items are worked on at once, unless [`Batch::concurrency`] is
    /// set.
    ///
    /// One slow item delays the whole group, so [`Batch::concurrency`] alone is usually the better
    /// choice.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(0..10).worker_fn(|item| async move { Ok(*item) }).item_group_size(4);
    /// assert_eq!(batch.run_blocking()?.items.len(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn item_group_size(mut self, items: usize) -> Self {
        self.settings.batch_size = Some(items);
        self
    }

    /// Shares the state of provider accounts with every batch that is given a clone of the same value:
    /// reported rate limits, how much of them is used, pauses and outages. What a batch learns about
    /// its own calls stays with that batch. By default, a batch shares nothing.
    ///
    /// ```
    /// use rowmill::{Batch, SharedLimits};
    ///
    /// let account = SharedLimits::default();
    /// for items in [["a", "b"], ["c", "d"]] {
    ///     Batch::over(items).prompt(|item| *item).worker("passthrough").shared_limits(&account).run_blocking()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shared_limits(mut self, limits: &SharedLimits) -> Self {
        self.settings.limits = limits.clone();
        self
    }

    /// Sets where keys, addresses, tokens and other variables are looked up. By default, that is the
    /// environment of this process.
    #[must_use]
    pub fn environment(mut self, environment: &RunEnvironment) -> Self {
        self.settings.environment = environment.clone();
        self
    }

    /// Sets limits per minute that the provider does not report.
    #[must_use]
    pub fn minute_limits(mut self, rates: MinuteLimits) -> Self {
        self.settings.work.rates = rates;
        self
    }

    /// Sets whether to respect the limits that the provider reports.
    #[must_use]
    pub fn pace_mode(mut self, pace: PaceMode) -> Self {
        self.settings.work.pace = pace;
        self
    }
}

/// Budgets of the batch and its items, and conditions that end it.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// Sets how many model calls an item may make. An item without a result by then has failed.
    ///
    /// ```
    /// use rowmill::{Batch, ReturnError};
    ///
    /// let batch = Batch::over(["a"]).prompt(|item| *item).worker("passthrough").turns(1);
    /// assert!(batch.on_failure(ReturnError).run_blocking()?.items[0].is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn turns(mut self, most: u32) -> Self {
        self.settings.work.agents.turns = Some(most);
        self
    }

    /// Limits the cost of this batch, including resumes. No call is sent that could exceed it.
    ///
    /// ```
    /// use rowmill::extend::{BoxFuture, CallError, Completion, Model, Request, TokenUsage};
    /// use rowmill::{Batch, Money, Price, ReturnNone, TokenPrices, Worker};
    ///
    /// #[derive(Debug)]
    /// struct Ten;
    ///
    /// impl Model for Ten {
    ///     fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
    ///         let usage = TokenUsage { output: 10, ..TokenUsage::default() };
    ///         Box::pin(async move { Ok(Completion { usage: Some(usage), ..Completion::from_text("ten") }) })
    ///     }
    /// }
    ///
    /// let dollar = Money::from_dollars(1.0).unwrap_or_default();
    /// let tokens = TokenPrices { input: Money::ZERO, output: dollar, ..TokenPrices::default() };
    /// let price = Price { tokens, long: None, batch_percent: None };
    /// let worker = Worker::from_model("ten", Ten).price(price).max_output(10);
    /// let batch = Batch::over(0..100).prompt(|_| "").worker(worker).max_cost(dollar.times(35));
    /// let results = batch.on_failure(ReturnNone).run_blocking()?;
    /// assert_eq!((results.report.ok, results.report.cost), (3, dollar.times(30)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_cost(mut self, most: Money) -> Self {
        self.settings.work.budget.cost = Some(most);
        self
    }

    /// Limits the tokens of this batch, including resumes. No call is sent that could exceed the limit.
    #[must_use]
    pub fn max_total_tokens(mut self, most: u64) -> Self {
        self.settings.work.budget.tokens = Some(most);
        self
    }

    /// Limits the cost and the tokens of one item.
    #[must_use]
    pub fn item_budget(mut self, limits: BudgetLimits) -> Self {
        self.settings.work.agents.row_budget = limits;
        self
    }

    /// Ends the batch after this time: calls in flight are finished, no further call is sent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rowmill::{Batch, ReturnNone};
    ///
    /// let endless = Batch::over(1..).worker_fn(|item| async move { Ok(*item) });
    /// let results = endless.deadline(Duration::from_millis(20)).on_failure(ReturnNone).run_blocking()?;
    /// assert!(results.report.stopped.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Self {
        self.settings.work.stop_rules.deadline = Some(after);
        self
    }

    /// Ends the batch once this many items have failed.
    #[must_use]
    pub fn max_errors(mut self, most: u64) -> Self {
        self.settings.work.stop_rules.max_errors = Some(most);
        self
    }

    /// Ends the batch once the share of failed items exceeds `share`, checked once `after` items have
    /// ended.
    #[must_use]
    pub fn max_error_rate(mut self, share: f64, after: u64) -> Self {
        self.settings.work.stop_rules.max_error_rate = Some(ErrorRateLimit { share, after });
        self
    }

    /// Ends the batch if the first `items` items all fail for the same reason and none is ok.
    ///
    /// By default, a batch continues however many items fail: the program sees every failure and can
    /// decide for itself. `rowmill run` stops after fifty such rows.
    ///
    /// ```
    /// use rowmill::{Batch, FunctionFailure, ReturnNone};
    ///
    /// let broken = Batch::over(1..);
    /// let broken = broken.worker_fn(|_| async move { Err::<u32, _>(FunctionFailure::new("no such table")) });
    /// let stopped = broken.stop_on_same_failure(10).on_failure(ReturnNone).run_blocking();
    /// assert!(stopped.unwrap_err().to_string().contains("rows all failed with FunctionError"));
    /// ```
    #[must_use]
    pub fn stop_on_same_failure(mut self, items: u64) -> Self {
        self.settings.work.stop_rules.same_failure = Some(items);
        self
    }

    /// Sets a handle that stops the batch from outside; its clones can be kept by other parts of the
    /// program.
    ///
    /// ```
    /// use rowmill::{Batch, ReturnNone, StopHandle};
    ///
    /// let stop = StopHandle::default();
    /// let enough = stop.clone();
    /// let batch = Batch::over(1..).worker_fn(|item| async move { Ok(*item) }).stop_handle(&stop);
    /// let batch = batch.on_progress(move |progress| if progress.ok >= 100 { enough.drain() });
    /// assert!(batch.on_failure(ReturnNone).run_blocking()?.report.ok >= 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stop_handle(mut self, stop: &StopHandle) -> Self {
        self.settings.stop = stop.clone();
        self
    }
}

/// Calls, retries and timeouts.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// Sets the number of retries of a call whose failure may be temporary.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rowmill::{Batch, FunctionFailure};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static TRIES: AtomicU32 = AtomicU32::new(0);
    /// let batch = Batch::over([()]).worker_fn(|_| async {
    ///     match TRIES.fetch_add(1, Ordering::Relaxed) {
    ///         0 => Err(FunctionFailure::temporary("not yet")),
    ///         tries => Ok(tries),
    ///     }
    /// });
    /// assert_eq!(batch.retries(3).retry_wait(Duration::from_millis(1)).run_blocking()?.items, [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn retries(mut self, tries: u32) -> Self {
        self.settings.work.retries = tries;
        self
    }

    /// Sets the wait before the first retry.
    #[must_use]
    pub fn retry_wait(mut self, wait: Duration) -> Self {
        self.settings.work.retry_wait = wait;
        self
    }

    /// Limits the duration of one call.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.settings.work.timeout = most;
        self
    }

    /// Limits the total duration of the calls of one item.
    #[must_use]
    pub fn item_timeout(mut self, most: Duration) -> Self {
        self.settings.work.row_timeout = Some(most);
        self
    }

    /// Sets how often an answer that violates the schema may be sent back for correction.
    #[must_use]
    pub fn repairs(mut self, times: u32) -> Self {
        self.settings.work.repairs = times;
        self
    }

    /// Sets what happens when the provider's quota is used up.
    #[must_use]
    pub fn on_quota(mut self, what: OnQuota) -> Self {
        self.settings.work.on_quota = what;
        self
    }

    /// Sets how long to wait for a provider that lets no call through. With a duration of zero, the
    /// batch does not wait at all, not even if the provider asks for more than a minute: items fail
    /// when their attempts are used up.
    #[must_use]
    pub fn max_outage(mut self, most: Duration) -> Self {
        self.settings.work.max_outage = most;
        self
    }

    /// Records every finished turn of an agent in the ledger, so that a resume continues after it.
    #[must_use]
    pub fn checkpoint_turns(mut self) -> Self {
        self.settings.work.agents.checkpoint_turns = true;
        self
    }

    /// Forces every answer to disk before a result is made from it, so that it survives a power failure
    /// too. This has an effect only with a ledger, and takes a few milliseconds for each group of
    /// answers.
    #[must_use]
    pub fn sync_to_disk(mut self) -> Self {
        self.settings.work.durability = Durability::Power;
        self
    }

    /// Sets a folder in which paid answers are kept for reuse, by this batch and by others.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.work.cache = Some(folder.into());
        self
    }
}

impl BatchSettings {
    /// How many items are worked on at once.
    pub(super) fn parallel(&self, is_function: bool) -> CallParallelism {
        match (self.concurrency, self.batch_size) {
            (Some(items), Some(batch)) => CallParallelism::AtMost(items.min(batch)),
            (Some(items), None) | (None, Some(items)) => CallParallelism::AtMost(items),
            (None, None) if is_function => CallParallelism::AtMost(FUNCTIONS_AT_ONCE),
            (None, None) => CallParallelism::Auto,
        }
    }
}

/// How many calls of a function run at once by default.
const FUNCTIONS_AT_ONCE: usize = 64;
