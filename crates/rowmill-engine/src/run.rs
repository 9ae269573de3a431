//! Carries out a plan: starts the tasks beside the loop, and ends them.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::limits::Spend;
use rowmill_core::ports::Ledger;
use rowmill_core::select::RowNumberDigest;
use rowmill_core::summary::RunTally;
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use crate::answer_checks::AnswerChecks;
use crate::answer_mapping::MappingQueue;
use crate::batch_queue::BatchQueue;
use crate::feed::RowFeed;
use crate::intake::RowIntake;
use crate::memory::RowMemory;
use crate::publish::{Publisher, QueuedRecord};
use crate::row_work::RunContext;
use crate::run_account::RunAccount;
use crate::run_driver::{RunDriver, UncommittedEvents};
use crate::stop_policy::{StopCause, StopPolicy};
use crate::{RecordSinks, RunSetup};

/// How a run ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// The counts.
    pub tally: RunTally,
    /// What rows used, to estimate the next run.
    pub history: AnsweredRowUsage,
    /// What the run and its earlier parts spent, or may have spent.
    pub spent: Spend,
    /// Why it ended before the input did, if it did.
    pub stopped: Option<StopCause>,
    /// Rows whose calls were aborted.
    pub unknown_rows: u64,
    /// Rows that wait for something outside of the process; a resume continues them.
    pub parked_rows: u64,
    /// The numbers of the rows that were skipped because they are done.
    pub skipped: RowNumberDigest,
    /// How long it took.
    pub duration: Duration,
}

/// Runs a plan to its end.
///
/// # Errors
///
/// The run could not start. Later failures are reported in [`RunOutcome::stopped`].
pub async fn execute_run(plan: RunSetup) -> Result<RunOutcome, Problem> {
    let began = Instant::now();
    let keeps_records = plan.ledger.ledger.is_persistent() || !plan.sinks.is_empty();
    let publisher = start_publisher(plan.sinks, plan.locks, &*plan.ledger.ledger)?;
    let feed = RowFeed {
        epoch: plan.ledger.epoch,
        source: plan.source,
        selector: plan.selector,
        ids: plan.ids,
        id_check: plan.id_check,
        resume: plan.resume,
        ledger: plan.ledger.ledger.reader()?,
        maps_answers: plan.worker.answer_mapper.is_some(),
    };
    let shared = RunContext {
        run: plan.run,
        worker: plan.worker,
        observer: plan.observer.clone(),
        stop: plan.stop.clone(),
        began,
        account: RunAccount::new(plan.budget, plan.ledger, plan.parallel.max(1), plan.observer.clone()),
        all_sent: AtomicBool::new(false),
        aborted: AtomicBool::new(false),
        waiting_rows: Arc::default(),
        checks: AnswerChecks::default(),
    };
    let mut driver = RunDriver {
        gates: shared.worker.assignment.shared_worker().map(|row_worker| row_worker.gates()),
        waiting_rows: Arc::clone(&shared.waiting_rows),
        feed: Some(BatchQueue::start(feed.reader(), plan.reading)),
        intake: RowIntake::new(&shared.worker),
        releasing: FuturesUnordered::new(),
        head: None,
        next_ordinal: 0,
        parallel: plan.parallel.max(1),
        memory: RowMemory::new(plan.memory),
        policy: StopPolicy::new(plan.stop_rules),
        finishing: shared.worker.answer_mapper.clone().map(MappingQueue::new),
        keeps_records,
        publisher,
        observer: plan.observer,
        stop: plan.stop,
        tally: RunTally::default(),
        skipped: RowNumberDigest::default(),
        history: AnsweredRowUsage::default(),
        stopped: None,
        is_closed: false,
        in_flight: HashSet::new(),
        parked_rows: 0,
        uncommitted: UncommittedEvents::default(),
        held_records: None,
        began,
    };
    let unknown_rows = driver.drive(&shared).await;
    Ok(end(driver, &shared, unknown_rows).await)
}

/// Ends a run once its loop has ended: everything is published, and the spending is recorded.
async fn end(driver: RunDriver, shared: &RunContext, unknown_rows: u64) -> RunOutcome {
    let began = driver.began;
    let RunDriver {
        tally, history, skipped, stopped, publisher, held_records: held_back, parked_rows, ..
    } = driver;
    // First, because publishing may use up the rest of the disk.
    shared.account.close().await;
    let unpublished = finish_publishing(publisher, held_back.unwrap_or_default()).await;
    let spent = shared.account.budget().spent();
    let stopped = first_cause(stopped, unpublished).map(|cause| cause.with_final_spend(spent));
    let duration = began.elapsed();
    RunOutcome { tally, history, spent, stopped, unknown_rows, parked_rows, skipped, duration }
}

/// The cause that stopped a run: the first problem, otherwise the regular cause.
fn first_cause(stopped: Option<StopCause>, unpublished: Option<Problem>) -> Option<StopCause> {
    match (stopped, unpublished) {
        (Some(StopCause::Problem(first)), _) | (_, Some(first)) => Some(StopCause::Problem(first)),
        (stopped, None) => stopped,
    }
}

/// Starts publishing, if there are sinks.
fn start_publisher(
    sinks: RecordSinks,
    locks: Option<Arc<dyn Any + Send + Sync>>,
    ledger: &dyn Ledger,
) -> Result<Option<Publisher>, Problem> {
    match sinks.is_empty() {
        true => Ok(None),
        false => Ok(Some(Publisher::start(sinks, locks, ledger.reader()?))),
    }
}

/// Publishes what was held back and waits until everything is published; returns the error, if there was one.
async fn finish_publishing(publisher: Option<Publisher>, held_back: Vec<QueuedRecord>) -> Option<Problem> {
    let publisher = publisher?;
    publisher.send(held_back);
    publisher.finish().await.err()
}

pub(crate) fn cannot_start_thread(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Internal, "cannot start a thread").cause(error)
}
