//! Runs a batch: everything that it is made of becomes a plan of the engine.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use rowmill_core::limits::Budget;
use rowmill_core::ports::Observer;
use rowmill_core::select::{IdRule, Selection, Selector};
use rowmill_engine::{Answers, Casting, IdCheck, Plan, RunEnd, Sinks, Worker, said};
use rowmill_http::HttpClient;
use rowmill_types::{Problem, ProblemCode};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::builder::{Batch, Chosen};
use super::choose::Chooser;
use super::collect::{Collector, Counts, Outlet};
use super::crew::{Ready, Scene, function_crew};
use super::function::FunctionModel;
use super::items::{ID_FIELD, ItemSource, Items, Naming, Pull};
use super::ledger::{Begun, Speaker, begin, settle};
use super::maps::{CountsFn, OutputMap, PromptMap};
use super::report::BatchReport;
use super::settings::Settings;
use super::shelf::Shelf;
use super::turnstile::Turnstile;
use crate::answers::cached;
use crate::environment::environment;
use crate::run::Control;

/// Items that may wait between a stream and the reader.
const WAITING_ITEMS: usize = 64;

/// How a batch is driven.
pub(super) struct Drive<U> {
    pub(super) outlet: Outlet<U>,
    pub(super) turnstile: Arc<Turnstile>,
    /// Whether the first failure ends it.
    pub(super) raises: bool,
    /// Whether the first result ends it.
    pub(super) first: bool,
    pub(super) counts: Option<CountsFn<U>>,
}

/// What a batch came to, and how many items there are.
pub(super) struct Driven {
    pub(super) report: BatchReport,
    pub(super) items: u64,
}

/// Who works on items, made ready.
enum Staff<T, A, U> {
    Same(Ready),
    Each(Arc<Chooser<T, A, U>>),
}

impl<T: Send + Sync, A: Send, U: Send> Staff<T, A, U> {
    fn casting(&self) -> Casting
    where
        T: 'static,
        A: 'static,
        U: 'static,
    {
        match self {
            Self::Same(ready) => Casting::Same(Arc::clone(&ready.crew)),
            Self::Each(chooser) => Casting::Each(Arc::clone(chooser) as _),
        }
    }

    fn speaker(&self, schema: Option<String>) -> Speaker {
        let (name, identity) = match self {
            Self::Same(ready) => (ready.name.clone(), ready.identity.clone()),
            Self::Each(_) => ("a worker for every item".to_owned(), String::new()),
        };
        Speaker { name, identity, schema }
    }

    async fn close(&self) {
        match self {
            Self::Same(ready) => ready.close().await,
            Self::Each(chooser) => chooser.close().await,
        }
    }
}

/// Closes the turnstile however a batch ends, dropped ones included, so that the reader goes.
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
        let staff = match chosen {
            Chosen::Function(work) => {
                let encode = codec.map(|(encode, _)| encode);
                let model = FunctionModel { work, shelf: Arc::clone(&shelf), encode };
                let crew = function_crew(Arc::new(model), encode.is_some())?;
                let name = "function".to_owned();
                Staff::Same(Ready { crew: Arc::new(crew), name, identity: String::new(), given: Vec::new() })
            }
            Chosen::Same(worker) => Staff::Same(scene(&settings, &control, &schema).ready(&worker).await?),
            Chosen::Each(choose) => {
                let scene = scene(&settings, &control, &schema);
                Staff::Each(Arc::new(Chooser::new(choose, Arc::clone(&shelf), scene)))
            }
            Chosen::Nobody => return Err(nobody()),
        };
        let worker = Worker {
            finish: Some(Arc::new(OutputMap { output, decode, counts, shelf: Arc::clone(&shelf) })),
            answers: answers(&settings, &staff, &control)?,
            ..settings
                .work
                .worker(staff.casting(), Arc::new(PromptMap { prompt: asks, shelf: Arc::clone(&shelf) }))
        };
        let speaker = staff.speaker(schema.as_ref().map(ToString::to_string));
        let begun = begin(settings.ledger.take(), &settings.work, speaker).await;
        let ended = match begun {
            Ok(begun) => {
                carry_out(Parts { items, naming, shelf, worker, begun }, &settings, &control, &turnstile)
                    .await
            }
            Err(problem) => Err(problem),
        };
        // However it ended, nothing that was started for it is left.
        staff.close().await;
        let end = ended?;
        let items = total.unwrap_or_else(|| turnstile.taken()).max(turnstile.taken());
        let counts = *collector.counts();
        Ok(Driven { report: BatchReport::new(end, &counts, items), items })
    }

    /// Finds mistakes before anything of the program is called.
    fn check(&self) -> Result<(), Problem> {
        let wrong = |what: &str, hint: &str| Err(Problem::new(ProblemCode::Usage, what).hint(hint));
        let Settings { concurrency, batch_size, ledger, work, .. } = &self.settings;
        if *concurrency == Some(0) || *batch_size == Some(0) {
            return wrong("nothing can be done with 0 items at once", "work on 1 at least");
        }
        let is_function = match &self.chosen {
            Chosen::Nobody => return Err(nobody()),
            Chosen::Function(_) => true,
            Chosen::Same(_) | Chosen::Each(_) => false,
        };
        if !is_function && self.prompt.is_none() {
            return wrong("nobody says what is asked about an item", "say it with `Batch::prompt`");
        }
        if is_function && ledger.is_some() && self.id.is_none() {
            return wrong("nobody says how items are known again", "name them with `Batch::id`");
        }
        if is_function && (work.budget.any() || work.agents.row_budget.any()) {
            return wrong(
                "what a function spends is not known, so it cannot be limited",
                "implement `Model` for it and use `Worker::own`",
            );
        }
        if work.cache.is_some() && !matches!(self.chosen, Chosen::Same(_)) {
            return wrong("a cache needs one worker for all items", "use `Batch::worker`");
        }
        Ok(())
    }
}

fn nobody() -> Problem {
    Problem::new(ProblemCode::Usage, "nobody works on the items")
        .hint("name a worker with `Batch::worker`, `worker_fn` or `worker_for`")
}

fn control(settings: &Settings, observer: Arc<dyn Observer>) -> Control {
    Control {
        observer,
        notice: settings.notice.clone().unwrap_or_else(|| Arc::new(|_| {})),
        stop: settings.stop.child(),
        limits: settings.limits.clone(),
    }
}

fn scene(settings: &Settings, control: &Control, schema: &Option<serde_json::Value>) -> Scene {
    Scene {
        work: settings.work.clone(),
        http: HttpClient::new(&environment),
        control: control.clone(),
        schema: schema.clone(),
    }
}

/// Opens the cache, where one is wanted.
fn answers<T, A, U>(
    settings: &Settings,
    staff: &Staff<T, A, U>,
    control: &Control,
) -> Result<Option<Answers>, Problem> {
    match (&settings.work.cache, staff) {
        (Some(folder), Staff::Same(ready)) => cached(folder, ready.identity.clone(), control).map(Some),
        _ => Ok(None),
    }
}

/// What a plan is made of, besides what the settings say.
struct Parts<T, A, U> {
    items: Items<T>,
    naming: Naming<T>,
    shelf: Arc<Shelf<T, A, U>>,
    worker: Worker,
    begun: Begun,
}

/// Hands on what a stream gives while there is room for it; a panic is the last that it gives.
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

/// Carries the plan out, and feeds it from a stream where items come from one.
async fn carry_out<T, A, U>(
    parts: Parts<T, A, U>,
    settings: &Settings,
    control: &Control,
    turnstile: &Arc<Turnstile>,
) -> Result<RunEnd, Problem>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    let Parts { items, naming, shelf, worker, begun } = parts;
    let Begun { run, ledger, resume, spent, held } = begun;
    let (pull, pump) = match items {
        Items::Iterator(iterator) => (Pull::Iterator(iterator), None),
        Items::Rows(source, make) => (Pull::Rows(source, make), None),
        Items::Stream(stream) => {
            let (sender, receiver) = mpsc::channel(WAITING_ITEMS);
            let pump = pump(stream, sender);
            (Pull::Channel(receiver), Some(pump.boxed()))
        }
    };
    let is_named = !matches!(naming, Naming::Place);
    let id_check = if matches!(naming, Naming::Own(_)) { IdCheck::WhileReading } else { IdCheck::Done };
    let turnstile = Arc::clone(turnstile);
    let source = ItemSource { pull, naming, shelf, turnstile, number: 0, pulled: Vec::new() };
    let plan = Plan {
        run,
        source: Box::new(source),
        selector: Selector::new(&Selection::default(), None)?,
        ids: IdRule { field: is_named.then(|| ID_FIELD.into()) },
        id_check,
        resume,
        worker,
        parallel: settings.work.parallel.ceiling(),
        stop_rules: settings.work.stop_rules,
        budget: Budget::new(settings.work.budget, spent),
        ledger,
        sinks: Sinks::default(),
        observer: Arc::clone(&control.observer),
        stop: control.stop.clone(),
    };
    let running = Box::pin(rowmill_engine::run(plan));
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
    if let Some((folder, lock)) = held {
        if let Ok(end) = &end {
            settle(&folder, end.spent);
        }
        folder.tidy();
        drop(lock);
    }
    end
}
