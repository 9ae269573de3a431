//! Making the files of a run ours, and finding out what it begins from.

use std::fs;

use rowmill_data::output::{Claim, LineSink, OutputFile, Part};
use rowmill_data::traces::TraceFolder;
use rowmill_engine::Sinks;
use rowmill_store::file::{FolderLock, WorkFolder};
use rowmill_types::{Problem, ProblemCode};

use crate::prepare;
use crate::resume::{Beginning, NewRun, fresh, resumed};
use crate::sides::sides;
use crate::spec::{Existing, Output, RunSpec};
use crate::traces;

/// What is ours for the length of the run, and what it begins from.
pub(crate) struct Begun {
    pub(crate) output: Option<OutputFile>,
    pub(crate) lock: FolderLock,
    pub(crate) traces: Option<TraceFolder>,
    pub(crate) beginning: Beginning,
}

/// Makes the output, the work folder and the folder of traces ours and finds out what there is to
/// go on with.
pub(crate) fn begin(spec: &RunSpec, folder: &WorkFolder, new: NewRun) -> Result<Begun, Problem> {
    let output = claim(spec, folder)?;
    let begun = folder.lock().and_then(|lock| {
        check_sides(spec)?;
        let traces = traces::claim(spec)?;
        match beginning(spec, folder, output.as_ref(), new) {
            Ok(beginning) => Ok((lock, traces, beginning)),
            Err(problem) => {
                if let Some(traces) = traces {
                    traces.discard();
                }
                Err(problem)
            }
        }
    });
    match begun {
        Ok((lock, traces, beginning)) => Ok(Begun { output, lock, traces, beginning }),
        Err(problem) => {
            give_up(spec, output);
            Err(problem)
        }
    }
}

/// Checks that the files beside the output can be opened, before the output of an earlier run is
/// given up for this one. What is new is made again when it is needed.
fn check_sides(spec: &RunSpec) -> Result<(), Problem> {
    for (_, path) in sides(spec) {
        let is_new = !path.exists();
        // Whoever opens a pipe waits for its reader.
        if is_new || path.is_file() {
            drop(LineSink::append(path, Part::Telemetry, u64::MAX)?);
        }
        if is_new {
            drop(fs::remove_file(path));
        }
    }
    Ok(())
}

/// Removes an output that is new and empty: it would only be in the way of the next run.
pub(crate) fn give_up(spec: &RunSpec, output: Option<OutputFile>) {
    if let Some(output) = output.filter(|_| spec.existing == Existing::Refuse) {
        output.discard();
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
    new: NewRun,
) -> Result<Beginning, Problem> {
    if spec.existing.resumes() {
        return resumed(spec, folder, output, new);
    }
    if let Some(output) = output {
        output.cut(0)?;
    }
    if !matches!(spec.output, Output::Table(_)) {
        // They are of an older run, whose output was a table.
        folder.forget_envelopes();
    }
    fresh(spec, folder, new.header)
}

/// Opens what envelopes, errors and telemetry are written to.
pub(crate) fn sinks(
    spec: &RunSpec,
    output: Option<&OutputFile>,
    telemetry: Option<LineSink>,
) -> Result<Sinks, Problem> {
    let mut sinks = Sinks::default();
    match output {
        Some(file) => sinks.ordered.push(Box::new(file.sink()?)),
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
