//! The running steps of a row.

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;

/// Futures that return the node of their step.
type StepFutures<'r, T> = FuturesUnordered<Abortable<BoxFuture<'r, (usize, T)>>>;

/// Steps that run at the same time, each for a node of the row state.
pub(crate) struct RunningSteps<'r, T> {
    /// Created for the first of them: most rows never have two.
    steps: Option<StepFutures<'r, T>>,
    open: Vec<RunningStep>,
    /// The number of steps so far.
    taken: usize,
}

struct RunningStep {
    number: usize,
    node: usize,
    kind: StepKind,
    handle: AbortHandle,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// Asks a model, which may be billed.
    Model,
    /// Calls a tool.
    Tool,
    /// Watches the time.
    Watch,
}

impl<'r, T: 'r> RunningSteps<'r, T> {
    pub(crate) fn new() -> Self {
        Self { steps: None, open: Vec::new(), taken: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.as_ref().is_none_or(FuturesUnordered::is_empty)
    }

    pub(crate) fn push(&mut self, node: usize, kind: StepKind, step: impl Future<Output = T> + Send + 'r) {
        let number = self.taken;
        self.taken += 1;
        let (handle, registration) = AbortHandle::new_pair();
        self.open.push(RunningStep { number, node, kind, handle });
        let step: BoxFuture<'r, (usize, T)> = Box::pin(async move { (number, step.await) });
        self.steps.get_or_insert_default().push(Abortable::new(step, registration));
    }

    /// Waits for the next step that ends; `None` if there is none.
    pub(crate) async fn next(&mut self) -> Option<T> {
        let steps = self.steps.as_mut()?;
        while let Some(ended) = steps.next().await {
            if let Ok((number, arrived)) = ended {
                self.open.retain(|open| open.number != number);
                return Some(arrived);
            }
        }
        None
    }

    /// Drops the steps of nodes that have ended; returns how many of them asked a model, and how many called a tool.
    /// Their resources are freed with the next [`RunningSteps::next`].
    pub(crate) fn drop_steps_where(&mut self, has_ended: impl Fn(usize) -> bool) -> (u64, u64) {
        let gone: Vec<RunningStep> = self.open.extract_if(.., |open| has_ended(open.node)).collect();
        gone.iter().for_each(|open| open.handle.abort());
        let count = |kind| gone.iter().filter(|open| open.kind == kind).count() as u64;
        (count(StepKind::Model), count(StepKind::Tool))
    }
}
