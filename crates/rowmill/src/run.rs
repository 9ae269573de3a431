//! The one way to start a run.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::limits::RateFlags;
use rowmill_core::ports::{Dataset, RowSource};
use rowmill_core::redact::Redactor;
use rowmill_core::run_header::RunHeader;
use rowmill_core::select::IdRule;
use rowmill_data::output::OutputFile;
use rowmill_engine::{Casting, Crew, Plan, ReadingThread, RunEnd, StopCause, Worker};
use rowmill_http::HttpClient;
use rowmill_store::file::WorkFolder;
use rowmill_types::{Problem, ProblemCode};

use crate::agents::{self, Stage};
use crate::answers::{AnswersEnd, answers};
use crate::begin::{Begun, OpenAnswers, begin, give_up, sinks};
use crate::columns::{read_columns, same_prompt_text, wanted_columns};
use crate::control::{Control, Notice};
use crate::environment::Environment;
use crate::files::{check_attached, files, kept_apart};
use crate::finish::{Ended, finish};
use crate::first_rows::first_rows;
use crate::full_paths::full_path_text;
use crate::ids::NumberedInput;
use crate::inputs::{self, warnings};
use crate::notices::{ResumedRows, tell_beginning, tell_end, tell_made_and_changed};
use crate::paths::{self, AttachedFiles, MadeFolders};
use crate::prepare;
use crate::report::RunReport;
use crate::resume::{Beginning, NewRun};
use crate::rows::selected_counts;
use crate::run_clock::RunClock;
use crate::run_place::RunPlace;
use crate::spec::RunSpec;
use crate::texts::{self, Texts};
use crate::traces::{self, Traced};
use crate::work::PlanParts;

/// Runs a spec to its end, from files to files, as `rowmill run` does.
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
/// The run could not start; nothing was sent and none of the user's files was changed. Later problems
/// are in the report.
pub async fn run(mut spec: RunSpec, control: &Control) -> Result<RunReport, Problem> {
    let control = &Control { limits: control.limits.for_run(), ..control.clone() };
    let started = jiff::Timestamp::now();
    let run = run_id(started);
    let folder = work_folder(&spec, &run, &control.environment);
    prepare::check_paths(&spec, &folder)?;
    let clock = RunClock::start(&spec, control);
    let http = control.environment.http_client();
    let mut texts = clock.unless_stopped(Box::pin(texts::load(&spec, &http, control))).await?;
    let model = agents::model(&spec, &mut texts, &http, control)?;
    clock.unless_stopped(Box::pin(inputs::fetch(&mut spec, control))).await?;
    let writes = paths::writes(&spec, &folder);
    if let Some(cards) = &texts.cards {
        paths::check_apart(&paths::card_files(&spec, cards, &control.environment), &writes, None)?;
    }
    let made = MadeFolders::make(&writes)?.for_run(&run, &folder);
    // Created here and nowhere else: a thread that is still running after the run was stopped must not
    // create it again.
    WorkFolder::open(&folder)?;
    let wanted = wanted_columns(&spec, &texts.template);
    let columns = read_columns(&spec, &texts.template, &wanted);
    let looked_at = blocking(spec, {
        let folder = folder.clone();
        let (warn, environment) = (warnings(control), control.environment.clone());
        move |spec| {
            let rows = prepare::rows(spec, &folder, (&warn, &environment), &wanted)?;
            let attached = check_attached(spec, &*rows.dataset, (&folder, &writes))?;
            let source = first_rows(&rows, &spec.work.stop_rules, columns)?;
            Ok((rows, source, attached))
        }
    });
    let (mut spec, (rows, source, attached)) = clock.unless_stopped(looked_at).await?;
    if let Some(text) = same_prompt_text(&spec, &texts.template, &rows) {
        (control.notice)(Notice::warning(text));
    }
    // Tools are started only after all other checks have passed.
    let stage = match model {
        Some(stage) => stage,
        // Servers may take a minute to start, and stopping the run must not wait for that.
        None => {
            let staged = Box::pin(agents::of_cards(&spec, &mut texts, &http, control));
            clock.unless_stopped(staged).await?
        }
    };
    spec.work.stop_rules.deadline = clock.time_left();
    let tools = stage.tools.clone();
    let schema_model = texts.schema_model.clone();
    let recorder = stage.recorder.clone();
    let prepared = Prepared { started, run, folder, made, http, texts, rows, source, attached, stage };
    let done = Box::pin(on_stage(spec, control, prepared)).await;
    // However the run ended, everything that was started for it is closed.
    if let Some(tools) = tools {
        tools.host.close().await;
    }
    if let Some(schema_model) = schema_model {
        schema_model.close().await;
    }
    if let Some(problem) = recorder.and_then(|recorder| recorder.problem()) {
        (control.notice)(Notice::warning(problem.message));
    }
    done
}

/// A run with everything that it needs, ready to start.
struct Prepared {
    started: jiff::Timestamp,
    run: String,
    folder: PathBuf,
    made: MadeFolders,
    http: HttpClient,
    texts: Texts,
    rows: prepare::Rows,
    source: Box<dyn RowSource>,
    attached: AttachedFiles,
    stage: Stage,
}

/// Runs with everything that was set up.
async fn on_stage(spec: RunSpec, control: &Control, prepared: Prepared) -> Result<RunReport, Problem> {
    let Prepared { started, run, folder, made, http, texts, mut rows, source, attached, stage } = prepared;
    let Stage { cast, voices, tools, model, mut identity, rules, speakers, redactor, .. } = stage;
    // The name appears in messages and files; the models have their own copy.
    let model = redactor.redact(&model).into_owned();
    // A kept answer is the value that the user's code returned.
    identity.extend(texts.schema_code.iter().map(|code| format!(" checked by {code}")));
    let files = files(&spec, &*rows.dataset, rules, (&http, &control.environment))?;
    let files = files.map(|files| kept_apart(&spec, &folder, files, &attached)).transpose()?;
    let reads = paths::made_from(&spec, texts.cards.as_ref(), &control.environment);
    let mut new = new_run(&spec, &mut rows, (&texts, &redactor, reads), (&run, started, &model))?;
    note_attached(&mut new.header, &attached);
    let place = RunPlace::open(&folder)?;
    let warn = warnings(control);
    let open_answers: OpenAnswers = Box::new(|spec, folder| answers(spec, folder, identity, warn));
    let (spec, (resumed, begun)) = begin_aside(spec, &place, &rows, (new, open_answers)).await?;
    let Begun { output, lock, traces, answers, beginning } = begun;
    let found = beginning.found_before(&spec);
    let Beginning { mut header, known_by, ledger, resume, telemetry, .. } = beginning;
    let Beginning { settings_unknown, changes, spent, .. } = beginning;
    let opened = sinks(&spec, output.as_ref(), telemetry).and_then(|mut sinks| {
        let traced = Traced { folder: traces, run: &header.run, speakers, redactor: redactor.clone() };
        Ok((traces::begin(&spec, traced, &mut sinks)?, sinks))
    });
    let (output, (traces, sinks)) = opened_or_refused(opened, output, &made)?;
    tell_made_and_changed(control, made.keep(), &changes, &known_by);
    tell_beginning(control, resumed, settings_unknown, spent);
    let output = output.map(Arc::new);
    let locks: Arc<dyn Any + Send + Sync> = Arc::new((lock, output.clone()));
    let worker = Worker {
        attachments: files,
        answers,
        // Rows with their input and rows without it cannot be in one table.
        include_input: header.keeps_input,
        traces,
        redactor: redactor.clone(),
        vocabulary: control.vocabulary,
        ..spec.work.worker(Casting::Same(Arc::new(Crew { cast, voices, tools })), Arc::new(texts.template))
    };
    let parts = PlanParts {
        run: header.run.clone(),
        source,
        reading: ReadingThread::of(&*rows.dataset),
        selector: rows.selector,
        ids: known_by.ids(rows.ids),
        id_check: rows.id_check,
        resume,
        worker,
        spent,
        ledger: ledger.clone(),
    };
    let plan = Plan { sinks, locks: Some(locks.clone()), ..spec.work.plan(parts, control) };
    let (end, limits) = carry_out(plan, &*rows.dataset, control).await?;
    tell_end(control, (&spec, &*rows.input), &end, &redactor);
    note_attached(&mut header, &attached);
    let (agent, variables) = (texts.cards.map(|cards| cards.worker), texts.variables);
    let resumed = resumed.map(|rows| rows.counts());
    let ended =
        Ended { end, model, agent, started, variables, header, known_by, found, resumed, limits, ledger };
    let report = finish_aside(spec, control, (place, output), ended).await?;
    drop(locks);
    Ok(report)
}

/// Finishes the run on a blocking thread.
async fn finish_aside(
    spec: RunSpec,
    control: &Control,
    (place, output): (RunPlace, Option<Arc<OutputFile>>),
    ended: Ended,
) -> Result<RunReport, Problem> {
    let (environment, words) = (control.environment.clone(), control.vocabulary);
    let ending = move |spec: &RunSpec| finish(spec, (&place, &environment, words), output, ended);
    let (_, report) = blocking(spec, ending).await?;
    Ok(report)
}

/// Starts the run on a blocking thread, including the state that a resume continues from.
async fn begin_aside(
    spec: RunSpec,
    place: &RunPlace,
    rows: &prepare::Rows,
    (new, open_answers): (NewRun, OpenAnswers),
) -> Result<(RunSpec, (Option<ResumedRows>, Begun)), Problem> {
    let (place, dataset, ids) = (place.clone(), Arc::clone(&rows.dataset), rows.ids.clone());
    let beginning = move |spec: &RunSpec| {
        let begun = begin(spec, &place, new, open_answers)?;
        Ok((resumed_rows(spec, &*dataset, ids, &begun.beginning), begun))
    };
    let (spec, (resumed, mut begun)) = blocking(spec, beginning).await?;
    rows.compare_with(&mut begun.beginning.resume);
    Ok((spec, (resumed, begun)))
}

/// Records which files were attached to the rows of the run, as far as they were seen.
fn note_attached(header: &mut RunHeader, attached: &AttachedFiles) {
    header.reads.extend(paths::kept_paths(attached.paths()));
    header.reads.sort_unstable();
    header.reads.dedup();
}

/// The state of the rows that a resume continues from.
fn resumed_rows(
    spec: &RunSpec,
    dataset: &dyn Dataset,
    ids: IdRule,
    beginning: &Beginning,
) -> Option<ResumedRows> {
    if !spec.existing.resumes() {
        return None;
    }
    let Beginning { resume, known_by, .. } = beginning;
    let all = resume.counts();
    let selected = match spec.selects_all() {
        true => Some(all),
        false if !dataset.rereadable() => None,
        // What cannot be read now is reported when it is worked on.
        false => selected_counts(dataset, &known_by.ids(ids), &spec.selection, resume).ok().flatten(),
    };
    Some(ResumedRows { all, selected })
}

/// Masks secrets in the problem that stopped a run: it appears in the summary, too.
fn mask(problem: &mut Problem, redactor: &Redactor) {
    let texts = [Some(&mut problem.message), problem.cause.as_mut(), problem.hint.as_mut()];
    for text in texts.into_iter().flatten() {
        *text = text.edited(|text| redactor.redact(text).into_owned());
    }
}

/// The description of the run for its work folder and for a resume.
fn new_run(
    spec: &RunSpec,
    rows: &mut prepare::Rows,
    (texts, redactor, reads): (&Texts, &Redactor, Vec<String>),
    (run, started, model): (&str, jiff::Timestamp, &str),
) -> Result<NewRun, Problem> {
    let mut by_number = prepare::fingerprint_by_number(spec, rows, model, texts)?;
    by_number.query = by_number.query.map(|query| redactor.redact(&query).into_owned());
    let fingerprint = prepare::fingerprint(&by_number, &rows.ids);
    let header = RunHeader::new(run, &seconds(started), &fingerprint, None);
    let header = RunHeader {
        schema: texts.schema_text.clone(),
        texts: texts.kept(redactor),
        reads,
        error_output: spec.error_output.as_deref().map(full_path_text),
        keeps_input: spec.keeps_input(),
        ..header
    };
    let recording = std::mem::take(&mut rows.recording);
    let header = recording.name_in(header);
    let input = NumberedInput::of(spec, rows, by_number)?;
    Ok(NewRun { header, input, recording })
}

/// Carries out a plan, deletes what its models stored at their providers, and shows the notices about
/// the input. Also returns the limits of the first model, as far as known.
async fn carry_out(
    plan: Plan,
    dataset: &dyn Dataset,
    control: &Control,
) -> Result<(RunEnd, RateFlags), Problem> {
    let (lanes, redactor) = (plan.worker.casting.lanes(), plan.worker.redactor.clone());
    let answers = AnswersEnd::of(plan.worker.answers.as_ref());
    let mut end = rowmill_engine::run(plan).await?;
    answers.wait().await?;
    if let Some(StopCause::Problem(problem)) = &mut end.stopped {
        mask(problem, &redactor);
    }
    for lane in &lanes {
        lane.model.close().await;
    }
    if let Some(text) = dataset.notice() {
        (control.notice)(Notice::info(text));
    }
    let limits = lanes.first().map(|lane| lane.gate.known()).unwrap_or_default();
    Ok((end, limits))
}

/// Removes what was created for a run that cannot start.
fn opened_or_refused<T>(
    opened: Result<T, Problem>,
    output: Option<OutputFile>,
    made: &MadeFolders,
) -> Result<(Option<OutputFile>, T), Problem> {
    match opened {
        Ok(opened) => Ok((output, opened)),
        Err(problem) => {
            made.remove_new_files();
            give_up(output);
            Err(problem)
        }
    }
}

/// The work folder: beside the output, or where the user sets it; for standard output in the folder for
/// temporary files, because paid answers must be on disk somewhere.
fn work_folder(spec: &RunSpec, run: &str, environment: &Environment) -> PathBuf {
    spec.work_folder().unwrap_or_else(|| environment.temp_folder().join(format!("rowmill-{run}")))
}

/// Runs blocking code on a blocking thread, so that Ctrl-C is handled meanwhile.
pub(crate) async fn blocking<T: Send + 'static>(
    spec: RunSpec,
    work: impl FnOnce(&RunSpec) -> Result<T, Problem> + Send + 'static,
) -> Result<(RunSpec, T), Problem> {
    let outcome = on_thread(move || work(&spec).map(|value| (spec, value)));
    outcome.await
}

/// Runs blocking code on a blocking thread.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::new(ProblemCode::Internal, "a worker thread failed").cause(error))?
}

/// The id of a run: its start time, with enough of the process id to tell two runs apart.
pub(crate) fn run_id(started: jiff::Timestamp) -> String {
    let noise =
        xxhash_rust::xxh3::xxh3_64(format!("{}-{}", started.as_nanosecond(), std::process::id()).as_bytes());
    format!("{}-{:08x}", started.strftime("%Y%m%dT%H%M%SZ"), noise as u32)
}

/// A time in UTC with whole seconds.
pub(crate) fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
