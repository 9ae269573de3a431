//! Test support: a provider, models, tools and functions that can be observed.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rowmill::{
    Batch, BatchError, BatchFailureCause, BatchReport, ItemError, OfferedTool, PriceConfig, Problem,
    ProviderConfig, Worker,
};
use rowmill_core::ports::{Model, ToolFailure, ToolHost, ToolRequest};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rowmill_types::ToolOutput;
use serde_json::json;

/// The model that the simulator plays, with answers of at most 16 tokens.
pub(crate) const MODEL: &str = "generic.m?max_tokens=16";

/// A script that answers `hi` with `re: hi`.
pub(crate) fn echoing() -> SimulatorScript {
    SimulatorScript::new().answer_prompts(|prompt, _| SimulatedAnswer::Text(format!("re: {prompt}")))
}

/// A provider with this script.
pub(crate) fn echo() -> Simulator {
    Simulator::start_blocking(echoing())
}

/// Points workers and batches at the simulator.
pub(crate) trait At {
    /// Uses this simulator as the provider.
    fn at(self, simulator: &Simulator) -> Self;
    /// Sets the price of its model: a dollar for 1,000 tokens of any kind.
    fn priced(self) -> Self;
}

impl<T, A, U, P> At for Batch<T, A, U, P> {
    fn at(self, simulator: &Simulator) -> Self {
        let base_url = Some(format!("{}/v1", simulator.url()));
        let config = ProviderConfig { base_url, ..ProviderConfig::default() };
        self.providers(BTreeMap::from([("generic".to_owned(), config)]))
    }

    fn priced(self) -> Self {
        let price = PriceConfig { input: 1_000.0, output: 1_000.0, ..PriceConfig::default() };
        self.prices(BTreeMap::from([("generic.m".to_owned(), price)]))
    }
}

/// The prompt of an item, from its number.
pub(crate) fn ask(item: &usize) -> String {
    format!("item {item}")
}

/// The answers of [`echo`] to these prompts.
pub(crate) fn answered(items: impl IntoIterator<Item = usize>) -> Vec<String> {
    items.into_iter().map(|item| format!("re: {}", ask(&item))).collect()
}

/// A worker for a model to which the test keeps a handle.
pub(crate) fn own(model: &Arc<impl Model + 'static>) -> Worker {
    let model = Arc::clone(model);
    Worker::from_model_maker("own", move |_| Ok(Arc::clone(&model) as Arc<dyn Model>))
}

/// A tool `name` without arguments.
pub(crate) fn tool(name: &str) -> OfferedTool {
    OfferedTool::new(name, "A tool.", json!({"type": "object"}))
}

/// A host that is a function of the item's index and the tool.
pub(crate) struct FnHost<F>(F);

/// Creates such a host.
pub(crate) fn host<F>(call: F) -> FnHost<F>
where
    F: Fn(usize, &str) -> Result<ToolOutput, ToolFailure> + Send + Sync,
{
    FnHost(call)
}

impl<F> fmt::Debug for FnHost<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FnHost")
    }
}

impl<F> ToolHost for FnHost<F>
where
    F: Fn(usize, &str) -> Result<ToolOutput, ToolFailure> + Send + Sync,
{
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move { (self.0)(request.row as usize - 1, request.tool) })
    }
}

/// Counts entries: current, maximum and total.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    now: AtomicUsize,
    most: AtomicUsize,
    ever: AtomicUsize,
}

impl Room {
    /// Enters until the guard is dropped.
    pub(crate) fn enter(&self) -> Inside {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        self.0.ever.fetch_add(1, Ordering::SeqCst);
        Inside(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.now.load(Ordering::SeqCst)
    }

    pub(crate) fn most(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    pub(crate) fn ever(&self) -> usize {
        self.0.ever.load(Ordering::SeqCst)
    }

    /// Waits until the total has reached this number.
    pub(crate) async fn until_ever(&self, most: usize) {
        while self.ever() < most {
            tokio::task::yield_now().await;
        }
    }
}

/// The guard of one entry.
#[derive(Debug)]
pub(crate) struct Inside(Room);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A list that functions append to.
#[derive(Debug)]
pub(crate) struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Notes<T> {
    pub(crate) fn add(&self, note: T) {
        self.0.lock().unwrap().push(note);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }
}

/// The index of the item whose failure ended a batch, with its message.
#[track_caller]
pub(crate) fn raised<U>(error: &BatchError<U>) -> (usize, String) {
    match error.cause() {
        BatchFailureCause::Item(ItemError::Failed { index, error }) => (*index, error.message.to_string()),
        other => unreachable!("{other:?}"),
    }
}

/// The problem that kept a batch from starting, or ended it.
#[track_caller]
pub(crate) fn problem<U>(error: &BatchError<U>) -> Problem {
    match error.cause() {
        BatchFailureCause::Problem(problem) => problem.clone(),
        other => unreachable!("{other:?}"),
    }
}

/// Checks that every item is accounted for, and returns `(ok, failed, cancelled, not_run)`.
#[track_caller]
pub(crate) fn accounts(report: &BatchReport, items: u64) -> (u64, u64, u64, u64) {
    let BatchReport { ok, failed, cancelled, not_run, .. } = *report;
    assert_eq!(ok + failed + cancelled + not_run, items, "{report:?}");
    (ok, failed, cancelled, not_run)
}
