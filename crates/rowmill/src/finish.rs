//! Finishes a run whose last row has ended: settles the files, cleans up, and sums up.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::limits::{Parallel, RateFlags};
use rowmill_core::ports::{OpenLedger, Retention};
use rowmill_core::resume::ResumeCounts;
use rowmill_core::run_header::RunHeader;
use rowmill_data::output::{Envelopes, OutputFile, READER_ENDED, names_open_file};
use rowmill_data::shown_source;
use rowmill_data::table::{InputPart, draft, remove_leftovers};
use rowmill_data::traces::settle_traces;
use rowmill_engine::{RunEnd, StopCause};
use rowmill_types::actions::EXPORT_RESULTS;
use rowmill_types::settings::{RESUME, WORK_DIR};
use rowmill_types::{Problem, ProblemCode, Vocabulary};

use crate::environment::Environment;
use crate::ids::KnownBy;
use crate::paths::check_still_apart;
use crate::prepare::claim;
use crate::report::{OutputChanges, RunReport, RunSummary, exit_code, status};
use crate::resume::{FoundBefore, compact, with_ledger};
use crate::run::seconds;
use crate::run_place::RunPlace;
use crate::settling::put_in_order;
use crate::spec::{KeepTemp, Output, Prompt, RunSpec, Schema, TableOutput};

/// A run whose last row has ended.
pub(crate) struct Ended {
    pub(crate) end: RunEnd,
    pub(crate) model: String,
    /// The agent that worked on the rows, if a card describes it.
    pub(crate) agent: Option<String>,
    pub(crate) started: jiff::Timestamp,
    pub(crate) variables: Vec<String>,
    pub(crate) header: RunHeader,
    pub(crate) known_by: KnownBy,
    pub(crate) found: FoundBefore,
    /// The counts of selected rows in earlier parts of the run; `None` if it is not a resume.
    pub(crate) resumed: Option<ResumeCounts>,
    pub(crate) limits: RateFlags,
    /// The ledger, to which nothing is appended any more.
    pub(crate) ledger: OpenLedger,
}

impl Ended {
    /// The number of failed rows. Failed rows that were not retried count, although they did not fail
    /// in this part of the run.
    fn failed_rows(&self) -> u64 {
        self.end.tally.failed_rows + self.found.counts.map_or(0, |counts| counts.undecided)
    }
}

/// Settles the files of a run and reports it.
pub(crate) fn finish(
    spec: &RunSpec,
    (place, environment, vocabulary): (&RunPlace, &Environment, Vocabulary),
    output: Option<Arc<OutputFile>>,
    mut ended: Ended,
) -> Result<RunReport, Problem> {
    // After a write failure the ledger may have records that the output lacks, and a run that another
    // process resumed belongs to that process: change nothing.
    let codes = [ProblemCode::WriteFailed, ProblemCode::OutputBusy];
    let intact =
        !matches!(&ended.end.stopped, Some(StopCause::Problem(problem)) if codes.contains(&problem.code));
    let mut kept = true;
    let mut changes = OutputChanges::default();
    let apart = check_still_apart(spec, place.folder.path());
    let may_write_summary = apart.is_ok();
    if intact {
        match apart.and_then(|()| tidy(spec, (place, environment), output.as_deref(), &ended)) {
            Ok(tidied) => (kept, changes) = tidied,
            Err(problem) => ended.end.stopped = Some(StopCause::Problem(problem)),
        }
    }
    let failed_rows = ended.failed_rows();
    let Ended { mut end, header, model, agent, started, variables, resumed, limits, .. } = ended;
    if let Some(StopCause::Problem(problem)) =
        end.stopped.as_mut().filter(|_| kept && spec.output.is_stdout())
    {
        tell_where_answers_are(problem, place.folder.path());
    }
    let exit = exit_code(end.stopped.as_ref(), failed_rows);
    let mut report = RunReport {
        summary: summary(spec, header.run, (model, agent), started, variables, (&end, vocabulary)),
        exit,
        stopped: end.stopped,
        unknown_rows: end.unknown_rows,
        failure_examples: end.tally.failure_examples,
        output: changes,
        resumed,
        history: end.history,
        limits,
        kept: kept.then(|| place.folder.path().to_owned()),
    };
    if may_write_summary {
        write_summary(spec, &mut report);
    }
    drop(output);
    Ok(report)
}

/// Puts the output in order and removes what is no longer needed. Returns whether the work folder still
/// holds something, and what was done to the output.
fn tidy(
    spec: &RunSpec,
    (place, environment): (&RunPlace, &Environment),
    output: Option<&OutputFile>,
    ended: &Ended,
) -> Result<(bool, OutputChanges), Problem> {
    if let Some(traces) = spec.traces.as_deref().filter(|_| spec.existing.resumes()) {
        settle_traces(traces)?;
    }
    let mut changes = OutputChanges::default();
    if let Some(output) = output {
        changes = put_in_order(spec, place, output, ended)?;
        if let Output::Table(table) = &spec.output {
            make_table(spec, table, output, (&ended.header, environment))?;
        }
    }
    let kept = retain(spec, place, output, ended)?;
    Ok((kept, changes))
}

/// Removes what is no longer needed of the run; `true` if something is still kept.
fn retain(
    spec: &RunSpec,
    place: &RunPlace,
    output: Option<&OutputFile>,
    ended: &Ended,
) -> Result<bool, Problem> {
    let Ended { end, header, known_by, .. } = ended;
    let all_ok = end.stopped.is_none() && ended.failed_rows() == 0;
    let at_end = with_ledger(header, ended.ledger.ledger.position(), end, output);
    if spec.keep_temp == KeepTemp::Ledger {
        place.store.finish(at_end, Retention::Ledger)?;
        return Ok(true);
    }
    // On standard output, this part of the run has only the selected rows; the ledger keeps the others.
    let has_others = output.is_none() && ended.found.has_ledger_rows && !spec.selects_all();
    if !has_others && leaves_nothing(spec, end.stopped.as_ref(), all_ok) {
        place.store.forget()?;
        return Ok(false);
    }
    match output {
        // Interrupted rows continue from their turns, which only the ledger has.
        Some(_) if spec.work.agents.checkpoint_turns && end.stopped.is_some() => {
            place.store.finish(at_end, Retention::Ledger)?;
        }
        Some(_) => {
            compact(spec, place, &known_by.header_at_end(header), (end, all_ok))?;
            if all_ok {
                place.folder.forget_answers();
            }
            return Ok(!all_ok);
        }
        // Without a file, only the ledger has the results.
        None => place.store.finish(at_end, Retention::Ledger)?,
    }
    Ok(true)
}

/// Whether nothing of a run needs to be kept. All envelopes of a finished run to standard output have
/// been written; if the user named no folder for it, nothing must be left behind.
fn leaves_nothing(spec: &RunSpec, stopped: Option<&StopCause>, all_ok: bool) -> bool {
    let is_over = matches!(stopped, None | Some(StopCause::FirstResult));
    let is_out = spec.output.is_stdout() && (all_ok || is_over && spec.work_dir.is_none());
    is_out || all_ok && spec.keep_temp == KeepTemp::Nothing
}

/// Only the work folder of a run to standard output has the answers, so a problem that stopped it names
/// the folder and what to do with it.
fn tell_where_answers_are(problem: &mut Problem, folder: &Path) {
    let folder = &shell_word(folder);
    let hint = problem.hint.take();
    problem.hint = Some(
        match hint {
            Some(hint) if problem.message != READER_ENDED => {
                format!(
                    "{}; the run is kept in {folder}, so add {work_dir}",
                    hint.marked(),
                    work_dir = WORK_DIR.to(folder)
                )
            }
            _ => format!(
                "every answer so far is kept in {folder}: {export} them to a file; run the same command with \
                 {resume_there} to output them again and continue",
                export = EXPORT_RESULTS.of(folder),
                resume_there = RESUME.and(WORK_DIR.to(folder))
            ),
        }
        .into(),
    );
}

/// A path, quoted for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=:,@".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Makes the table from the settled envelopes.
fn make_table(
    spec: &RunSpec,
    table: &TableOutput,
    output: &OutputFile,
    (header, environment): (&RunHeader, &Environment),
) -> Result<(), Problem> {
    remove_leftovers(&table.target);
    let input = if spec.include_input { InputPart::Kept } else { InputPart::LeftOut };
    let settings = table.settings(input, header.schema.clone(), environment.redactor()?);
    draft(&Envelopes::settled(output.path()), &settings, &table.target)?.publish(claim(spec.existing))
}

fn summary(
    spec: &RunSpec,
    run: String,
    (model, agent): (String, Option<String>),
    started: jiff::Timestamp,
    variables: Vec<String>,
    (end, vocabulary): (&RunEnd, Vocabulary),
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
            Parallel::Auto | Parallel::AutoUpTo(_) => "auto".into(),
            Parallel::AtMost(rows) => rows.into(),
        },
        started_at: seconds(started),
        completed_at: seconds(jiff::Timestamp::now()),
        status: status(end.stopped.as_ref()),
        stopped_by: match &end.stopped {
            Some(StopCause::Problem(problem)) => Some(problem.message.render(vocabulary)),
            _ => None,
        },
        outcome_unknown_rows: end.unknown_rows,
        spent_usd: end.spent.cost,
        numbers: end.tally.numbers(end.duration),
    }
}

/// A summary that cannot be written does not undo the run, but it must be reported.
fn write_summary(spec: &RunSpec, report: &mut RunReport) {
    let Some(path) = &spec.summary_output else { return };
    let written = serde_json::to_vec_pretty(&report.summary)
        .map_err(std::io::Error::other)
        .map(|mut text| {
            text.push(b'\n');
            text
        })
        .and_then(|text| write_whole(path, &text));
    if let Err(error) = written {
        let shown: &PathBuf = path;
        let problem = Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", shown.display()))
            .cause(error)
            .hint("the results are complete; only the summary is missing");
        report.exit = problem.exit();
        report.stopped.get_or_insert(StopCause::Problem(problem));
    }
}

/// Replaces a file; appends to what is behind `/dev/stdout`.
fn write_whole(path: &Path, text: &[u8]) -> std::io::Result<()> {
    if names_open_file(path) {
        return OpenOptions::new().append(true).open(path)?.write_all(text);
    }
    fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word(Path::new("/tmp/rowmill-1")), "/tmp/rowmill-1");
        assert_eq!(shell_word(Path::new("/my tmp/it's")), r"'/my tmp/it'\''s'");
    }
}
