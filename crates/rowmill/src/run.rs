//! The one way to start a run.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::limits::MinuteLimits;
use rowmill_core::ports::{Dataset, RowSource};
use rowmill_core::record::RedactedTraceFacts;
use rowmill_core::redact::Redactor;
use rowmill_core::resume::{ResumeCounts, ResumeExclusions};
use rowmill_core::run_header::RunHeader;
use rowmill_core::select::IdRule;
use rowmill_data::output::OutputFile;
use rowmill_engine::{
    AnswerCache, ReadingThread, RecordSinks, RowExecutionSetup, RowWorker, RunOutcome, RunSetup, StopCause,
    WorkerAssignment,
};
use rowmill_http::HttpClient;
use rowmill_store::file::WorkFolder;
use rowmill_types::{Problem, ProblemCode};

use crate::agents::{self, AgentSetup};
use crate::answer_cache::{AnswersEnd, open_answer_cache};
use crate::attachments::{check_attachment_paths, configured_attachments, guard_written_paths};
use crate::claim_files::{OpenAnswers, RunStart, claim_run_files, discard_empty_output, open_sinks};
use crate::columns::{read_columns, same_prompt_text, wanted_columns};
use crate::control::{RunControl, RunNotice};
use crate::environment::RunEnvironment;
use crate::finish::{EndedRun, finish_run};
use crate::first_rows::first_rows;
use crate::full_paths::full_path_text;
use crate::inputs::{self, warn_fn};
use crate::lane::{ChosenLane, check_no_jobs_out, choose_lane, forget_unpaid_jobs, run_in_rounds};
use crate::notices::{ResumedRows, notify_end, notify_folders_and_changes, notify_resume};
use crate::notify::{RunNotification, send_notification};
use crate::paths::{self, AttachedFiles, CreatedFolders};
use crate::prepare_input;
use crate::report::RunReport;
use crate::resume::{EarlierRun, NewRun, RunBeginning};
use crate::row_checks::selected_counts;
use crate::row_identity::NumberedInput;
use crate::run_clock::RunClock;
use crate::run_storage::RunStorage;
use crate::spec::RunSpec;
use crate::texts::{self, RunInputTexts};
use crate::traces::{self, TraceStart, TracedAgents};
use crate::work_spec::PlanParts;

/// Runs a spec to its end, from files to files, as `rowmill run` does.
///
/// ```
/// use rowmill::{RunControl, InputSpec, InputLocation, OutputTarget, PromptSource, RunSpec, run};
///
/// # let folder = tempfile::tempdir()?;
/// # let (rows, answers) = (folder.path().join("rows.jsonl"), folder.path().join("answers.jsonl"));
/// # std::fs::write(&rows, "{\"name\": \"Ada\"}\n{\"name\": \"Bo\"}\n")?;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let input = InputSpec::new(InputLocation::File(rows), None);
/// let mut spec = RunSpec::new(input, OutputTarget::File(answers.clone()));
/// spec.work.model = "passthrough".into();
/// spec.prompt = PromptSource::Inline("Hello {{name}}!".into());
/// let report = run(spec, &RunControl::silent()).await?;
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
pub async fn run(spec: RunSpec, control: &RunControl) -> Result<RunReport, Problem> {
    spec.notify.check()?;
    if spec.notify.is_empty() {
        return Box::pin(run_in_lane(spec, control)).await;
    }
    let kept = spec.clone();
    let outcome = Box::pin(run_in_lane(spec, control)).await;
    let message = match &outcome {
        Ok(report) => RunNotification::of_report(report),
        Err(problem) => RunNotification::of_problem(&kept, problem, control.vocabulary),
    };
    send_notification(&kept.notify, &message, control).await;
    outcome
}

/// Runs a spec in the lane that it chooses.
async fn run_in_lane(spec: RunSpec, control: &RunControl) -> Result<RunReport, Problem> {
    let lane = choose_lane(&spec, control)?;
    match lane {
        ChosenLane::Live => {
            Box::pin(forget_unpaid_jobs(&spec)).await?;
            check_no_jobs_out(&spec)?;
            // Callers keep its future in their own.
            Box::pin(run_pass(spec, control)).await
        }
        ChosenLane::Batch => Box::pin(run_in_rounds(spec, control)).await,
    }
}

/// Works on every row that can be worked on now. In the live lane, this is the whole run.
pub(crate) async fn run_pass(mut spec: RunSpec, control: &RunControl) -> Result<RunReport, Problem> {
    let control = &RunControl { limits: control.limits.for_run(), ..control.clone() };
    let started = jiff::Timestamp::now();
    let run = run_id(started);
    let folder = work_folder(&spec, &run, &control.environment);
    prepare_input::check_paths(&spec, &folder)?;
    let clock = RunClock::start(&spec, control);
    let http = control.environment.http_client();
    let mut texts = clock.unless_stopped(Box::pin(texts::load_texts(&spec, &http, control))).await?;
    let model = agents::set_up_plain_model(&spec, &mut texts, &http, control)?;
    clock.unless_stopped(Box::pin(inputs::fetch(&mut spec, control))).await?;
    let writes = paths::paths_written(&spec, &folder);
    if let Some(cards) = &texts.cards {
        paths::check_paths_disjoint(&paths::card_files(&spec, cards, &control.environment), &writes, None)?;
    }
    let made = CreatedFolders::create(&writes)?.for_run(&run, &folder);
    // Created here and nowhere else: a thread that is still running after the run was stopped must not
    // create it again.
    WorkFolder::open(&folder)?;
    let wanted = wanted_columns(&spec, &texts.template);
    let columns = read_columns(&spec, &texts.template, &wanted);
    let looked_at = run_blocking_with_spec(spec, {
        let folder = folder.clone();
        let (warn, environment) = (warn_fn(control), control.environment.clone());
        move |spec| {
            let rows = prepare_input::rows(spec, &folder, (&warn, &environment), &wanted)?;
            let attached = check_attachment_paths(spec, &*rows.dataset, (&folder, &writes))?;
            let source = first_rows(&rows, &spec.work.stop_rules, columns)?;
            Ok((rows, source, attached))
        }
    });
    let (mut spec, (rows, source, attached)) = clock.unless_stopped(looked_at).await?;
    if let Some(text) = same_prompt_text(&spec, &texts.template, &rows) {
        (control.notice)(RunNotice::warning(text));
    }
    // Tools are started only after all other checks have passed.
    let setup = match model {
        Some(setup) => setup,
        // Servers may take a minute to start, and stopping the run must not wait for that.
        None => {
            let setup = Box::pin(agents::set_up_card_agents(&spec, &mut texts, &http, control));
            clock.unless_stopped(setup).await?
        }
    };
    spec.work.stop_rules.deadline = clock.time_left();
    let tools = setup.tools.clone();
    let schema_model = texts.schema_model.clone();
    let recorder = setup.recorder.clone();
    let prepared = ReadyRun { started, run, folder, made, http, texts, rows, source, attached, setup };
    let done = Box::pin(with_setup(spec, control, prepared)).await;
    // However the run ended, everything that was started for it is closed.
    if let Some(tools) = tools {
        tools.host.close().await;
    }
    if let Some(schema_model) = schema_model {
        schema_model.close().await;
    }
    if let Some(problem) = recorder.and_then(|recorder| recorder.problem()) {
        (control.notice)(RunNotice::warning(problem.message));
    }
    done
}

/// A run with everything that it needs, ready to start.
struct ReadyRun {
    started: jiff::Timestamp,
    run: String,
    folder: PathBuf,
    made: CreatedFolders,
    http: HttpClient,
    texts: RunInputTexts,
    rows: prepare_input::PreparedInput,
    source: Box<dyn RowSource>,
    attached: AttachedFiles,
    setup: AgentSetup,
}

/// A run that has its files to itself.
struct ClaimedRun {
    output: Option<Arc<OutputFile>>,
    /// Given up when nothing is written any more.
    locks: Arc<dyn Any + Send + Sync>,
    answers: Option<AnswerCache>,
    traces: Option<Arc<RedactedTraceFacts>>,
    sinks: RecordSinks,
    /// The counts of selected rows in earlier parts of the run; `None` if it is not a resume.
    resumed: Option<ResumeCounts>,
    found: EarlierRun,
    start: RunBeginning,
}

/// Runs with everything that was set up.
async fn with_setup(spec: RunSpec, control: &RunControl, prepared: ReadyRun) -> Result<RunReport, Problem> {
    let ReadyRun { started, run, folder, made, http, texts, mut rows, source, attached, setup } = prepared;
    let AgentSetup { graph, model_roles, tools, mut identity, rules, traced_agents, redactor, .. } = setup;
    // The name appears in messages and files; the models have their own copy.
    let model = redactor.redact(&setup.model).into_owned();
    // A kept answer is the value that the user's code returned.
    identity.extend(texts.schema_code.iter().map(|code| format!(" checked by {code}")));
    let files = configured_attachments(&spec, &*rows.dataset, rules, (&http, &control.environment))?;
    let files = files.map(|files| guard_written_paths(&spec, &folder, files, &attached)).transpose()?;
    let reads = paths::source_paths(&spec, texts.cards.as_ref(), &control.environment);
    let mut new = new_run(&spec, &mut rows, (&texts, &redactor, reads), (&run, started, &model))?;
    new.header.folder = Some(full_path_text(&folder));
    note_attached(&mut new.header, &attached);
    let place = control.lane.storage(&folder)?;
    let open_answers = answers_opener(identity, control);
    let traced = (traced_agents, redactor.clone());
    let (spec, claimed) =
        claim_run(spec, control, (&place, &rows, made), (new, open_answers, traced)).await?;
    let ClaimedRun { output, locks, answers, traces, sinks, resumed, found, start } = claimed;
    let RunBeginning { mut header, known_by, ledger, resume, spent, .. } = start;
    let row_worker = Arc::new(RowWorker { graph, model_roles, tools });
    let worker = RowExecutionSetup {
        attachments: files,
        answer_cache: answers,
        // Rows with their input and rows without it cannot be in one table.
        include_input: header.keeps_input,
        traces,
        redactor: redactor.clone(),
        vocabulary: control.vocabulary,
        ..spec.work.worker(WorkerAssignment::Shared(row_worker), Arc::new(texts.template))
    };
    let parts = PlanParts {
        run: header.run.clone(),
        source,
        reading: ReadingThread::for_dataset(&*rows.dataset),
        selector: rows.selector,
        ids: known_by.id_rule(rows.ids),
        id_check: rows.id_check,
        resume,
        worker,
        spent,
        ledger: ledger.clone(),
    };
    let plan = RunSetup { sinks, locks: Some(locks.clone()), ..spec.work.plan(parts, control) };
    let (end, limits) = carry_out(plan, &*rows.dataset, control).await?;
    notify_end(control, (&spec, &*rows.input), &end, &redactor);
    note_attached(&mut header, &attached);
    let ended = EndedRun {
        end,
        model,
        agent: texts.cards.map(|cards| cards.worker),
        started,
        variables: texts.variables,
        header,
        known_by,
        found,
        resumed,
        limits,
        ledger,
        lane: control.lane.clone(),
    };
    // The locks are given up after that.
    finish_on_thread(spec, control, (place, output), ended).await
}

/// Opens the store of answers, if the run has one.
fn answers_opener(identity: String, control: &RunControl) -> OpenAnswers {
    let warn = warn_fn(control);
    Box::new(|spec, folder| open_answer_cache(spec, folder, identity, warn))
}

/// Claims the files of a run, opens them, and tells the user what a resume begins with.
async fn claim_run(
    spec: RunSpec,
    control: &RunControl,
    (place, rows, made): (&RunStorage, &prepare_input::PreparedInput, CreatedFolders),
    (mut new, open_answers, (traced_agents, redactor)): (NewRun, OpenAnswers, (TracedAgents, Redactor)),
) -> Result<(RunSpec, ClaimedRun), Problem> {
    if let Some(lane) = &control.lane.0 {
        new.scope = lane.resume_scope();
    }
    let (mut spec, (resumed, begun)) = claim_on_thread(spec, place, rows, (new, open_answers)).await?;
    let RunStart { output, lock, traces, answers, mut start } = begun;
    let found = start.earlier_run(&spec);
    if let Some(lane) = &control.lane.0 {
        lane.set_spent(start.spent);
        spec.work.budget = lane.budget_of_pass(spec.work.budget);
    }
    let traced = TraceStart { folder: traces, run: &start.header.run, traced_agents, redactor };
    let opened = open_sinks(&spec, output.as_ref(), start.telemetry.take())
        .and_then(|mut sinks| Ok((traces::begin_traces(&spec, traced, &mut sinks)?, sinks)));
    let (output, (traces, sinks)) = opened_or_refused(opened, output, &made)?;
    notify_folders_and_changes(control, made.commit(), &start.changes, &start.known_by);
    if control.lane.0.as_ref().is_none_or(|lane| lane.tells_of_resume()) {
        notify_resume(control, resumed, start.settings_unknown, start.spent);
    }
    let (output, resumed) = (output.map(Arc::new), resumed.map(|rows| rows.counts()));
    let locks: Arc<dyn Any + Send + Sync> = Arc::new((lock, output.clone()));
    Ok((spec, ClaimedRun { output, locks, answers, traces, sinks, resumed, found, start }))
}

/// Finishes the run on a blocking thread.
async fn finish_on_thread(
    spec: RunSpec,
    control: &RunControl,
    (place, output): (RunStorage, Option<Arc<OutputFile>>),
    ended: EndedRun,
) -> Result<RunReport, Problem> {
    let (environment, words) = (control.environment.clone(), control.vocabulary);
    let ending = move |spec: &RunSpec| finish_run(spec, (&place, &environment, words), output, ended);
    let (_, report) = run_blocking_with_spec(spec, ending).await?;
    Ok(report)
}

/// Starts the run on a blocking thread, including the state that a resume continues from.
async fn claim_on_thread(
    spec: RunSpec,
    place: &RunStorage,
    rows: &prepare_input::PreparedInput,
    (new, open_answers): (NewRun, OpenAnswers),
) -> Result<(RunSpec, (Option<ResumedRows>, RunStart)), Problem> {
    let (place, dataset, ids) = (place.clone(), Arc::clone(&rows.dataset), rows.ids.clone());
    let beginning = move |spec: &RunSpec| {
        let begun = claim_run_files(spec, &place, new, open_answers)?;
        Ok((resumed_rows(spec, &*dataset, ids, &begun.start), begun))
    };
    let (spec, (resumed, mut begun)) = run_blocking_with_spec(spec, beginning).await?;
    rows.compare_with(&mut begun.start.resume);
    Ok((spec, (resumed, begun)))
}

/// Records which files were attached to the rows of the run, as far as they were seen.
fn note_attached(header: &mut RunHeader, attached: &AttachedFiles) {
    header.reads.extend(paths::header_paths(attached.paths()));
    header.reads.sort_unstable();
    header.reads.dedup();
}

/// The state of the rows that a resume continues from.
fn resumed_rows(
    spec: &RunSpec,
    dataset: &dyn Dataset,
    ids: IdRule,
    beginning: &RunBeginning,
) -> Option<ResumedRows> {
    if !spec.existing.resumes() {
        return None;
    }
    let RunBeginning { resume, known_by, .. } = beginning;
    let all = resume.counts();
    let selected = match spec.selects_all() {
        true => Some(all),
        false if !dataset.is_rereadable() => None,
        // What cannot be read now is reported when it is worked on.
        false => selected_counts(dataset, &known_by.id_rule(ids), &spec.selection, resume).ok().flatten(),
    };
    Some(ResumedRows { all, selected })
}

/// Masks secrets in the problem that stopped a run: it appears in the summary, too.
fn mask(problem: &mut Problem, redactor: &Redactor) {
    let texts = [Some(&mut problem.message), problem.cause.as_mut(), problem.hint.as_mut()];
    for text in texts.into_iter().flatten() {
        *text = text.map_text(|text| redactor.redact(text).into_owned());
    }
}

/// The description of the run for its work folder and for a resume.
fn new_run(
    spec: &RunSpec,
    rows: &mut prepare_input::PreparedInput,
    (texts, redactor, reads): (&RunInputTexts, &Redactor, Vec<String>),
    (run, started, model): (&str, jiff::Timestamp, &str),
) -> Result<NewRun, Problem> {
    let mut by_number = prepare_input::fingerprint_by_number(spec, rows, model, texts)?;
    by_number.query = by_number.query.map(|query| redactor.redact(&query).into_owned());
    let fingerprint = prepare_input::fingerprint(&by_number, &rows.ids);
    let header = RunHeader::new(run, &timestamp_text(started), &fingerprint, None);
    let header = RunHeader {
        schema: texts.schema_text.clone(),
        texts: texts.for_header(redactor),
        input: Some(by_number.input.clone()),
        reads,
        error_output: spec.error_output.as_deref().map(full_path_text),
        keeps_input: spec.keeps_input(),
        ..header
    };
    let recording = std::mem::take(&mut rows.recording);
    let header = recording.name_in_header(header);
    let input = NumberedInput::for_resume(spec, rows, by_number)?;
    Ok(NewRun { header, input, recording, scope: ResumeExclusions::default() })
}

/// Carries out a plan, deletes what its models stored at their providers, and shows the notices about
/// the input. Also returns the limits of the first model, as far as known.
async fn carry_out(
    plan: RunSetup,
    dataset: &dyn Dataset,
    control: &RunControl,
) -> Result<(RunOutcome, MinuteLimits), Problem> {
    let (endpoints, redactor) = (plan.worker.assignment.shared_endpoints(), plan.worker.redactor.clone());
    let answers = AnswersEnd::of(plan.worker.answer_cache.as_ref());
    let mut end = rowmill_engine::execute_run(plan).await?;
    answers.wait().await?;
    if let Some(StopCause::Problem(problem)) = &mut end.stopped {
        mask(problem, &redactor);
    }
    for endpoint in &endpoints {
        endpoint.model.close().await;
    }
    if let Some(text) = dataset.read_notice() {
        (control.notice)(RunNotice::info(text));
    }
    let limits =
        endpoints.first().map(|endpoint| endpoint.gate.effective_minute_limits()).unwrap_or_default();
    Ok((end, limits))
}

/// Removes what was created for a run that cannot start.
fn opened_or_refused<T>(
    opened: Result<T, Problem>,
    output: Option<OutputFile>,
    made: &CreatedFolders,
) -> Result<(Option<OutputFile>, T), Problem> {
    match opened {
        Ok(opened) => Ok((output, opened)),
        Err(problem) => {
            made.remove_new_files();
            discard_empty_output(output);
            Err(problem)
        }
    }
}

/// The work folder: beside the output, or where the user sets it; for standard output in the folder for
/// temporary files, because paid answers must be on disk somewhere.
fn work_folder(spec: &RunSpec, run: &str, environment: &RunEnvironment) -> PathBuf {
    spec.work_folder().unwrap_or_else(|| environment.temp_folder().join(format!("rowmill-{run}")))
}

/// Runs blocking code on a blocking thread, so that Ctrl-C is handled meanwhile.
pub(crate) async fn run_blocking_with_spec<T: Send + 'static>(
    spec: RunSpec,
    work: impl FnOnce(&RunSpec) -> Result<T, Problem> + Send + 'static,
) -> Result<(RunSpec, T), Problem> {
    let outcome = run_on_thread(move || work(&spec).map(|value| (spec, value)));
    outcome.await
}

/// Runs blocking code on a blocking thread.
pub(crate) async fn run_on_thread<T: Send + 'static>(
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
pub(crate) fn timestamp_text(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
