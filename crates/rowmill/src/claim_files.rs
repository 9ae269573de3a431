//! Claims the files of a run, and determines what it starts from.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::RunLock;
use rowmill_core::run_header::RunHeader;
use rowmill_data::output::{
    LineSink, OutputClaimMode, OutputFile, SinkContent, check_folder_writable, link_target,
};
use rowmill_data::table::TableTarget;
use rowmill_data::traces::TraceFolder;
use rowmill_engine::{AnswerCache, RecordSinks};
use rowmill_store::file::WorkFolder;
use rowmill_types::{Problem, ProblemCode};

use crate::answer_cache::restore_answers_from_ledger;
use crate::lane::check_no_jobs_out;
use crate::prepare_input;
use crate::resume::{NewRun, RunBeginning, RunFiles, prepare_new_run, resume_run, start_new_run};
use crate::run_storage::{LedgerSettings, RunStorage};
use crate::side_files::side_files;
use crate::spec::{OutputTarget, RunSpec};
use crate::telemetry_file::telemetry_base;
use crate::traces;

/// What a run holds while it is in progress, and what it starts from.
pub(crate) struct RunStart {
    pub(crate) output: Option<OutputFile>,
    pub(crate) lock: Arc<RunLock>,
    pub(crate) traces: Option<TraceFolder>,
    pub(crate) answers: Option<AnswerCache>,
    pub(crate) start: RunBeginning,
}

/// Opens the store of answers, if one is wanted.
pub(crate) type OpenAnswers =
    Box<dyn FnOnce(&RunSpec, &WorkFolder) -> Result<Option<AnswerCache>, Problem> + Send>;

/// Claims the output, the work folder and the folder of traces, and determines what is left of an
/// earlier run. The results of that run are discarded last, when nothing can reject the new run any
/// more.
pub(crate) fn claim_run_files(
    spec: &RunSpec,
    place: &RunStorage,
    new: NewRun,
    open_answers: OpenAnswers,
) -> Result<RunStart, Problem> {
    let output = claim(spec, &place.folder)?;
    let begun = place.lock().and_then(|lock| {
        if !place.is_locked() {
            // Jobs may have been made since the run was checked for them: only now can nobody make any.
            check_no_jobs_out(spec)?;
        }
        check_sides(spec)?;
        check_folders(spec)?;
        let traces = traces::claim_trace_folder(spec)?;
        let begun = beginning(spec, place, output.as_ref(), (new, open_answers));
        match begun {
            Ok((beginning, answers)) => Ok((lock, traces, beginning, answers)),
            Err(problem) => {
                if let Some(traces) = traces {
                    traces.abandon_claim();
                }
                Err(problem)
            }
        }
    });
    match begun {
        Ok((lock, traces, beginning, answers)) => {
            Ok(RunStart { output, lock, traces, answers, start: beginning })
        }
        Err(problem) => {
            discard_empty_output(output);
            Err(problem)
        }
    }
}

/// Checks that files can be created in the folders that are used later: those of tables, of copies that
/// replace a file, of attached files and of tool outputs. Otherwise, the error would come only after
/// paid calls.
fn check_folders(spec: &RunSpec) -> Result<(), Problem> {
    let beside = |path: &Path| {
        // The target of a link is replaced, not the link. A device is not replaced.
        let path = link_target(path);
        if path.exists() && !path.is_file() {
            return Ok(());
        }
        check_folder_writable(path.parent().unwrap_or(Path::new("")))
    };
    match &spec.output {
        OutputTarget::Table(table) => match &table.target {
            TableTarget::File(path) => beside(path)?,
            TableTarget::Folder { path, .. } => check_folder_writable(path)?,
            TableTarget::Stdout => {}
        },
        OutputTarget::File(path) if spec.existing.resumes() => beside(path)?,
        OutputTarget::File(_) | OutputTarget::Stdout => {}
    }
    if let Some(path) = spec.error_output.as_deref().filter(|_| spec.existing.resumes()) {
        beside(path)?;
    }
    let folders = [&spec.files.archive, &spec.work.agents.record_tools];
    folders.into_iter().flatten().try_for_each(|folder| check_folder_writable(folder))
}

/// Checks that the files beside the output can be opened, before the output of an earlier run is
/// discarded. New files are removed again, and created when they are needed.
fn check_sides(spec: &RunSpec) -> Result<(), Problem> {
    for (_, path) in side_files(spec) {
        let is_new = !path.exists();
        // Opening a pipe blocks until it has a reader.
        if is_new || path.is_file() {
            drop(LineSink::append(path, SinkContent::Telemetry, u64::MAX)?);
        }
        if is_new {
            drop(fs::remove_file(link_target(path)));
        }
    }
    Ok(())
}

/// Removes an output that is new and empty: it would only block the next run.
pub(crate) fn discard_empty_output(output: Option<OutputFile>) {
    if let Some(output) = output {
        output.abandon_claim();
    }
}

/// Claims the file of envelopes, if there is one.
fn claim(spec: &RunSpec, folder: &WorkFolder) -> Result<Option<OutputFile>, Problem> {
    match &spec.output {
        OutputTarget::File(path) => {
            OutputFile::claim(path, prepare_input::output_claim(spec.existing)).map(Some)
        }
        OutputTarget::Stdout => Ok(None),
        // Whether the table may be replaced was checked before; its envelopes follow that decision.
        OutputTarget::Table(_) => {
            let path = WorkFolder::envelopes_path_in(folder.path());
            let claimed = OutputFile::claim(&path, OutputClaimMode::Resume);
            if claimed.is_ok() {
                // Others must not read this file. If its permissions cannot be set, only its folder
                // protects it.
                drop(fs::set_permissions(&path, fs::Permissions::from_mode(0o600)));
            }
            claimed.map(Some).map_err(|problem| match problem.code {
                ProblemCode::OutputBusy => {
                    let message = format!("another run is writing to `{}`", spec.output.name());
                    Problem { message: message.into(), ..problem }
                }
                _ => problem,
            })
        }
    }
}

fn beginning(
    spec: &RunSpec,
    place: &RunStorage,
    output: Option<&OutputFile>,
    (new, open_answers): (NewRun, OpenAnswers),
) -> Result<(RunBeginning, Option<AnswerCache>), Problem> {
    let folder = &place.folder;
    let settings = LedgerSettings::new(&spec.work, spec.existing);
    let files = Some(RunFiles { spec, output });
    if spec.existing.resumes() {
        let answers = open_answers(spec, folder)?;
        if let Some(answers) = &answers {
            restore_answers_from_ledger(answers, &*place.store)?;
        }
        return Ok((resume_run(&settings, place, files, new)?, answers));
    }
    let NewRun { header, recording, .. } = new;
    let header = RunHeader { telemetry: telemetry_base(spec, 0), ..header };
    let prepared = prepare_new_run(&settings, place, header)?;
    folder.remove_shared_answers();
    let answers = match open_answers(spec, folder) {
        Ok(answers) => answers,
        Err(problem) => {
            folder.remove_shared_answers();
            place.store.discard_prepared(prepared);
            return Err(problem);
        }
    };
    // From here on, the earlier results are gone.
    if let Some(output) = output {
        output.truncate(0)?;
    }
    if !matches!(spec.output, OutputTarget::Table(_)) {
        // They belong to an older run, whose output was a table.
        folder.remove_envelopes();
    }
    Ok((start_new_run(files, place, prepared, recording)?, answers))
}

/// Opens the sinks for envelopes, errors and telemetry.
pub(crate) fn open_sinks(
    spec: &RunSpec,
    output: Option<&OutputFile>,
    telemetry: Option<LineSink>,
) -> Result<RecordSinks, Problem> {
    let mut sinks = RecordSinks::default();
    match output {
        Some(file) => sinks.in_input_order.push(Box::new(file.sink()?)),
        None => sinks.in_input_order.push(Box::new(LineSink::stdout(SinkContent::Envelopes)?)),
    }
    if let Some(path) = &spec.error_output {
        // Standard output receives every envelope of a resumed run again, and so do the errors.
        let appends = spec.existing.resumes() && output.is_some();
        let keep = if appends { u64::MAX } else { 0 };
        sinks.in_input_order.push(Box::new(LineSink::append(path, SinkContent::Failures, keep)?));
    }
    if let Some(telemetry) = telemetry {
        sinks.on_arrival.push(Box::new(telemetry));
    }
    Ok(sinks)
}
