//! Carries out a plan: starts the tasks beside the loop, and ends them.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use rowmill_core::history::History;
use rowmill_core::limits::Spend;
use rowmill_core::ports::Ledger;
use rowmill_core::select::RowPlaces;
use rowmill_core::summary::Tally;
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use crate::account::Account;
use crate::batch_queue::BatchQueue;
use crate::checks::AnswerChecks;
use crate::drive::{Driver, Happened};
use crate::feed::Feed;
use crate::finishing::Finishing;
use crate::intake::Intake;
use crate::memory::RowMemory;
use crate::policy::{Policy, StopCause};
use crate::publish::{Parcel, Publisher};
use crate::work::Shared;
use crate::{Plan, Sinks};

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// The counts.
    pub tally: Tally,
    /// What rows used, to estimate the next run.
    pub history: History,
    /// What the run and its earlier parts spent, or may have spent.
    pub spent: Spend,
    /// Why it ended before the input did, if it did.
    pub stopped: Option<StopCause>,
    /// Rows whose calls were aborted.
    pub unknown_rows: u64,
    /// Rows that wait for something outside of the process; a resume continues them.
    pub parked_rows: u64,
    /// The numbers of the rows that were skipped because they are done.
    pub skipped: RowPlaces,
    /// How long it took.
    pub duration: Duration,
}

/// Runs a plan to its end.
///
/// # Errors
///
/// The run could not start. Later failures are reported in [`RunEnd::stopped`].
pub async fn run(plan: Plan) -> Result<RunEnd, Problem> {
    let began = Instant::now();
    let keeps_records = plan.ledger.ledger.keeps() || !plan.sinks.is_empty();
    let publisher = start_publisher(plan.sinks, plan.locks, &*plan.ledger.ledger)?;
    let feed = Feed {
        source: plan.source,
        selector: plan.selector,
        ids: plan.ids,
        id_check: plan.id_check,
        resume: plan.resume,
        ledger: plan.ledger.ledger.reader()?,
        finishes: plan.worker.finish.is_some(),
    };
    let shared = Shared {
        run: plan.run,
        worker: plan.worker,
        observer: plan.observer.clone(),
        stop: plan.stop.clone(),
        began,
        account: Account::new(plan.budget, plan.ledger, plan.parallel.max(1), plan.observer.clone()),
        all_sent: AtomicBool::new(false),
        aborted: AtomicBool::new(false),
        aside: Arc::default(),
        checks: AnswerChecks::default(),
    };
    let mut driver = Driver {
        gates: shared.worker.casting.same().map(|crew| crew.gates()),
        aside: Arc::clone(&shared.aside),
        feed: Some(BatchQueue::start(feed.reader(), plan.reading)),
        intake: Intake::new(&shared.worker),
        releasing: FuturesUnordered::new(),
        head: None,
        next_ordinal: 0,
        parallel: plan.parallel.max(1),
        memory: RowMemory::new(plan.memory),
        policy: Policy::new(plan.stop_rules),
        finishing: shared.worker.finish.clone().map(Finishing::new),
        keeps_records,
        publisher,
        observer: plan.observer,
        stop: plan.stop,
        tally: Tally::default(),
        skipped: RowPlaces::default(),
        history: History::default(),
        stopped: None,
        is_closed: false,
        in_flight: HashSet::new(),
        parked_rows: 0,
        now: Happened::default(),
        held_back: None,
        began,
    };
    let unknown_rows = driver.drive(&shared).await;
    Ok(end(driver, &shared, unknown_rows).await)
}

/// Ends a run once its loop has ended: everything is published, and the spending is recorded.
async fn end(driver: Driver, shared: &Shared, unknown_rows: u64) -> RunEnd {
    let began = driver.began;
    let Driver { tally, history, skipped, stopped, publisher, held_back, parked_rows, .. } = driver;
    // First, because publishing may use up the rest of the disk.
    shared.account.close().await;
    let unpublished = finish_publishing(publisher, held_back.unwrap_or_default()).await;
    let spent = shared.account.budget().spent();
    let stopped = first_cause(stopped, unpublished).map(|cause| cause.ended_with(spent));
    let duration = began.elapsed();
    RunEnd { tally, history, spent, stopped, unknown_rows, parked_rows, skipped, duration }
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
    sinks: Sinks,
    locks: Option<Arc<dyn Any + Send + Sync>>,
    ledger: &dyn Ledger,
) -> Result<Option<Publisher>, Problem> {
    match sinks.is_empty() {
        true => Ok(None),
        false => Ok(Some(Publisher::start(sinks, locks, ledger.reader()?))),
    }
}

/// Publishes what was held back and waits until everything is published; returns the error, if there was one.
async fn finish_publishing(publisher: Option<Publisher>, held_back: Vec<Parcel>) -> Option<Problem> {
    let publisher = publisher?;
    publisher.send(held_back);
    publisher.finish().await.err()
}

pub(crate) fn cannot_start_thread(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Internal, "cannot start a thread").cause(error)
}
