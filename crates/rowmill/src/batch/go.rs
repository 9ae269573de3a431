//! Runs a batch: turns its parts into a plan of the engine, and carries it out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use rowmill_core::ports::{Finish, Observer, Prompts};
use rowmill_core::redact::Redactor;
use rowmill_core::select::{IdRule, Selection, Selector};
use rowmill_engine::{IdCheck, RunEnd, Worker, said};
use rowmill_types::{Problem, ProblemCode};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::builder::{Batch, Chosen};
use super::collect::{Collector, Counts, Outlet};
use super::crew::Scene;
use super::items::{ID_FIELD, ItemSource, Items, Naming, Pull};
use super::ledger::{Begun, Speaker, begin, settle};
use super::maps::{CountsFn, OutputMap, PromptMap};
use super::report::BatchReport;
use super::settings::Settings;
use super::shelf::Shelf;
use super::staff::Staff;
use super::turnstile::Turnstile;
use super::vocabulary::LIBRARY;
use crate::answers::AnswersEnd;
use crate::control::Control;
use crate::notices::tell_replaced;
use crate::work::PlanParts;

/// The capacity of the channel between a stream and the reader.
const WAITING_ITEMS: usize = 64;

/// How a batch is driven.
pub(super) struct Drive<U> {
    pub(super) outlet: Outlet<U>,
    pub(super) turnstile: Arc<Turnstile>,
    /// Whether the first failure ends the batch.
    pub(super) raises: bool,
    /// Whether the first result ends the batch.
    pub(super) first: bool,
    pub(super) counts: Option<CountsFn<U>>,
}

/// The report of a batch that has ended, and the number of its items.
pub(super) struct Driven {
    pub(super) report: BatchReport,
    pub(super) items: u64,
}

/// Closes the backpressure when the batch ends in any way, even by being dropped, so that the reader
/// stops.
struct Closing(Arc<Turnstile>);

impl Drop for Closing {
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
    pub(super) async fn drive(self, drive: Drive<U>) -> Result<Driven, Problem> {
        self.check()?;
        let Self { items, prompt, id, chosen, decode, codec, schema, output, mut settings, .. } = self;
        let Drive { outlet, turnstile, raises, first, counts } = drive;
        let _closing = Closing(Arc::clone(&turnstile));
        let is_function = matches!(chosen, Chosen::Function(_));
        settings.work.parallel = settings.parallel(is_function);
        let rules = &mut settings.work.stop_rules;
        rules.first_result = first;
        if raises {
            rules.max_errors = Some(1);
        }
        let shelf = Arc::new(Shelf::default());
        let total = items.total();
        let collector = Arc::new(Collector {
            shelf: Arc::clone(&shelf),
            outlet,
            turnstile: Arc::clone(&turnstile),
            hooks: settings.hooks.clone(),
            counts: Counts::default().into(),
            total,
            began: Instant::now(),
        });
        let control = control(&settings, Arc::clone(&collector) as _);
        let codec = codec.filter(|_| is_function);
        let decode = codec.map(|(_, decode)| decode).or(decode);
        let asks = if is_function { None } else { prompt };
        let naming = match (id, &settings.ledger, &asks) {
            (Some(id), _, _) => Naming::Own(id),
            (None, Some(_), Some(prompt)) => Naming::Asked(Arc::clone(prompt)),
            (None, _, _) => Naming::Place,
        };
        let encode = codec.map(|(encode, _)| encode);
        let redactor = control.environment.redactor()?;
        let scene = || scene(&settings, &control, &schema, &redactor);
        let staff = Staff::of(chosen, &shelf, encode, scene).await?;
        let finish = Arc::new(OutputMap { output, decode, counts, shelf: Arc::clone(&shelf) });
        let prompts = Arc::new(PromptMap { prompt: asks, shelf: Arc::clone(&shelf), runner: Arc::default() });
        let maps = Maps { finish, prompts };
        let speaker = staff.speaker(schema.as_ref().map(ToString::to_string));
        // The clone can read what was learned so far without a lock.
        let parts = Parts { items, naming, shelf, maps, speaker, redactor: redactor.clone() };
        let ended = carry_out(parts, &staff, &mut settings, &control, &turnstile).await;
        // However the batch ended, everything that was started for it is closed.
        staff.close().await;
        tell_replaced(&control, &redactor);
        let end = ended?;
        let items = total.unwrap_or_else(|| turnstile.taken()).max(turnstile.taken());
        let counts = *collector.counts();
        Ok(Driven { report: BatchReport::new(end, &counts, items), items })
    }

    /// Finds mistakes before any function of the program is called.
    fn check(&self) -> Result<(), Problem> {
        let wrong = |what: &str, hint: &str| Err(Problem::new(ProblemCode::Usage, what).hint(hint));
        let Settings { concurrency, batch_size, ledger, work, .. } = &self.settings;
        if *concurrency == Some(0) || *batch_size == Some(0) {
            return wrong("a batch cannot run 0 items at once", "use at least 1");
        }
        let is_function = match &self.chosen {
            Chosen::Nobody => return Err(nobody()),
            Chosen::Function(_) => true,
            Chosen::Same(_) | Chosen::Each(_) => false,
        };
        if !is_function && self.prompt.is_none() {
            return wrong("the batch has no prompt", "set it with `Batch::prompt`");
        }
        if is_function && ledger.is_some() && self.id.is_none() {
            return wrong("the batch does not say how items are identified", "set it with `Batch::id`");
        }
        if is_function && (work.budget.any() || work.agents.row_budget.any()) {
            return wrong(
                "the spending of a function is not known, so it cannot be limited",
                "implement `Model` for it and use `Worker::own`",
            );
        }
        if work.cache.is_some() && !matches!(self.chosen, Chosen::Same(_)) {
            return wrong("a cache needs one worker for all items", "use `Batch::worker`");
        }
        Ok(())
    }
}

pub(super) fn nobody() -> Problem {
    Problem::new(ProblemCode::Usage, "the batch has no worker")
        .hint("set one with `Batch::worker`, `worker_fn` or `worker_for`")
}

fn control(settings: &Settings, observer: Arc<dyn Observer>) -> Control {
    let hear = settings.notice.clone();
    Control {
        observer,
        notice: Arc::new(move |notice| {
            if let Some(hear) = &hear {
                hear(notice.worded(LIBRARY));
            }
        }),
        stop: settings.stop.child(),
        limits: settings.limits.for_run(),
        person: None,
        environment: settings.environment.clone(),
        vocabulary: LIBRARY,
    }
}

fn scene(
    settings: &Settings,
    control: &Control,
    schema: &Option<serde_json::Value>,
    redactor: &Redactor,
) -> Scene {
    Scene {
        work: settings.work.clone(),
        http: control.environment.http_client(),
        control: control.clone(),
        schema: schema.clone(),
        redactor: redactor.clone(),
    }
}

/// The parts of a plan that the settings do not contain.
struct Parts<T, A, U> {
    items: Items<T>,
    naming: Naming<T>,
    shelf: Arc<Shelf<T, A, U>>,
    maps: Maps,
    speaker: Speaker,
    redactor: Redactor,
}

/// The functions that make prompts and results.
struct Maps {
    finish: Arc<dyn Finish>,
    prompts: Arc<dyn Prompts>,
}

/// Forwards the items of a stream while there is room for them; a panic is forwarded as the last item.
async fn pump<T>(mut stream: BoxStream<'static, T>, sender: mpsc::Sender<Result<T, String>>) {
    loop {
        let next = match AssertUnwindSafe(stream.next()).catch_unwind().await {
            Ok(None) => return,
            Ok(Some(item)) => Ok(item),
            Err(panic) => Err(said(&*panic).to_owned()),
        };
        let has_panicked = next.is_err();
        if sender.send(next).await.is_err() || has_panicked {
            return;
        }
    }
}

/// Carries out the plan, and feeds it from a stream if the items come from one.
async fn carry_out<T, A, U>(
    parts: Parts<T, A, U>,
    staff: &Staff<T, A, U>,
    settings: &mut Settings,
    control: &Control,
    turnstile: &Arc<Turnstile>,
) -> Result<RunEnd, Problem>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    let Parts { items, naming, shelf, maps, speaker, redactor } = parts;
    let answers = staff.answers(settings, control)?;
    // Declared before the worker, so that it is dropped after everything else that holds the store.
    let end_of_answers = AnswersEnd::of(answers.as_ref());
    let worker = Worker {
        finish: Some(maps.finish),
        answers,
        redactor,
        vocabulary: control.vocabulary,
        ..settings.work.worker(staff.casting(), maps.prompts)
    };
    let begun = begin(settings.ledger.take(), &settings.work, worker.answers.clone(), speaker).await?;
    let Begun { run, ledger, resume, spent, held } = begun;
    let reading = items.reading();
    let (pull, pump) = match items {
        Items::Iterator(iterator) => (Pull::Iterator(iterator), None),
        Items::Rows(source, make) => (Pull::Rows(source, make), None),
        Items::Stream(stream) => {
            let (sender, receiver) = mpsc::channel(WAITING_ITEMS);
            let pump = pump(stream, sender);
            (Pull::Channel(receiver, None), Some(pump.boxed()))
        }
    };
    let is_named = !matches!(naming, Naming::Place);
    let id_check = if matches!(naming, Naming::Own(_)) { IdCheck::WhileReading } else { IdCheck::Done };
    let turnstile = Arc::clone(turnstile);
    let source = ItemSource { pull, naming, shelf, turnstile, number: 0, pulled: Vec::new() };
    let parts = PlanParts {
        run,
        source: Box::new(source),
        reading,
        selector: Selector::new(&Selection::default(), None)?,
        ids: IdRule { field: is_named.then(|| ID_FIELD.into()), ..IdRule::default() },
        id_check,
        resume,
        worker,
        spent,
        ledger,
    };
    let running = Box::pin(rowmill_engine::run(settings.work.plan(parts, control)));
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
        settle(held, end.spent);
    }
    end
}
