//! What a run starts from: nothing, or the state of an earlier run.

use std::collections::BTreeSet;
use std::path::Path;

use rowmill_core::limits::Spend;
use rowmill_core::ports::{LedgerPosition, OpenLedger, PreparedRun, RetainedRunParts};
use rowmill_core::record::EnvelopeHead;
use rowmill_core::resume::{ResumeCounts, ResumeExclusions, ResumeIndex, ResumeRowStatus};
use rowmill_core::run_header::{RunHeader, UnfinishedRunEntry};
use rowmill_core::select::{IdRule, RowNumberDigest};
use rowmill_data::output::{LineSink, OutputFile, OutputScan, scan_output};
use rowmill_data::table::check_envelopes_contain_input;
use rowmill_engine::{RunOutcome, StopCause};
use rowmill_types::settings::{ACCEPT_CHANGES, OVERWRITE};
use rowmill_types::{DiagnosticText, Problem, ProblemCode, find_storage_limit_hint};

use crate::all_envelopes::all_envelopes;
use crate::query_recording::QueryRecording;
use crate::resume_scan::scan_ledger;
use crate::row_identity::{NumberedInput, RowIdentity, row_identity};
use crate::run_storage::{LedgerSettings, RunStorage};
use crate::spec::{ExistingOutput, RunSpec};
use crate::telemetry_file::{resumed_telemetry, telemetry_base, telemetry_length, telemetry_sink};

/// A run that is about to start or to be resumed.
pub(crate) struct NewRun {
    pub(crate) header: RunHeader,
    /// The input, if rows can be given ids that they did not have before.
    pub(crate) input: Option<NumberedInput>,
    /// Whether the rows are recorded for a resume.
    pub(crate) recording: QueryRecording,
    /// The rows that a resume leaves alone.
    pub(crate) scope: ResumeExclusions,
}

/// The state that a run starts from.
pub(crate) struct RunBeginning {
    pub(crate) header: RunHeader,
    pub(crate) known_by: RowIdentity,
    pub(crate) ledger: OpenLedger,
    pub(crate) resume: ResumeIndex,
    pub(crate) telemetry: Option<LineSink>,
    /// Whether the output already had one envelope per row, in order.
    pub(crate) is_settled: bool,
    /// Whether there are rows of an earlier run without a record of its settings.
    pub(crate) settings_unknown: bool,
    /// Accepted differences from the earlier run.
    pub(crate) changes: Vec<DiagnosticText>,
    /// The amount that the earlier parts of the run spent, or may have spent.
    pub(crate) spent: Spend,
}

/// What a run found of its earlier parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierRun {
    /// The counts of rows; `None` if it is not a resume.
    pub(crate) counts: Option<ResumeCounts>,
    /// The rows that were done, with the numbers that they had.
    pub(crate) places: RowNumberDigest,
    /// Whether the output had one envelope per row, in order.
    pub(crate) is_settled: bool,
    /// Whether the ledger had records of rows, which the output may lack.
    pub(crate) has_ledger_rows: bool,
}

impl RunBeginning {
    /// What was found of the earlier parts of the run.
    pub(crate) fn earlier_run(&self, spec: &RunSpec) -> EarlierRun {
        EarlierRun {
            counts: spec.existing.resumes().then(|| self.resume.counts()),
            places: self.resume.ok_row_digest(),
            is_settled: self.is_settled,
            has_ledger_rows: self.resume.has_ledger_rows(),
        }
    }
}

/// The files of a run. A batch of a program has none.
#[derive(Clone, Copy)]
pub(crate) struct RunFiles<'a> {
    pub(crate) spec: &'a RunSpec,
    /// `None` for standard output, which receives everything again from the ledger.
    pub(crate) output: Option<&'a OutputFile>,
}

/// Prepares a new run without changing existing files.
pub(crate) fn prepare_new_run(
    settings: &LedgerSettings,
    place: &RunStorage,
    header: RunHeader,
) -> Result<PreparedRun, Problem> {
    place.store.prepare(header, settings.room).map_err(without_run)
}

/// Removes hints about resuming, because a run that did not start cannot be resumed.
fn without_run(problem: Problem) -> Problem {
    match problem.hint.as_deref().and_then(find_storage_limit_hint) {
        Some(remedy) => problem.hint(format!("{remedy} and run the same command again; nothing was sent")),
        None => problem,
    }
}

/// Starts a new run and replaces what exists.
pub(crate) fn start_new_run(
    files: Option<RunFiles<'_>>,
    place: &RunStorage,
    prepared: PreparedRun,
    recording: QueryRecording,
) -> Result<RunBeginning, Problem> {
    let header = prepared.header.clone();
    recording.install(&place.folder)?;
    let ledger = place.store.begin(prepared)?;
    place.folder.remove_recorded_rows(header.recorded_rows.as_deref());
    Ok(RunBeginning {
        ledger,
        telemetry: files.map(|files| telemetry_sink(files.spec, 0)).transpose()?.flatten(),
        header,
        known_by: RowIdentity::ById(None),
        resume: ResumeIndex::default(),
        is_settled: false,
        settings_unknown: false,
        changes: Vec::new(),
        spent: Spend::default(),
    })
}

/// Resumes an earlier run. Nothing is changed before all checks have passed.
pub(crate) fn resume_run(
    settings: &LedgerSettings,
    place: &RunStorage,
    files: Option<RunFiles<'_>>,
    mut new: NewRun,
) -> Result<RunBeginning, Problem> {
    let output = files.and_then(|files| files.output);
    let recording = std::mem::take(&mut new.recording);
    let scope = std::mem::take(&mut new.scope);
    let before = header_before(settings, place, &new.header)?;
    let before = before.map(|before| before.follow_moved_input(&new.header));
    let (mut known_by, now) = row_identity(before.as_ref(), new, output)?;
    let now = recording.with_input_of(before.as_ref(), now);
    let mut resume = ResumeIndex::new(settings.retry_unknown).with_exclusions(scope);
    let mut settings_unknown = false;
    let saw = |head: EnvelopeHead| {
        settings_unknown = before.is_none();
        resume.add_output_row(&known_by.identify_head(head));
    };
    let found = output.map(|file| scan_output(file.path(), saw)).transpose()?;
    let settled_to = before.as_ref().filter(|_| found.is_some()).map(|before| before.settled_to);
    resume.mark_settled_to(settled_to.unwrap_or_default());
    if let (Some(file), Some(OutputScan { length: 0, torn: true, .. }), None) = (output, &found, &before) {
        return Err(foreign_output_problem(file.path()));
    }
    let is_settled = found.as_ref().is_some_and(|found| is_settled(found, &resume));
    let (end, spent) = match &before {
        Some(before) => scan_ledger(&*place.store, before, &mut resume)?,
        // A ledger without a header is ignored.
        None => (LedgerPosition::START, Spend::default()),
    };
    let changes = match &before {
        Some(before) => accepted_changes(before, &now, settings.existing, &resume.counts())?,
        None => Vec::new(),
    };
    if let (Some(RunFiles { spec, output: Some(file) }), Some(found)) = (files, &found) {
        check_inputs(spec, (place, file), before.as_ref(), &resume)?;
        file.repair_end(found)?;
    }
    let mut turns_from = before.as_ref().map_or(LedgerPosition::START, |before| before.turns_from);
    if !settings.checkpoint_turns || !asks_the_same(before.as_ref(), &now) {
        // They belong to other agents, or are not wanted; rows start over, and so do their turns.
        resume.forget_all_step_events();
        turns_from = end;
    }
    let telemetry = match files {
        Some(files) => resumed_telemetry(files.spec, place, before.as_ref())?,
        None => None,
    };
    let base = telemetry.as_ref().map(|(_, base)| base.clone());
    let header = before.map_or_else(|| now.clone(), |before| gone_on_with(before, &now));
    let header = RunHeader { telemetry: base, spent, counted: end, turns_from, ..header };
    recording.install(&place.folder)?;
    let ledger = place.store.reopen(header.clone(), settings.room)?;
    let header = RunHeader { epoch: ledger.epoch, ..header };
    place.folder.remove_recorded_rows(header.recorded_rows.as_deref());
    let telemetry = telemetry.map(|(sink, _)| sink);
    Ok(RunBeginning {
        header,
        known_by,
        ledger,
        resume,
        telemetry,
        is_settled,
        settings_unknown,
        changes,
        spent,
    })
}

/// The header of the run that is there. Where it was lost, nobody knows any other settings than those of `now`, and
/// the user has to say that these are meant.
fn header_before(
    settings: &LedgerSettings,
    place: &RunStorage,
    now: &RunHeader,
) -> Result<Option<RunHeader>, Problem> {
    match settings.existing == ExistingOutput::ResumeChanged && place.folder.has_lost_header() {
        true => Ok(Some(now.clone())),
        false => place.store.header(),
    }
}

/// A file without envelopes, and without a header beside it, may belong to another program.
fn foreign_output_problem(output: &Path) -> Problem {
    let message = format!("`{}` does not look like the output of a run", output.display());
    Problem::new(ProblemCode::OutputUnusable, message)
        .hint("move the file away, or choose another output; nothing was changed")
}

/// The header of an earlier run, updated with its current settings.
fn gone_on_with(before: RunHeader, now: &RunHeader) -> RunHeader {
    // Rows that stay were made from what the earlier part of the run read.
    let reads: BTreeSet<String> = now.reads.iter().chain(&before.reads).cloned().collect();
    RunHeader {
        fingerprint: now.fingerprint.clone(),
        schema: now.schema.clone(),
        texts: now.texts.clone(),
        reads: reads.into_iter().collect(),
        input: now.input.clone(),
        folder: now.folder.clone(),
        error_output: now.error_output.clone().or(before.error_output),
        recorded_rows: now.recorded_rows.clone(),
        keeps_input: before.keeps_input || now.keeps_input,
        finished: false,
        unfinished: Some(UnfinishedRunEntry::default()),
        ..before
    }
}

/// Whether an output has one envelope per row, in order, if `resume` has seen nothing else yet.
fn is_settled(found: &OutputScan, resume: &ResumeIndex) -> bool {
    let counts = resume.counts();
    let rows = counts.done + counts.failed + counts.unknown + counts.undecided + counts.given_up;
    !found.unordered && !found.torn && !found.lacks_newline && rows == found.envelopes
}

/// Checks that all rows of the output will contain their input, if that is wanted. Rows that failed are
/// retried and then contain it, unless they are not selected.
fn check_inputs(
    spec: &RunSpec,
    (place, output): (&RunStorage, &OutputFile),
    before: Option<&RunHeader>,
    resume: &ResumeIndex,
) -> Result<(), Problem> {
    if !spec.keeps_input() {
        return Ok(());
    }
    let tries_all = spec.selects_all();
    let mut known_by = before.map_or(RowIdentity::ById(None), RowIdentity::of_header);
    let envelopes = all_envelopes(Some(output.path()), Some(&place.store), before)?;
    check_envelopes_contain_input(&envelopes, |head| {
        let head = known_by.identify_head(head);
        !tries_all
            || matches!(
                resume.row_status(&head.id, head.number),
                ResumeRowStatus::Done | ResumeRowStatus::Kept(_)
            )
    })
}

fn asks_the_same(before: Option<&RunHeader>, now: &RunHeader) -> bool {
    before.is_some_and(|before| before.fingerprint.asks_the_same_as(&now.fingerprint))
}

/// The state of an earlier run, read without changing it.
pub(crate) struct EarlierWork {
    /// The rows that a resume would skip.
    pub(crate) resume: ResumeIndex,
    /// How rows are identified: as requested, or by their numbers if the earlier run started so.
    pub(crate) ids: IdRule,
    /// The amount that it spent, or may have spent.
    pub(crate) spent: Spend,
}

/// Reads the state of an earlier run for the plan of a resume.
pub(crate) fn read_earlier_work(spec: &RunSpec, ids: IdRule) -> Result<EarlierWork, Problem> {
    let mut resume = ResumeIndex::new(spec.work.agents.retry_unknown);
    let mut spent = Spend::default();
    let folder = spec.work_folder().filter(|_| spec.existing.resumes());
    let path = folder.as_ref().and_then(|folder| spec.output.envelopes(folder)).filter(|path| path.exists());
    let (Some(folder), Some(path)) = (folder, path) else { return Ok(EarlierWork { resume, ids, spent }) };
    let store = RunStorage::look_at(&folder).store;
    let header = store.header()?;
    let mut known_by = header.as_ref().map_or(RowIdentity::ById(None), RowIdentity::of_header);
    scan_output(&path, |head| resume.add_output_row(&known_by.identify_head(head)))?;
    if let Some(header) = &header {
        resume.mark_settled_to(header.settled_to);
        (_, spent) = scan_ledger(&*store, header, &mut resume)?;
    }
    Ok(EarlierWork { resume, ids: known_by.id_rule(ids), spent })
}

/// Leaves an ended run with an empty ledger: the output has every record. The header
/// stays, so that a resume can tell whether its settings are the same.
pub(crate) fn compact_ledger(
    spec: &RunSpec,
    place: &RunStorage,
    header: &RunHeader,
    (end, all_ok): (&RunOutcome, bool),
) -> Result<(), Problem> {
    let judged_by = if end.history.rows > 0 { &end.history } else { &header.history };
    let next = RunHeader {
        telemetry: telemetry_base(spec, telemetry_length(spec)),
        spent: end.spent,
        history: judged_by.clone(),
        finished: all_ok,
        unfinished: unfinished(end),
        ..header.clone()
    };
    place.store.finish(next, RetainedRunParts::Header)
}

/// The header of an ended run whose ledger stays, up to `end_of_ledger`. The exact amount spent is
/// known now, so a resume need not assume the maximum in the ledger.
pub(crate) fn header_with_ledger(
    header: &RunHeader,
    end_of_ledger: LedgerPosition,
    end: &RunOutcome,
    output: Option<&OutputFile>,
) -> RunHeader {
    // The output has been put in order before.
    let settled_to = output.map_or(header.settled_to, |_| end_of_ledger);
    let ended = RunHeader { unfinished: unfinished(end), settled_to, ..header.clone() };
    match &end.stopped {
        // A ledger that could not be written may lack records.
        Some(StopCause::Problem(_)) => ended,
        _ => RunHeader { spent: end.spent, counted: end_of_ledger, ..ended },
    }
}

/// What is still to be done after the end of this part of the run.
fn unfinished(end: &RunOutcome) -> Option<UnfinishedRunEntry> {
    (end.stopped.is_some() || end.parked_rows > 0).then_some(UnfinishedRunEntry { rows: end.tally.all_rows })
}

/// The changes, one line for each setting.
pub(crate) fn listed_changes(changes: &[DiagnosticText]) -> String {
    changes.iter().map(DiagnosticText::with_mention_markers).collect::<Vec<_>>().join("\n  ")
}

/// The changes of settings, if the run may be resumed with them. As long as no row is ok, another model
/// or other texts cannot mix results in the output. Rows that wait for batch jobs count as well: their answers are
/// paid for, and other requests would not find them.
fn accepted_changes(
    before: &RunHeader,
    now: &RunHeader,
    existing: ExistingOutput,
    known: &ResumeCounts,
) -> Result<Vec<DiagnosticText>, Problem> {
    let changes = before.setting_changes(now);
    let mixes = known.done + known.parked > 0 || !before.fingerprint.reads_same_rows_as(&now.fingerprint);
    if changes.is_empty() || existing == ExistingOutput::ResumeChanged || !mixes {
        return Ok(changes);
    }
    let message =
        format!("the run to be resumed was started with different settings:\n  {}", listed_changes(&changes));
    let (old, new) = (&before.fingerprint, &now.fingerprint);
    let by_number = old.id_field.is_none() && new.id_field.is_none();
    Err(Problem::new(ProblemCode::ChangedRun, message).hint(match by_number && !old.reads_same_rows_as(new) {
        true => {
            format!(
                "add {ACCEPT_CHANGES} to continue: rows that are ok are kept under their old row numbers, so \
                 answers belong to the wrong rows if rows were added, removed or moved before them; to be \
                 safe, restore the earlier input, or start over with {OVERWRITE}"
            )
        }
        false if known.parked > 0 => {
            format!(
                "restore the earlier settings to collect the answers of the batch jobs; or add {ACCEPT_CHANGES} to \
                 send their rows again with the new settings: both are paid for"
            )
        }
        false => {
            format!(
                "add {ACCEPT_CHANGES} to continue: rows that are ok are kept, and the others are processed \
                 with the new settings; or restore the earlier settings"
            )
        }
    }))
}
