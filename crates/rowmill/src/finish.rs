//! Finishes a run whose last row has ended: settles the files, cleans up, and sums up.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::limits::{CallParallelism, MinuteLimits};
use rowmill_core::ports::{OpenLedger, RetainedRunParts};
use rowmill_core::resume::ResumeCounts;
use rowmill_core::run_header::RunHeader;
use rowmill_data::output::{EnvelopeReader, OutputFile, READER_ENDED, names_open_file};
use rowmill_data::redacted_source;
use rowmill_data::table::{InputRowInclusion, remove_table_leftovers, write_table_draft};
use rowmill_data::traces::settle_traces;
use rowmill_engine::{RunOutcome, StopCause};
use rowmill_types::actions::EXPORT_RESULTS;
use rowmill_types::settings::{RESUME, WORK_DIR};
use rowmill_types::{Problem, ProblemCode, SettingVocabulary};

use crate::environment::RunEnvironment;
use crate::lane::BatchLaneHandle;
use crate::paths::recheck_paths_disjoint;
use crate::prepare_input::output_claim;
use crate::report::{NoticedCorrections, OutputChanges, RunReport, RunSummary, run_exit_code, run_status};
use crate::resume::{EarlierRun, compact_ledger, header_with_ledger};
use crate::row_identity::RowIdentity;
use crate::run::timestamp_text;
use crate::run_storage::RunStorage;
use crate::settle_output::settle_output;
use crate::spec::{KeptFiles, OutputTarget, PromptSource, ResultSchemaSource, RunSpec, TableOutput};

/// A run whose last row has ended.
pub(crate) struct EndedRun {
    pub(crate) end: RunOutcome,
    pub(crate) model: String,
    /// The agent that worked on the rows, if a card describes it.
    pub(crate) agent: Option<String>,
    pub(crate) started: jiff::Timestamp,
    pub(crate) variables: Vec<String>,
    pub(crate) header: RunHeader,
    pub(crate) known_by: RowIdentity,
    pub(crate) found: EarlierRun,
    /// The counts of selected rows in earlier parts of the run; `None` if it is not a resume.
    pub(crate) resumed: Option<ResumeCounts>,
    pub(crate) limits: MinuteLimits,
    /// The ledger, to which nothing is appended any more.
    pub(crate) ledger: OpenLedger,
    /// The batch lane, if this was one of its passes.
    pub(crate) lane: BatchLaneHandle,
}

impl EndedRun {
    /// The number of failed rows. Failed rows that were not retried count, although they did not fail
    /// in this part of the run.
    fn failed_rows(&self) -> u64 {
        let before = self.found.counts.unwrap_or_default();
        self.end.tally.failed_rows + before.undecided + before.given_up
    }
}

/// Settles the files of a run and reports it.
pub(crate) fn finish_run(
    spec: &RunSpec,
    (place, environment, vocabulary): (&RunStorage, &RunEnvironment, SettingVocabulary),
    output: Option<Arc<OutputFile>>,
    mut ended: EndedRun,
) -> Result<RunReport, Problem> {
    // After a write failure the ledger may have records that the output lacks, and a run that another
    // process resumed belongs to that process: change nothing.
    let codes = [ProblemCode::WriteFailed, ProblemCode::OutputBusy];
    if let Some(lane) = ended.lane.0.as_ref().filter(|_| ended.end.stopped.is_none()) {
        match lane.count_unused() {
            Ok(spent) => ended.end.spent = ended.end.spent.plus(spent),
            Err(problem) => ended.end.stopped = Some(StopCause::Problem(problem)),
        }
    }
    let intact =
        !matches!(&ended.end.stopped, Some(StopCause::Problem(problem)) if codes.contains(&problem.code));
    if let Some(lane) = ended.lane.0.as_ref().filter(|_| ended.end.parked_rows == 0) {
        ended.end.spent = ended.end.spent.plus(lane.abandoned_spend());
    }
    let mut kept = true;
    let mut changes = OutputChanges::default();
    let apart = recheck_paths_disjoint(spec, place.folder.path());
    let may_write_summary = apart.is_ok();
    if intact {
        match apart.and_then(|()| tidy(spec, (place, environment), output.as_deref(), &ended)) {
            Ok(tidied) => (kept, changes) = tidied,
            Err(problem) => ended.end.stopped = Some(StopCause::Problem(problem)),
        }
    }
    let failed_rows = ended.failed_rows();
    let ok_before = ended.found.counts.unwrap_or_default().done;
    if let Some(lane) = &ended.lane.0 {
        lane.add_earlier_passes(&mut ended.end.tally, &mut ended.end.history);
    }
    let EndedRun { mut end, header, model, agent, started, variables, resumed, limits, .. } = ended;
    if let Some(StopCause::Problem(problem)) =
        end.stopped.as_mut().filter(|_| kept && spec.output.is_stdout())
    {
        notify_answer_locations(problem, place.folder.path());
    }
    let exit = run_exit_code(end.stopped.as_ref(), failed_rows);
    let noticed = NoticedCorrections {
        input: header.fingerprint.input.probe.is_some(),
        template: ok_before > 0 || end.tally.processed_rows > end.tally.failed_rows,
    };
    let mut report = RunReport {
        summary: summary(spec, (header.run, started), (model, agent), variables, (&end, vocabulary)),
        exit,
        stopped: end.stopped,
        unknown_rows: end.unknown_rows,
        failure_examples: end.tally.failure_examples,
        output: changes,
        resumed,
        history: end.history,
        limits,
        kept: kept.then(|| place.folder.path().to_owned()),
        noticed,
        parked_rows: end.parked_rows,
        spent: end.spent,
        batch: None,
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
    (place, environment): (&RunStorage, &RunEnvironment),
    output: Option<&OutputFile>,
    ended: &EndedRun,
) -> Result<(bool, OutputChanges), Problem> {
    if let Some(traces) = spec.traces.as_deref().filter(|_| spec.existing.resumes()) {
        settle_traces(traces)?;
    }
    let mut changes = OutputChanges::default();
    if let Some(output) = output {
        changes = settle_output(spec, place, output, ended)?;
        // Rows that wait for batch jobs would be missing in the table.
        if let (OutputTarget::Table(table), 0) = (&spec.output, ended.end.parked_rows) {
            make_table(spec, table, output, (&ended.header, environment))?;
        }
    }
    let kept = retain(spec, place, output, ended)?;
    Ok((kept, changes))
}

/// Removes what is no longer needed of the run; `true` if something is still kept.
fn retain(
    spec: &RunSpec,
    place: &RunStorage,
    output: Option<&OutputFile>,
    ended: &EndedRun,
) -> Result<bool, Problem> {
    let EndedRun { end, header, known_by, .. } = ended;
    let all_ok = end.stopped.is_none() && ended.failed_rows() == 0 && end.parked_rows == 0;
    let at_end = header_with_ledger(header, ended.ledger.ledger.position(), end, output);
    if spec.keep_temp == KeptFiles::Ledger || end.parked_rows > 0 {
        place.store.finish(at_end, RetainedRunParts::Ledger)?;
        return Ok(true);
    }
    // On standard output, this part of the run has only the selected rows; the ledger keeps the others.
    let has_others = output.is_none() && ended.found.has_ledger_rows && !spec.selects_all();
    if !has_others && leaves_nothing(spec, end.stopped.as_ref(), all_ok) {
        place.store.remove()?;
        return Ok(false);
    }
    match output {
        // Interrupted rows continue from their turns, which only the ledger has.
        Some(_) if spec.work.agents.checkpoint_turns && end.stopped.is_some() => {
            place.store.finish(at_end, RetainedRunParts::Ledger)?;
        }
        Some(_) => {
            compact_ledger(spec, place, &known_by.header_at_end(header), (end, all_ok))?;
            if all_ok {
                place.folder.remove_shared_answers();
            }
            return Ok(!all_ok);
        }
        // Without a file, only the ledger has the results.
        None => place.store.finish(at_end, RetainedRunParts::Ledger)?,
    }
    Ok(true)
}

/// Whether nothing of a run needs to be kept. All envelopes of a finished run to standard output have
/// been written; if the user named no folder for it, nothing must be left behind.
fn leaves_nothing(spec: &RunSpec, stopped: Option<&StopCause>, all_ok: bool) -> bool {
    let is_over = matches!(stopped, None | Some(StopCause::FirstResult));
    let is_out = spec.output.is_stdout() && (all_ok || is_over && spec.work_dir.is_none());
    is_out || all_ok && spec.keep_temp == KeptFiles::Nothing
}

/// Only the work folder of a run to standard output has the answers, so a problem that stopped it names
/// the folder and what to do with it.
fn notify_answer_locations(problem: &mut Problem, folder: &Path) {
    let folder = &shell_word(folder);
    let hint = problem.hint.take();
    problem.hint = Some(
        match hint {
            Some(hint) if problem.message != READER_ENDED => {
                format!(
                    "{}; the run is kept in {folder}, so add {work_dir}",
                    hint.with_mention_markers(),
                    work_dir = WORK_DIR.with_value(folder)
                )
            }
            _ => format!(
                "every answer so far is kept in {folder}: {export} them to a file; run the same command with \
                 {resume_there} to output them again and continue",
                export = EXPORT_RESULTS.with_value(folder),
                resume_there = RESUME.and(WORK_DIR.with_value(folder))
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
    (header, environment): (&RunHeader, &RunEnvironment),
) -> Result<(), Problem> {
    remove_table_leftovers(&table.target);
    let input = if spec.include_input { InputRowInclusion::Included } else { InputRowInclusion::Excluded };
    let settings = table.settings(input, header.schema.clone(), environment.redactor()?);
    write_table_draft(&EnvelopeReader::from_settled_file(output.path()), &settings, &table.target)?
        .publish(output_claim(spec.existing))
}

fn summary(
    spec: &RunSpec,
    (run, started): (String, jiff::Timestamp),
    (model, agent): (String, Option<String>),
    variables: Vec<String>,
    (end, vocabulary): (&RunOutcome, SettingVocabulary),
) -> RunSummary {
    RunSummary {
        run,
        model,
        input: spec.input.location.name(),
        output: spec.output.name(),
        schema: match &spec.schema {
            ResultSchemaSource::Source(source) => Some(redacted_source(source)),
            ResultSchemaSource::None | ResultSchemaSource::PythonModel(_) => None,
        },
        schema_model: match &spec.schema {
            ResultSchemaSource::PythonModel(name) => Some(name.clone()),
            ResultSchemaSource::None | ResultSchemaSource::Source(_) => None,
        },
        instruction: spec.instruction.as_deref().map(redacted_source),
        agent_card: spec.work.agents.cards.iter().map(|source| redacted_source(source)).collect(),
        agent,
        variables,
        template: match &spec.prompt {
            PromptSource::Default => "<default>".into(),
            PromptSource::Inline(_) => "<inline>".into(),
            PromptSource::Source(source) => redacted_source(source),
        },
        export_traces: spec.traces.as_ref().map(|path| path.to_string_lossy().into_owned()),
        output_mode: if spec.schema == ResultSchemaSource::None { "text" } else { "structured" },
        parallel: match spec.work.parallel {
            CallParallelism::Auto | CallParallelism::AutoUpTo(_) => "auto".into(),
            CallParallelism::AtMost(rows) => rows.into(),
        },
        started_at: timestamp_text(started),
        completed_at: timestamp_text(jiff::Timestamp::now()),
        status: run_status(end.stopped.as_ref()),
        stopped_by: match &end.stopped {
            Some(StopCause::Problem(problem)) => Some(problem.message.render(vocabulary)),
            _ => None,
        },
        outcome_unknown_rows: end.unknown_rows,
        spent_usd: end.spent.cost,
        numbers: end.tally.summary_numbers(end.duration),
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
        report.exit = problem.exit_code();
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
