//! What is done once the last row has ended: settle the files, tidy up, sum up.

use std::fs;
use std::path::PathBuf;

use rowmill_core::limits::{Parallel, RateFlags};
use rowmill_core::resume::ResumeCounts;
use rowmill_data::output::{Envelopes, OutputFile, rewrite_errors, settle};
use rowmill_data::shown_source;
use rowmill_data::table::{InputPart, draft, remove_leftovers};
use rowmill_data::traces::settle_traces;
use rowmill_engine::{RunEnd, StopCause};
use rowmill_store::file::{Header, WorkFolder};
use rowmill_types::{Problem, ProblemCode};

use crate::prepare::claim;
use crate::report::{RunReport, RunSummary, exit_code, status};
use crate::resume::compact;
use crate::run::seconds;
use crate::spec::{Output, Prompt, RunSpec, Schema, TableOutput};

/// A run whose last row has ended.
pub(crate) struct Ended {
    pub(crate) end: RunEnd,
    pub(crate) run: String,
    pub(crate) model: String,
    /// The agent that worked on the rows, where a card describes it.
    pub(crate) agent: Option<String>,
    pub(crate) started: jiff::Timestamp,
    pub(crate) variables: Vec<String>,
    pub(crate) header: Header,
    pub(crate) resumed: Option<ResumeCounts>,
    pub(crate) limits: RateFlags,
}

/// Settles the files of a run and reports it.
pub(crate) fn finish(
    spec: &RunSpec,
    folder: &WorkFolder,
    output: Option<OutputFile>,
    ended: Ended,
) -> Result<RunReport, Problem> {
    let Ended { mut end, run, model, agent, started, variables, header, resumed, limits } = ended;
    // After a write failure the ledger may hold what the output lacks: leave all as it is.
    let intact = !matches!(&end.stopped, Some(StopCause::Problem(problem)) if problem.code == ProblemCode::WriteFailed);
    let mut kept = true;
    // Rows that were left as they are have failed, though not in this part of the run.
    let failed_rows = end.tally.failed_rows + resumed.map_or(0, |counts| counts.undecided);
    if intact {
        match tidy(spec, folder, output.as_ref(), (&end, failed_rows), &header) {
            Ok(something_kept) => kept = something_kept,
            Err(problem) => end.stopped = Some(StopCause::Problem(problem)),
        }
    }
    let exit = exit_code(end.stopped.as_ref(), failed_rows);
    let mut report = RunReport {
        summary: summary(spec, run, (model, agent), started, variables, &end),
        exit,
        stopped: end.stopped,
        unknown_rows: end.unknown_rows,
        resumed,
        history: end.history,
        limits,
        kept: kept.then(|| folder.path().to_owned()),
    };
    write_summary(spec, &mut report);
    drop(output);
    Ok(report)
}

/// Puts the output in order and removes what is no longer needed; `true` if the work
/// folder still holds something.
fn tidy(
    spec: &RunSpec,
    folder: &WorkFolder,
    output: Option<&OutputFile>,
    (end, failed_rows): (&RunEnd, u64),
    header: &Header,
) -> Result<bool, Problem> {
    if let Some(traces) = spec.traces.as_deref().filter(|_| spec.existing.resumes()) {
        settle_traces(traces)?;
    }
    if let Some(output) = output {
        if spec.existing.resumes() {
            settle(output.path())?;
            if let Some(errors) = &spec.error_output {
                rewrite_errors(output.path(), errors)?;
            }
        }
        output.sync()?;
        if let Output::Table(table) = &spec.output {
            make_table(spec, table, output, header)?;
        }
    }
    let all_ok = end.stopped.is_none() && failed_rows == 0;
    if spec.keep_temp {
        folder.tidy();
        return Ok(true);
    }
    match output {
        // Standard output has the table, and nobody can ask for more of a run without a place.
        Some(_) if all_ok && spec.output.is_stdout() => {
            folder.clear()?;
            return Ok(false);
        }
        // Rows that were cut go on from their turns, which only the ledger has.
        Some(_) if spec.work.agents.checkpoint_turns && end.stopped.is_some() => folder.tidy(),
        Some(_) => {
            compact(spec, folder, header, (end, all_ok))?;
            if all_ok {
                folder.forget_answers();
            }
            return Ok(!all_ok);
        }
        None if all_ok => {
            folder.clear()?;
            return Ok(false);
        }
        // Without a file the ledger is the only place that has the results.
        None => folder.tidy(),
    }
    Ok(true)
}

/// Makes the table from the settled envelopes.
fn make_table(
    spec: &RunSpec,
    table: &TableOutput,
    output: &OutputFile,
    header: &Header,
) -> Result<(), Problem> {
    remove_leftovers(&table.target);
    let input = if spec.include_input { InputPart::Kept } else { InputPart::LeftOut };
    let settings = table.settings(input, header.schema.clone());
    draft(&Envelopes::settled(output.path()), &settings, &table.target)?.publish(claim(spec.existing))
}

fn summary(
    spec: &RunSpec,
    run: String,
    (model, agent): (String, Option<String>),
    started: jiff::Timestamp,
    variables: Vec<String>,
    end: &RunEnd,
) -> RunSummary {
    RunSummary {
        run,
        model,
        input: spec.input.location.name(),
        output: spec.output.name(),
        schema: match &spec.schema {
            Schema::Source(source) => Some(shown_source(source)),
            Schema::None | Schema::PythonModel(_) => None,
        },
        schema_model: match &spec.schema {
            Schema::PythonModel(name) => Some(name.clone()),
            Schema::None | Schema::Source(_) => None,
        },
        instruction: spec.instruction.as_deref().map(shown_source),
        agent_card: spec.work.agents.cards.iter().map(|source| shown_source(source)).collect(),
        agent,
        variables,
        template: match &spec.prompt {
            Prompt::Default => "<default>".into(),
            Prompt::Inline(_) => "<inline>".into(),
            Prompt::Source(source) => shown_source(source),
        },
        export_traces: spec.traces.as_ref().map(|path| path.to_string_lossy().into_owned()),
        output_mode: if spec.schema == Schema::None { "text" } else { "structured" },
        parallel: match spec.work.parallel {
            Parallel::Auto => "auto".into(),
            Parallel::AtMost(rows) => rows.into(),
        },
        started_at: seconds(started),
        completed_at: seconds(jiff::Timestamp::now()),
        status: status(end.stopped.as_ref()),
        stopped_by: match &end.stopped {
            Some(StopCause::Problem(problem)) => Some(problem.message.clone()),
            _ => None,
        },
        outcome_unknown_rows: end.unknown_rows,
        spent_usd: end.spent.cost,
        numbers: end.tally.numbers(end.duration),
    }
}

/// A summary that cannot be written does not undo the run, but it must be told.
fn write_summary(spec: &RunSpec, report: &mut RunReport) {
    let Some(path) = &spec.summary_output else { return };
    let written = serde_json::to_vec_pretty(&report.summary)
        .map_err(std::io::Error::other)
        .map(|mut text| {
            text.push(b'\n');
            text
        })
        .and_then(|text| fs::write(path, text));
    if let Err(error) = written {
        let shown: &PathBuf = path;
        let problem = Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", shown.display()))
            .cause(error)
            .hint("the results are complete; only the summary is missing");
        report.exit = problem.exit();
        report.stopped.get_or_insert(StopCause::Problem(problem));
    }
}
