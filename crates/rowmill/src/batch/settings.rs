//! The controls of a batch. Each means what the flag of `rowmill run` means.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{BudgetLimits, Pace, Parallel, RateFlags};
use rowmill_core::ports::Durability;
use rowmill_engine::{ErrorRate, Limits, OnQuota, Stop};
use rowmill_types::Money;

use super::builder::Batch;
use super::collect::Hooks;
use super::ledger::LedgerFolder;
use crate::control::Notice;
use crate::environment::Environment;
use crate::work::WorkSpec;

/// Everything about a batch that has nothing to do with the types of its items.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) work: WorkSpec,
    /// How many items are worked on at once, where that was said.
    pub(super) concurrency: Option<usize>,
    /// Items of one batch, where there are barriers.
    pub(super) batch_size: Option<usize>,
    pub(super) ledger: Option<LedgerFolder>,
    pub(super) hooks: Hooks,
    pub(super) notice: Option<Arc<dyn Fn(Notice) + Send + Sync>>,
    pub(super) stop: Stop,
    pub(super) limits: Limits,
    pub(super) environment: Environment,
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settings")
            .field("work", &self.work)
            .field("concurrency", &self.concurrency)
            .field("batch_size", &self.batch_size)
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

/// How much at once, and in which order items begin.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// Works on so many items at once: as soon as one has ended, the next begins. Without it the
    /// number is found by the answers of the model, and is 64 where a function works on items.
    /// A model is sent a few calls only until its first answer is there, because a wrong key or
    /// an unknown model need not be told a hundred times.
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

    /// Works on so many items, and begins with the next so many when all of them have ended.
    /// Within a batch all are worked on at once, unless [`Batch::concurrency`] says otherwise.
    ///
    /// One slow item holds up all others, so [`Batch::concurrency`] alone is mostly what is
    /// wanted.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(0..10).worker_fn(|item| async move { Ok(*item) }).batches_of(4);
    /// assert_eq!(batch.run_blocking()?.items.len(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn batches_of(mut self, items: usize) -> Self {
        self.settings.batch_size = Some(items);
        self
    }

    /// What is known of accounts, shared with every batch that is given a clone of the same value:
    /// rates that providers reported, what is used of them, pauses and outages. What this batch is told
    /// about its own calls stays its own. Without it a batch shares nothing.
    ///
    /// ```
    /// use rowmill::{Batch, Limits};
    ///
    /// let account = Limits::default();
    /// for items in [["a", "b"], ["c", "d"]] {
    ///     Batch::over(items).prompt(|item| *item).worker("passthrough").limits(&account).run_blocking()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: &Limits) -> Self {
        self.settings.limits = limits.clone();
        self
    }

    /// Where keys, addresses, tokens and other variables are looked up. Without it, that is the environment
    /// of this process.
    #[must_use]
    pub fn environment(mut self, environment: &Environment) -> Self {
        self.settings.environment = environment.clone();
        self
    }

    /// Limits per minute that the provider does not report.
    #[must_use]
    pub fn rates(mut self, rates: RateFlags) -> Self {
        self.settings.work.rates = rates;
        self
    }

    /// Whether limits that the provider reports are kept to.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.settings.work.pace = pace;
        self
    }
}

/// What the batch and its items may use, and when it ends.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// How many model calls an item may make. One that has no result by then has failed.
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

    /// What this batch may cost, resumes included. No call is sent that could pass it.
    ///
    /// ```
    /// use rowmill::extend::{BoxFuture, CallError, Completion, Model, Request, Usage};
    /// use rowmill::{Batch, Money, Price, ReturnNone, TokenPrices, Worker};
    ///
    /// #[derive(Debug)]
    /// struct Ten;
    ///
    /// impl Model for Ten {
    ///     fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
    ///         let usage = Usage { output: 10, ..Usage::default() };
    ///         Box::pin(async move { Ok(Completion { usage: Some(usage), ..Completion::of_text("ten") }) })
    ///     }
    /// }
    ///
    /// let dollar = Money::from_dollars(1.0).unwrap_or_default();
    /// let tokens = TokenPrices { input: Money::ZERO, output: dollar, ..TokenPrices::default() };
    /// let price = Price { tokens, long: None, batch_percent: None };
    /// let worker = Worker::own("ten", Ten).price(price).max_output(10);
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

    /// How many tokens this batch may use, resumes included. No call is sent that could pass it.
    #[must_use]
    pub fn max_tokens(mut self, most: u64) -> Self {
        self.settings.work.budget.tokens = Some(most);
        self
    }

    /// What one item may cost, and how many tokens it may use.
    #[must_use]
    pub fn item_budget(mut self, limits: BudgetLimits) -> Self {
        self.settings.work.agents.row_budget = limits;
        self
    }

    /// Ends the batch after so long: calls in flight are finished, no further one is sent.
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

    /// Ends the batch once so many items have failed.
    #[must_use]
    pub fn max_errors(mut self, most: u64) -> Self {
        self.settings.work.stop_rules.max_errors = Some(most);
        self
    }

    /// Ends the batch once a larger share of items has failed, looked at after so many items.
    #[must_use]
    pub fn max_error_rate(mut self, share: f64, after: u64) -> Self {
        self.settings.work.stop_rules.max_error_rate = Some(ErrorRate { share, after });
        self
    }

    /// Ends the batch when its first so many items all fail for the same reason and none is ok.
    ///
    /// Without this a batch continues, whatever becomes of its items: a program sees every failure and
    /// can decide for itself. `rowmill run` does it after fifty rows.
    ///
    /// ```
    /// use rowmill::{Batch, Failure, ReturnNone};
    ///
    /// let broken = Batch::over(1..);
    /// let broken = broken.worker_fn(|_| async move { Err::<u32, _>(Failure::new("no such table")) });
    /// let stopped = broken.stop_on_same_failure(10).on_failure(ReturnNone).run_blocking();
    /// assert!(stopped.unwrap_err().to_string().contains("rows all failed with FunctionError"));
    /// ```
    #[must_use]
    pub fn stop_on_same_failure(mut self, items: u64) -> Self {
        self.settings.work.stop_rules.same_failure = Some(items);
        self
    }

    /// A handle that stops the batch from outside: its clones can be kept elsewhere.
    ///
    /// ```
    /// use rowmill::{Batch, ReturnNone, Stop};
    ///
    /// let stop = Stop::default();
    /// let enough = stop.clone();
    /// let batch = Batch::over(1..).worker_fn(|item| async move { Ok(*item) }).stop(&stop);
    /// let batch = batch.on_progress(move |progress| if progress.ok >= 100 { enough.drain() });
    /// assert!(batch.on_failure(ReturnNone).run_blocking()?.report.ok >= 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.settings.stop = stop.clone();
        self
    }
}

/// Calls and what happens when they fail.
impl<T, A, U, P> Batch<T, A, U, P> {
    /// Further attempts after a call that failed and may work when tried again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rowmill::{Batch, Failure};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static TRIES: AtomicU32 = AtomicU32::new(0);
    /// let batch = Batch::over([()]).worker_fn(|_| async {
    ///     match TRIES.fetch_add(1, Ordering::Relaxed) {
    ///         0 => Err(Failure::temporary("not yet")),
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

    /// The first wait between attempts.
    #[must_use]
    pub fn retry_wait(mut self, wait: Duration) -> Self {
        self.settings.work.retry_wait = wait;
        self
    }

    /// How long one call may take.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.settings.work.timeout = most;
        self
    }

    /// How long the calls of one item may take together.
    #[must_use]
    pub fn item_timeout(mut self, most: Duration) -> Self {
        self.settings.work.row_timeout = Some(most);
        self
    }

    /// How often an answer that breaks the schema may be corrected.
    #[must_use]
    pub fn repairs(mut self, times: u32) -> Self {
        self.settings.work.repairs = times;
        self
    }

    /// What happens when the provider's quota is used up.
    #[must_use]
    pub fn on_quota(mut self, what: OnQuota) -> Self {
        self.settings.work.on_quota = what;
        self
    }

    /// How long a provider that lets no call through is waited for. With no time at all nothing is waited for, not even
    /// what the provider asks for if that is more than a minute: items fail when their attempts are used up.
    #[must_use]
    pub fn max_outage(mut self, most: Duration) -> Self {
        self.settings.work.max_outage = most;
        self
    }

    /// Puts every finished turn of an agent into the ledger, so that a resume continues after it.
    #[must_use]
    pub fn checkpoint_turns(mut self) -> Self {
        self.settings.work.agents.checkpoint_turns = true;
        self
    }

    /// Forces every answer to disk before anything is made of it, so that it outlasts a power failure too.
    /// It is of use only with a ledger, and takes a few milliseconds for each group of answers.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.settings.work.durability = Durability::Power;
        self
    }

    /// A folder with answers that were paid for, for this batch and others to use again.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.work.cache = Some(folder.into());
        self
    }
}

impl Settings {
    /// How many items are worked on at once.
    pub(super) fn parallel(&self, is_function: bool) -> Parallel {
        match (self.concurrency, self.batch_size) {
            (Some(items), Some(batch)) => Parallel::AtMost(items.min(batch)),
            (Some(items), None) | (None, Some(items)) => Parallel::AtMost(items),
            (None, None) if is_function => Parallel::AtMost(FUNCTIONS_AT_ONCE),
            (None, None) => Parallel::Auto,
        }
    }
}

/// How many calls of a function are under way at once, unless something else is said.
const FUNCTIONS_AT_ONCE: usize = 64;
