//! The ledger of a batch: where it is, and what a resume continues from.

use std::path::PathBuf;

use rowmill_core::fingerprint::{RunFingerprint, text_digest};
use rowmill_core::limits::Spend;
use rowmill_core::ports::{InputIdentity, OpenLedger, RetainedRunParts, RunLock};
use rowmill_core::resume::{ResumeExclusions, ResumeIndex};
use rowmill_core::run_header::RunHeader;
use rowmill_engine::AnswerCache;
use rowmill_types::{Problem, ProblemCode};

use super::items::ID_FIELD;
use crate::answer_cache::restore_answers_from_ledger;
use crate::plan_stand_ins::NoLedger;
use crate::query_recording::QueryRecording;
use crate::resume::{NewRun, RunBeginning, prepare_new_run, resume_run, start_new_run};
use crate::run::{run_id, run_on_thread, timestamp_text};
use crate::run_storage::{LedgerSettings, RunStorage};
use crate::spec::ExistingOutput;
use crate::work_spec::WorkSpec;

/// A folder on disk with the ledger of a batch, and what to do if there already is one.
///
/// An answer is in the ledger before a result is made from it. A resume returns the results of finished
/// items without calling the model again, and works on the others.
///
/// ```
/// use rowmill::{Batch, LedgerOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ledger");
/// let batch = |folder| Batch::over(["a"]).prompt(|item| *item).worker("passthrough").ledger(folder);
/// assert_eq!(batch(LedgerOptions::new(&path)).run_blocking()?.report.kept, 0);
/// assert_eq!(batch(LedgerOptions::resume(&path)).run_blocking()?.report.kept, 1);
/// assert_eq!(batch(LedgerOptions::overwrite(&path)).run_blocking()?.report.kept, 0);
/// assert!(batch(LedgerOptions::new(&path)).run_blocking().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOptions {
    path: PathBuf,
    existing: ExistingOutput,
}

impl LedgerOptions {
    fn of(path: impl Into<PathBuf>, existing: ExistingOutput) -> Self {
        Self { path: path.into(), existing }
    }

    /// Creates a new ledger in the folder; an existing ledger is an error.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(path, ExistingOutput::Refuse)
    }

    /// Resumes the existing ledger, if there is one. A different worker, instruction or type of answers
    /// is an error.
    pub fn resume(path: impl Into<PathBuf>) -> Self {
        Self::of(path, ExistingOutput::Resume)
    }

    /// Resumes the existing ledger, even with a different worker, instruction or type.
    pub fn resume_accepting_changes(path: impl Into<PathBuf>) -> Self {
        Self::of(path, ExistingOutput::ResumeChanged)
    }

    /// Deletes the existing ledger, if there is one, and starts a new one.
    pub fn overwrite(path: impl Into<PathBuf>) -> Self {
        Self::of(path, ExistingOutput::Overwrite)
    }
}

/// The state from which a batch starts.
pub(super) struct BatchStart {
    pub(super) run: String,
    pub(super) ledger: OpenLedger,
    pub(super) resume: ResumeIndex,
    pub(super) spent: Spend,
    /// Held for as long as the batch runs.
    pub(super) held: Option<LockedRun>,
}

/// The run of a batch, locked against other processes.
pub(super) struct LockedRun {
    place: RunStorage,
    header: RunHeader,
    ledger: OpenLedger,
    _lock: RunLock,
}

/// What answers, as far as a resume has to know it.
pub(super) struct WorkerIdentity {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) schema: Option<String>,
}

/// Opens the ledger of a batch, if it has one.
pub(super) async fn open_batch_ledger(
    folder: Option<LedgerOptions>,
    work: &WorkSpec,
    answers: Option<AnswerCache>,
    worker_identity: WorkerIdentity,
) -> Result<BatchStart, Problem> {
    let started = jiff::Timestamp::now();
    let run = run_id(started);
    let Some(LedgerOptions { path, existing }) = folder else {
        let (resume, spent) = (ResumeIndex::default(), Spend::default());
        return Ok(BatchStart { run, ledger: NoLedger::open(), resume, spent, held: None });
    };
    let settings = LedgerSettings::new(work, existing);
    let header = RunHeader::new(&run, &timestamp_text(started), &fingerprint(worker_identity), None);
    let begun = run_on_thread(move || {
        let place = RunStorage::open(&path).map_err(hint)?;
        let lock = place.store.lock().map_err(hint)?;
        if existing == ExistingOutput::Refuse && place.store.header()?.is_some() {
            let message = format!("`{}` has the ledger of an earlier batch", path.display());
            return Err(Problem::new(ProblemCode::OutputExists, message)
                .hint("continue it (`LedgerOptions::resume`) or replace it (`LedgerOptions::overwrite`)"));
        }
        if let Some(answers) = answers.filter(|_| existing.resumes()) {
            restore_answers_from_ledger(&answers, &*place.store)?;
        }
        let recording = QueryRecording::Unneeded;
        let beginning = match existing.resumes() {
            true => {
                let new = NewRun { header, input: None, recording, scope: ResumeExclusions::default() };
                resume_run(&settings, &place, None, new).map_err(hint)?
            }
            false => {
                let prepared = prepare_new_run(&settings, &place, header).map_err(hint)?;
                start_new_run(None, &place, prepared, recording)?
            }
        };
        Ok((place, lock, beginning))
    })
    .await?;
    let (place, lock, RunBeginning { header, ledger, resume, spent, .. }) = begun;
    // The id of the first run, so that the keys of calls are the same after a resume.
    let run = header.run.clone();
    let held = LockedRun { place, header, ledger: ledger.clone(), _lock: lock };
    Ok(BatchStart { run, ledger, resume, spent, held: Some(held) })
}

/// Records the exact amount spent, now that nothing is in flight any more. Until then, a resume assumes
/// the maximum that may have been spent, as the ledger records it.
pub(super) fn record_final_spend(held: LockedRun, spent: Spend) {
    let LockedRun { place, header, ledger, _lock } = held;
    let counted = ledger.ledger.position();
    // If this cannot be written, the amount in the ledger is safe, if not exact.
    place.store.finish(RunHeader { spent, counted, ..header }, RetainedRunParts::Ledger).ok();
}

/// Replaces the hint of a problem, which may name flags, by one for programs.
fn hint(problem: Problem) -> Problem {
    match problem.code {
        ProblemCode::OutputBusy => problem.hint("wait for it, or choose another folder"),
        ProblemCode::WriteFailed => problem.hint("choose another folder"),
        ProblemCode::ChangedRun => problem
            .hint("restore those settings, or use `LedgerOptions::resume_accepting_changes` to mix both"),
        _ => problem,
    }
}

/// The ids of items cover the prompts, so only the worker is compared.
fn fingerprint(worker_identity: WorkerIdentity) -> RunFingerprint {
    RunFingerprint {
        input: InputIdentity { path: "items".into(), size: None, probe: None },
        id_field: Some(ID_FIELD.into()),
        model: worker_identity.name,
        prompt: String::new(),
        instruction: Some(text_digest(&worker_identity.identity)),
        schema: worker_identity.schema.as_deref().map(text_digest),
        agents: None,
        query: None,
        delimiter: None,
        columns: None,
        files: None,
    }
}
