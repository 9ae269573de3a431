//! The one way to start a run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::limits::{Budget, RateFlags};
use rowmill_core::ports::{Dataset, Event, Observer, RowSource};
use rowmill_core::redact::Redactor;
use rowmill_data::output::OutputFile;
use rowmill_engine::{Casting, Crew, Limits, Plan, RunEnd, Stop, Worker};
use rowmill_http::HttpClient;
use rowmill_store::file::{Header, WorkFolder};
use rowmill_tools::Person;
use rowmill_types::{Problem, ProblemCode};

use crate::agents::{self, Stage};
use crate::answers::answers;
use crate::begin::{Begun, OpenAnswers, begin, give_up, sinks};
use crate::budget_notices;
use crate::columns::{same_prompt_text, wanted_columns};
use crate::environment::environment;
use crate::files::{check_attached, files, kept_apart};
use crate::finish::{Ended, finish};
use crate::first_rows::first_rows;
use crate::ids::NumberedInput;
use crate::inputs::{self, warnings};
use crate::notices::{tell_beginning, tell_end, tell_made_and_changed};
use crate::paths::{self, MadeFolders};
use crate::prepare;
use crate::report::RunReport;
use crate::resume::{Beginning, NewRun};
use crate::spec::RunSpec;
use crate::texts::{self, Texts};
use crate::traces::{self, Traced};

/// How a run is watched and stopped.
#[derive(Clone)]
pub struct Control {
    /// Hears of everything that happens.
    pub observer: Arc<dyn Observer>,
    /// Is told what a person should know.
    pub notice: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Stops the run.
    pub stop: Stop,
    /// The limits that it keeps to; runs with clones of one value share them.
    pub limits: Limits,
    /// Who is present and can sign in to MCP servers; where nobody is, a server that asks for a
    /// sign-in is a problem.
    pub person: Option<Person>,
}

/// Hears nothing.
struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &Event<'_>) {}
}

impl Control {
    /// Nobody watches or stops the run or is present, and it has limits of its own.
    #[must_use]
    pub fn quiet() -> Self {
        Self {
            observer: Arc::new(Nobody),
            notice: Arc::new(|_| {}),
            stop: Stop::default(),
            limits: Limits::default(),
            person: None,
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::quiet()
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// Something that a person should know while the run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// What is going on.
    Info(String),
    /// What may not be as it should.
    Warning(String),
}

/// Runs a spec to its end: files in, files out, as `rowmill run` does.
///
/// ```
/// use rowmill::{Control, InputSpec, Location, Output, Prompt, RunSpec, run};
///
/// # let folder = tempfile::tempdir()?;
/// # let (rows, answers) = (folder.path().join("rows.jsonl"), folder.path().join("answers.jsonl"));
/// # std::fs::write(&rows, "{\"name\": \"Ada\"}\n{\"name\": \"Bo\"}\n")?;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let input = InputSpec::new(Location::File(rows), None);
/// let mut spec = RunSpec::new(input, Output::File(answers.clone()));
/// spec.work.model = "passthrough".into();
/// spec.prompt = Prompt::Inline("Hello {{name}}!".into());
/// let report = run(spec, &Control::quiet()).await?;
///
/// assert_eq!(report.exit, rowmill::ExitCode::Ok);
/// let first = std::fs::read_to_string(&answers)?;
/// assert!(first.starts_with(r#"{"id":1,"row_number":1,"ok":true,"result":"Hello Ada!""#), "{first}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The run could not start; nothing was sent and nothing of the user's was changed.
/// Whatever happens later is told by the report.
pub async fn run(mut spec: RunSpec, control: &Control) -> Result<RunReport, Problem> {
    let started = jiff::Timestamp::now();
    let run = run_id(started);
    let folder = work_folder(&spec, &run);
    prepare::check_paths(&spec, &folder)?;
    let http = HttpClient::new(&environment);
    let mut texts = texts::load(&spec, &http, control).await?;
    let model = agents::model(&spec, &mut texts, &http, control)?;
    inputs::fetch(&mut spec, control).await?;
    let writes = paths::writes(&spec, &folder);
    if let Some(cards) = &texts.cards {
        paths::check_apart(&paths::card_files(&spec, cards), &writes, None)?;
    }
    let made = MadeFolders::make(&writes)?.for_run(&run, &folder);
    let wanted = wanted_columns(&spec, &texts.template);
    let looked_at = blocking(spec, {
        let folder = folder.clone();
        let warn = warnings(control);
        move |spec| {
            let rows = prepare::rows(spec, &folder, &warn, &wanted)?;
            check_attached(spec, &*rows.dataset, (&folder, &writes))?;
            let source = first_rows(&rows, &spec.work.stop_rules)?;
            Ok((rows, source))
        }
    });
    let (spec, (rows, source)) = unless_stopped(looked_at, control).await?;
    if let Some(text) = same_prompt_text(&spec, &texts.template, &rows) {
        (control.notice)(Notice::Warning(text));
    }
    // Tools are started once nothing else can be wrong.
    let stage = match model {
        Some(stage) => stage,
        // Servers may take a minute to start, and whoever stops the run then does not want to wait for it.
        None => {
            unless_stopped(Box::pin(agents::of_cards(&spec, &mut texts, &http, control)), control).await?
        }
    };
    let tools = stage.tools.clone();
    let recorder = stage.recorder.clone();
    let prepared = Prepared { started, run, folder, made, http, texts, rows, source, stage };
    let done = Box::pin(on_stage(spec, control, prepared)).await;
    // However it ended, nothing that was started for it is left.
    if let Some(tools) = tools {
        tools.host.close().await;
    }
    if let Some(problem) = recorder.and_then(|recorder| recorder.problem()) {
        (control.notice)(Notice::Warning(problem.message));
    }
    done
}

/// Does what comes before the first row, unless the run is stopped meanwhile.
async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, Problem>>,
    control: &Control,
) -> Result<T, Problem> {
    tokio::select! {
        done = work => done,
        () = control.stop.drained() => {
            let message = "interrupted before the first row; nothing was sent";
            Err(Problem::new(ProblemCode::Interrupted, message).hint("give the same command again"))
        }
    }
}

/// A run of which everything is known that it needs.
struct Prepared {
    started: jiff::Timestamp,
    run: String,
    folder: PathBuf,
    made: MadeFolders,
    http: HttpClient,
    texts: Texts,
    rows: prepare::Rows,
    source: Box<dyn RowSource>,
    stage: Stage,
}

/// Runs with everything that was made ready.
async fn on_stage(spec: RunSpec, control: &Control, prepared: Prepared) -> Result<RunReport, Problem> {
    let Prepared { started, run, folder, made, http, texts, mut rows, source, stage } = prepared;
    let Stage { cast, voices, tools, model, identity, rules, speakers, redactor, .. } = stage;
    let files = files(&spec, &*rows.dataset, rules, &http)?;
    let files = files.map(|files| kept_apart(&spec, &folder, files)).transpose()?;
    let new = new_run(&spec, &mut rows, (&texts, &redactor), (&run, started, &model))?;
    let folder = WorkFolder::open(&folder)?;
    let (spec, Begun { output, lock, traces, answers, beginning }) = blocking(spec, {
        let (folder, warn) = (folder.clone(), warnings(control));
        let open_answers: OpenAnswers = Box::new(|spec, folder| answers(spec, folder, identity, warn));
        move |spec| begin(spec, &folder, new, open_answers)
    })
    .await?;
    let found = beginning.found_before(&spec);
    let Beginning { header, known_by, ledger, resume, telemetry, settings_unknown, changes, spent, .. } =
        beginning;
    let opened = sinks(&spec, output.as_ref(), telemetry).and_then(|mut sinks| {
        let traced = Traced { folder: traces, run: &header.run, speakers, redactor: redactor.clone() };
        Ok((traces::begin(&spec, traced, &mut sinks)?, sinks))
    });
    let (traces, sinks) = match opened {
        Ok(opened) => opened,
        Err(problem) => return Err(refused(output, &made, problem)),
    };
    tell_made_and_changed(control, made.keep(), &changes, &known_by);
    tell_beginning(control, found.counts, settings_unknown, spent);
    let worker = Worker {
        attachments: files,
        answers,
        include_input: spec.keeps_input(),
        traces,
        redactor: redactor.clone(),
        ..spec.work.worker(Casting::Same(Arc::new(Crew { cast, voices, tools })), Arc::new(texts.template))
    };
    let plan = Plan {
        run: run.clone(),
        source,
        selector: rows.selector,
        ids: known_by.ids(rows.ids),
        id_check: rows.id_check,
        resume,
        worker,
        parallel: spec.work.parallel.ceiling(),
        memory: rowmill_engine::ROW_MEMORY,
        stop_rules: spec.work.stop_rules,
        budget: Budget::new(spec.work.budget, spent),
        ledger: Box::new(ledger),
        sinks,
        observer: budget_notices::observer(&spec.work, control),
        stop: control.stop.clone(),
    };
    let (end, limits) = carry_out(plan, &*rows.dataset, control).await?;
    tell_end(control, &spec, &end, &redactor);
    let (agent, variables) = (texts.cards.map(|cards| cards.worker), texts.variables);
    let ended = Ended { end, run, model, agent, started, variables, header, known_by, found, limits };
    let (_, report) = blocking(spec, move |spec| finish(spec, &folder, output, ended)).await?;
    drop(lock);
    Ok(report)
}

/// What the run is, for its work folder and for a resume.
fn new_run(
    spec: &RunSpec,
    rows: &mut prepare::Rows,
    (texts, redactor): (&Texts, &Redactor),
    (run, started, model): (&str, jiff::Timestamp, &str),
) -> Result<NewRun, Problem> {
    let by_number = prepare::fingerprint_by_number(spec, rows, model, texts)?;
    let fingerprint = prepare::fingerprint(&by_number, &rows.ids);
    let header = Header::new(run, &seconds(started), &fingerprint, None);
    let header = Header {
        schema: texts.schema_text.clone(),
        texts: texts.kept(redactor),
        reads: paths::made_from(spec, texts.cards.as_ref()),
        ..header
    };
    let recording = std::mem::take(&mut rows.recording);
    let header = recording.name_in(header);
    Ok(NewRun { header, input: NumberedInput::of(spec, rows, by_number)?, recording })
}

/// Carries a plan out, gives back what its models keep at their providers, and tells what there
/// is to tell of the input. With the end come the limits of the first model, as far as known.
async fn carry_out(
    plan: Plan,
    dataset: &dyn Dataset,
    control: &Control,
) -> Result<(RunEnd, RateFlags), Problem> {
    let lanes = plan.worker.casting.lanes();
    let end = rowmill_engine::run(plan).await?;
    for lane in &lanes {
        lane.model.close().await;
    }
    if let Some(text) = dataset.notice() {
        (control.notice)(Notice::Info(text));
    }
    let limits = lanes.first().map(|lane| lane.gate.known()).unwrap_or_default();
    Ok((end, limits))
}

/// Takes back what was made for a run that cannot begin.
fn refused(output: Option<OutputFile>, made: &MadeFolders, problem: Problem) -> Problem {
    made.remove_new_files();
    give_up(output);
    problem
}

/// Beside the output, or where the user says; for standard output in the folder for
/// temporary files, because paid answers must be on disk somewhere.
fn work_folder(spec: &RunSpec, run: &str) -> PathBuf {
    spec.work_folder().unwrap_or_else(|| std::env::temp_dir().join(format!("rowmill-{run}")))
}

/// Runs blocking code on a thread for it, so that Ctrl-C is heard meanwhile.
pub(crate) async fn blocking<T: Send + 'static>(
    spec: RunSpec,
    work: impl FnOnce(&RunSpec) -> Result<T, Problem> + Send + 'static,
) -> Result<(RunSpec, T), Problem> {
    let done = tokio::task::spawn_blocking(move || {
        let outcome = work(&spec);
        (spec, outcome)
    });
    let (spec, outcome) = done
        .await
        .map_err(|error| Problem::new(ProblemCode::Internal, "a worker thread failed").cause(error))?;
    outcome.map(|value| (spec, value))
}

/// Names the run by its time, with enough of the process to tell two of them apart.
pub(crate) fn run_id(started: jiff::Timestamp) -> String {
    let noise =
        xxhash_rust::xxh3::xxh3_64(format!("{}-{}", started.as_nanosecond(), std::process::id()).as_bytes());
    format!("{}-{:08x}", started.strftime("%Y%m%dT%H%M%SZ"), noise as u32)
}

/// UTC with whole seconds.
pub(crate) fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
