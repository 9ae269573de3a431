//! Runs a batch: turns its parts into a plan of the engine, and carries it out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use rowmill_core::ports::{AnswerMapper, Observer, PromptMaker};
use rowmill_core::redact::Redactor;
use rowmill_core::select::{IdRule, RowSelection, RowSelector};
use rowmill_engine::{IdCheckPhase, RowExecutionSetup, RunOutcome, panic_message};
use rowmill_types::{Problem, ProblemCode};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::backpressure::ItemBackpressure;
use super::batch_workers::BatchWorkers;
use super::builder::{Batch, WorkerChoice};
use super::item_table::ItemTable;
use super::items::{BatchItems, ID_FIELD, ItemNaming, ItemReader, ItemSource};
use super::ledger::{BatchStart, WorkerIdentity, open_batch_ledger, record_final_spend};
use super::program_maps::{AcceptFn, OutputMap, PromptMap};
use super::report::BatchReport;
use super::result_collector::{BatchCounts, ResultCollector, ResultOutlet};
use super::row_worker::WorkerContext;
use super::settings::BatchSettings;
use super::vocabulary::LIBRARY_VOCABULARY;
use crate::answer_cache::AnswersEnd;
use crate::control::RunControl;
use crate::lane::BatchLaneHandle;
use crate::notices::notify_redactions;
use crate::work_spec::PlanParts;

/// The capacity of the channel between a stream and the reader.
const WAITING_ITEMS: usize = 64;

/// How a batch is driven.
pub(super) struct BatchDrive<U> {
    pub(super) outlet: ResultOutlet<U>,
    pub(super) backpressure: Arc<ItemBackpressure>,
    /// Whether the first failure ends the batch.
    pub(super) raises: bool,
    /// Whether the first result ends the batch.
    pub(super) first: bool,
    pub(super) counts: Option<AcceptFn<U>>,
}

/// The report of a batch that has ended, and the number of its items.
pub(super) struct BatchEnd {
    pub(super) report: BatchReport,
    pub(super) items: u64,
}

/// Closes the backpressure when the batch ends in any way, even by being dropped, so that the reader
/// stops.
struct CloseOnDrop(Arc<ItemBackpressure>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T, A, U, P> Batch<T, A, U, P>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    /// Runs the batch to its end.
    pub(super) async fn drive(self, drive: BatchDrive<U>) -> Result<BatchEnd, Problem> {
        self.check()?;
        let Self { items, prompt, id, chosen, decode, codec, schema, output, mut settings, .. } = self;
        let BatchDrive { outlet, backpressure, raises, first, counts } = drive;
        let _closing = CloseOnDrop(Arc::clone(&backpressure));
        let is_function = matches!(chosen, WorkerChoice::Function(_));
        settings.work.parallel = settings.parallel(is_function);
        let rules = &mut settings.work.stop_rules;
        rules.first_result = first;
        if raises {
            rules.max_errors = Some(1);
        }
        let item_table = Arc::new(ItemTable::default());
        let total = items.total();
        let collector = Arc::new(ResultCollector {
            item_table: Arc::clone(&item_table),
            outlet,
            backpressure: Arc::clone(&backpressure),
            hooks: settings.hooks.clone(),
            counts: BatchCounts::default().into(),
            total,
            began: Instant::now(),
        });
        let control = control(&settings, Arc::clone(&collector) as _);
        let codec = codec.filter(|_| is_function);
        let decode = codec.map(|(_, decode)| decode).or(decode);
        let asks = if is_function { None } else { prompt };
        let naming = match (id, &settings.ledger, &asks) {
            (Some(id), _, _) => ItemNaming::Own(id),
            (None, Some(_), Some(prompt)) => ItemNaming::Asked(Arc::clone(prompt)),
            (None, _, _) => ItemNaming::Place,
        };
        let encode = codec.map(|(encode, _)| encode);
        let redactor = control.environment.redactor()?;
        let worker_context = || worker_context(&settings, &control, &schema, &redactor);
        let batch_workers = BatchWorkers::prepare(chosen, &item_table, encode, worker_context).await?;
        let finish = Arc::new(OutputMap { output, decode, counts, item_table: Arc::clone(&item_table) });
        let prompts =
            Arc::new(PromptMap { prompt: asks, item_table: Arc::clone(&item_table), runner: Arc::default() });
        let maps = ProgramMaps { finish, prompts };
        let worker_identity = batch_workers.worker_identity(schema.as_ref().map(ToString::to_string));
        // The clone can read what was learned so far without a lock.
        let parts =
            PlanInputs { items, naming, item_table, maps, worker_identity, redactor: redactor.clone() };
        let ended = carry_out(parts, &batch_workers, &mut settings, &control, &backpressure).await;
        // However the batch ended, everything that was started for it is closed.
        batch_workers.close().await;
        notify_redactions(&control, &redactor);
        let end = ended?;
        let items = total.unwrap_or_else(|| backpressure.taken_items()).max(backpressure.taken_items());
        let counts = *collector.counts();
        Ok(BatchEnd { report: BatchReport::new(end, &counts, items), items })
    }

    /// Finds mistakes before any function of the program is called.
    fn check(&self) -> Result<(), Problem> {
        let wrong = |what: &str, hint: &str| Err(Problem::new(ProblemCode::Usage, what).hint(hint));
        let BatchSettings { concurrency, batch_size, ledger, work, .. } = &self.settings;
        if *concurrency == Some(0) || *batch_size == Some(0) {
            return wrong("a batch cannot run 0 items at once", "use at least 1");
        }
        let is_function = match &self.chosen {
            WorkerChoice::NotChosen => return Err(no_worker_problem()),
            WorkerChoice::Function(_) => true,
            WorkerChoice::Shared(_) | WorkerChoice::PerItem(_) => false,
        };
        if !is_function && self.prompt.is_none() {
            return wrong("the batch has no prompt", "set it with `Batch::prompt`");
        }
        if is_function && ledger.is_some() && self.id.is_none() {
            return wrong("the batch does not say how items are identified", "set it with `Batch::id`");
        }
        if is_function && (work.budget.is_limited() || work.agents.row_budget.is_limited()) {
            return wrong(
                "the spending of a function is not known, so it cannot be limited",
                "implement `Model` for it and use `Worker::from_model`",
            );
        }
        if work.cache.is_some() && !matches!(self.chosen, WorkerChoice::Shared(_)) {
            return wrong("a cache needs one worker for all items", "use `Batch::worker`");
        }
        Ok(())
    }
}

pub(super) fn no_worker_problem() -> Problem {
    Problem::new(ProblemCode::Usage, "the batch has no worker")
        .hint("set one with `Batch::worker`, `worker_fn` or `worker_for`")
}

fn control(settings: &BatchSettings, observer: Arc<dyn Observer>) -> RunControl {
    let hear = settings.notice.clone();
    RunControl {
        observer,
        notice: Arc::new(move |notice| {
            if let Some(hear) = &hear {
                hear(notice.with_vocabulary(LIBRARY_VOCABULARY));
            }
        }),
        stop: settings.stop.child(),
        limits: settings.limits.for_run(),
        person: None,
        environment: settings.environment.clone(),
        vocabulary: LIBRARY_VOCABULARY,
        lane: BatchLaneHandle::default(),
    }
}

fn worker_context(
    settings: &BatchSettings,
    control: &RunControl,
    schema: &Option<serde_json::Value>,
    redactor: &Redactor,
) -> WorkerContext {
    WorkerContext {
        work: settings.work.clone(),
        http: control.environment.http_client(),
        control: control.clone(),
        schema: schema.clone(),
        redactor: redactor.clone(),
    }
}

/// The parts of a plan that the settings do not contain.
struct PlanInputs<T, A, U> {
    items: BatchItems<T>,
    naming: ItemNaming<T>,
    item_table: Arc<ItemTable<T, A, U>>,
    maps: ProgramMaps,
    worker_identity: WorkerIdentity,
    redactor: Redactor,
}

/// The functions that make prompts and results.
struct ProgramMaps {
    finish: Arc<dyn AnswerMapper>,
    prompts: Arc<dyn PromptMaker>,
}

/// Forwards the items of a stream while there is room for them; a panic is forwarded as the last item.
async fn pump<T>(mut stream: BoxStream<'static, T>, sender: mpsc::Sender<Result<T, String>>) {
    loop {
        let next = match AssertUnwindSafe(stream.next()).catch_unwind().await {
            Ok(None) => return,
            Ok(Some(item)) => Ok(item),
            Err(panic) => Err(panic_message(&*panic).to_owned()),
        };
        let has_panicked = next.is_err();
        if sender.send(next).await.is_err() || has_panicked {
            return;
        }
    }
}

/// Carries out the plan, and feeds it from a stream if the items come from one.
async fn carry_out<T, A, U>(
    parts: PlanInputs<T, A, U>,
    batch_workers: &BatchWorkers<T, A, U>,
    settings: &mut BatchSettings,
    control: &RunControl,
    backpressure: &Arc<ItemBackpressure>,
) -> Result<RunOutcome, Problem>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    let PlanInputs { items, naming, item_table, maps, worker_identity, redactor } = parts;
    let answers = batch_workers.open_answer_cache(settings, control)?;
    // Declared before the worker, so that it is dropped after everything else that holds the store.
    let end_of_answers = AnswersEnd::of(answers.as_ref());
    let worker = RowExecutionSetup {
        answer_mapper: Some(maps.finish),
        answer_cache: answers,
        redactor,
        vocabulary: control.vocabulary,
        ..settings.work.worker(batch_workers.assignment(), maps.prompts)
    };
    let cache = worker.answer_cache.clone();
    let begun = open_batch_ledger(settings.ledger.take(), &settings.work, cache, worker_identity).await?;
    let BatchStart { run, ledger, resume, spent, held } = begun;
    let reading = items.reading();
    let (pull, pump) = match items {
        BatchItems::Iterator(iterator) => (ItemReader::Iterator(iterator), None),
        BatchItems::Rows(source, make) => (ItemReader::Rows(source, make), None),
        BatchItems::Stream(stream) => {
            let (sender, receiver) = mpsc::channel(WAITING_ITEMS);
            let pump = pump(stream, sender);
            (ItemReader::Channel(receiver, None), Some(pump.boxed()))
        }
    };
    let is_named = !matches!(naming, ItemNaming::Place);
    let id_check =
        if matches!(naming, ItemNaming::Own(_)) { IdCheckPhase::WhileReading } else { IdCheckPhase::Done };
    let backpressure = Arc::clone(backpressure);
    let source = ItemSource { pull, naming, item_table, backpressure, number: 0, pulled: Vec::new() };
    let parts = PlanParts {
        run,
        source: Box::new(source),
        reading,
        selector: RowSelector::new(&RowSelection::default(), None)?,
        ids: IdRule { field: is_named.then(|| ID_FIELD.into()), ..IdRule::default() },
        id_check,
        resume,
        worker,
        spent,
        ledger,
    };
    let running = Box::pin(rowmill_engine::execute_run(settings.work.plan(parts, control)));
    let end = match pump {
        None => running.await,
        Some(pump) => {
            let pumped = pump.then(|()| std::future::pending::<()>());
            tokio::select! {
                end = running => end,
                () = pumped => Err(Problem::new(ProblemCode::Internal, "a stream ended twice")),
            }
        }
    };
    end_of_answers.wait().await?;
    if let (Some(held), Ok(end)) = (held, &end) {
        record_final_spend(held, end.spent);
    }
    end
}
