//! The one way to start a run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::limits::{Budget, RateFlags, Spend};
use rowmill_core::ports::{Dataset, Event, Observer};
use rowmill_data::output::{Claim, LineSink, OutputFile, Part};
use rowmill_data::traces::TraceFolder;
use rowmill_engine::{Casting, Crew, Limits, Plan, RunEnd, Sinks, Stop, Worker};
use rowmill_http::HttpClient;
use rowmill_store::file::{FolderLock, Header, WorkFolder};
use rowmill_types::{Problem, ProblemCode};

use crate::agents::{self, Stage};
use crate::answers::answers;
use crate::environment::environment;
use crate::files::files;
use crate::finish::{Ended, finish};
use crate::inputs::{self, warnings};
use crate::prepare;
use crate::report::RunReport;
use crate::resume::{Beginning, fresh, resumed};
use crate::spec::{Existing, Output, RunSpec};
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
}

/// Hears nothing.
struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &Event<'_>) {}
}

impl Control {
    /// Nobody watches or stops the run, and it has limits of its own.
    #[must_use]
    pub fn quiet() -> Self {
        Self {
            observer: Arc::new(Nobody),
            notice: Arc::new(|_| {}),
            stop: Stop::default(),
            limits: Limits::default(),
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
    let (spec, rows) = blocking(spec, {
        let folder = folder.clone();
        let warn = warnings(control);
        move |spec| prepare::rows(spec, &folder, &warn).inspect_err(|_| WorkFolder::take_back(&folder))
    })
    .await?;
    // Tools are started once nothing else can be wrong.
    let stage = match model {
        Some(stage) => stage,
        None => {
            staged(&spec, &mut texts, &http, control).await.inspect_err(|_| WorkFolder::take_back(&folder))?
        }
    };
    let tools = stage.tools.clone();
    let recorder = stage.recorder.clone();
    let prepared = Prepared { started, run, folder, http, texts, rows, stage };
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

/// Starts the agents. Servers may take a minute to start, and whoever stops the run then does not
/// want to wait for it.
async fn staged(
    spec: &RunSpec,
    texts: &mut Texts,
    http: &HttpClient,
    control: &Control,
) -> Result<Stage, Problem> {
    tokio::select! {
        stage = Box::pin(agents::of_cards(spec, texts, http, control)) => stage,
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
    http: HttpClient,
    texts: Texts,
    rows: prepare::Rows,
    stage: Stage,
}

/// Runs with everything that was made ready.
async fn on_stage(spec: RunSpec, control: &Control, prepared: Prepared) -> Result<RunReport, Problem> {
    let Prepared { started, run, folder, http, texts, rows, stage } = prepared;
    let Stage { cast, voices, tools, model, identity, rules, speakers, secrets, .. } = stage;
    let files = files(&spec, &*rows.dataset, rules, &http).inspect_err(|_| WorkFolder::take_back(&folder))?;
    let fingerprint = prepare::fingerprint(&spec, &rows, &model, &texts)?;
    let header = Header::new(&run, &seconds(started), &fingerprint, None);
    let header = Header { schema: texts.schema_text.clone(), ..header };
    let folder = WorkFolder::open(&folder)?;
    let (spec, Begun { output, _lock, traces, beginning }) = blocking(spec, {
        let folder = folder.clone();
        move |spec| begin(spec, &folder, header)
    })
    .await?;
    let Beginning { header, ledger, resume, telemetry, settings_unknown, spent } = beginning;
    let answers = answers(&spec, &folder, identity, control)?;
    let resumed = spec.existing.resumes().then(|| resume.counts());
    tell_beginning(control, resumed, settings_unknown, spent);
    let mut sinks = sinks(&spec, output.as_ref(), telemetry)?;
    let traced = Traced { folder: traces, run: &header.run, speakers, secrets };
    let traces = traces::begin(&spec, traced, &mut sinks)?;
    let casting = Casting::Same(Arc::new(Crew { cast, voices, tools }));
    let worker = Worker {
        attachments: files,
        answers,
        include_input: spec.keeps_input(),
        traces,
        ..spec.work.worker(casting, Arc::new(texts.template))
    };
    let plan = Plan {
        run: run.clone(),
        source: rows.dataset.open()?,
        selector: rows.selector,
        ids: rows.ids,
        id_check: rows.id_check,
        resume,
        worker,
        parallel: spec.work.parallel.ceiling(),
        stop_rules: spec.work.stop_rules,
        budget: Budget::new(spec.work.budget, spent),
        ledger: Box::new(ledger),
        sinks,
        observer: control.observer.clone(),
        stop: control.stop.clone(),
    };
    let (end, limits) = carry_out(plan, &*rows.dataset, control).await?;
    let (agent, variables) = (texts.cards.map(|cards| cards.worker), texts.variables);
    let ended = Ended { end, run, model, agent, started, variables, header, resumed, limits };
    tell_table(control, &spec.output);
    let (_, report) = blocking(spec, move |spec| finish(spec, &folder, output, ended)).await?;
    Ok(report)
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

/// What is ours for the length of the run, and what it begins from.
struct Begun {
    output: Option<OutputFile>,
    _lock: FolderLock,
    traces: Option<TraceFolder>,
    beginning: Beginning,
}

/// Makes the output, the work folder and the folder of traces ours and finds out what there is to
/// go on with.
fn begin(spec: &RunSpec, folder: &WorkFolder, header: Header) -> Result<Begun, Problem> {
    let output = claim(spec, folder)?;
    let begun = folder.lock().and_then(|lock| {
        let traces = traces::claim(spec)?;
        Ok((lock, traces, beginning(spec, folder, output.as_ref(), header)?))
    });
    match begun {
        Ok((_lock, traces, beginning)) => Ok(Begun { output, _lock, traces, beginning }),
        Err(problem) => {
            if let Some(output) = output.filter(|_| spec.existing == Existing::Refuse) {
                // It is new and empty, and would only be in the way of the next run.
                output.discard();
            }
            Err(problem)
        }
    }
}

/// Makes the file of envelopes ours, if there is one.
fn claim(spec: &RunSpec, folder: &WorkFolder) -> Result<Option<OutputFile>, Problem> {
    match &spec.output {
        Output::File(path) => OutputFile::claim(path, prepare::claim(spec.existing)).map(Some),
        Output::Stdout => Ok(None),
        // What may be done with the table was checked; its envelopes follow.
        Output::Table(_) => {
            let path = WorkFolder::envelopes_in(folder.path());
            OutputFile::claim(&path, Claim::Resume).map(Some).map_err(|problem| match problem.code {
                ProblemCode::OutputBusy => {
                    let message = format!("another run is writing to `{}`", spec.output.name());
                    Problem { message, ..problem }
                }
                _ => problem,
            })
        }
    }
}

fn beginning(
    spec: &RunSpec,
    folder: &WorkFolder,
    output: Option<&OutputFile>,
    header: Header,
) -> Result<Beginning, Problem> {
    if spec.existing.resumes() {
        return resumed(spec, folder, output, header);
    }
    if let Some(output) = output {
        output.cut(0)?;
    }
    if !matches!(spec.output, Output::Table(_)) {
        // They are of an older run, whose output was a table.
        folder.forget_envelopes();
    }
    fresh(spec, folder, header)
}

fn sinks(spec: &RunSpec, output: Option<&OutputFile>, telemetry: Option<LineSink>) -> Result<Sinks, Problem> {
    let mut sinks = Sinks::default();
    match output {
        Some(file) => sinks.ordered.push(Box::new(LineSink::append(file.path(), Part::Envelopes, u64::MAX)?)),
        None => sinks.ordered.push(Box::new(LineSink::stdout(Part::Envelopes))),
    }
    if let Some(path) = &spec.error_output {
        // Standard output gets every envelope of a resumed run again, and so do the errors.
        let appends = spec.existing.resumes() && output.is_some();
        let keep = if appends { u64::MAX } else { 0 };
        sinks.ordered.push(Box::new(LineSink::append(path, Part::Failures, keep)?));
    }
    if let Some(telemetry) = telemetry {
        sinks.arrival.push(Box::new(telemetry));
    }
    Ok(sinks)
}

fn tell_beginning(
    control: &Control,
    resumed: Option<rowmill_core::resume::ResumeCounts>,
    settings_unknown: bool,
    spent: Spend,
) {
    if let Some(counts) = resumed {
        (control.notice)(Notice::Info(format!(
            "resuming: {} rows are done and skipped, {} failed rows are tried again, {} rows with unknown outcome are sent again",
            counts.done, counts.failed, counts.unknown
        )));
        if counts.with_turns > 0 {
            (control.notice)(Notice::Info(format!(
                "{} of them go on after their last finished turn",
                counts.with_turns
            )));
        }
        if counts.undecided > 0 {
            (control.notice)(Notice::Warning(format!(
                "{} rows are left as they are: a tool of theirs may have run; `--retry-unknown` works on them again",
                counts.undecided
            )));
        }
    }
    if spent.cost > rowmill_types::Money::ZERO {
        (control.notice)(Notice::Info(format!("spent before: {}", spent.cost)));
    }
    if settings_unknown {
        (control.notice)(Notice::Warning(
            "the earlier run's work folder is gone, so a changed model, prompt or schema cannot be noticed"
                .into(),
        ));
    }
}

/// A large table takes its time, and nothing else is seen to happen then.
fn tell_table(control: &Control, output: &Output) {
    if matches!(output, Output::Table(_)) {
        (control.notice)(Notice::Info(format!("writing `{}`", output.name())));
    }
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
