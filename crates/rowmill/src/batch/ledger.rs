//! The ledger of a batch: where it is, and what a resume continues from.

use std::path::PathBuf;

use rowmill_core::fingerprint::{Fingerprint, digest};
use rowmill_core::limits::Spend;
use rowmill_core::ports::{InputIdentity, OpenLedger, Retention, RunLock};
use rowmill_core::resume::Resume;
use rowmill_core::run_header::RunHeader;
use rowmill_engine::Answers;
use rowmill_types::{Problem, ProblemCode};

use super::items::ID_FIELD;
use crate::answers::restore;
use crate::counting::NoLedger;
use crate::recorded::Recording;
use crate::resume::{Beginning, NewRun, fresh, prepare_fresh, resumed};
use crate::run::{on_thread, run_id, seconds};
use crate::run_place::{LedgerSettings, RunPlace};
use crate::spec::Existing;
use crate::work::WorkSpec;

/// A folder on disk with the ledger of a batch, and what to do if there already is one.
///
/// An answer is in the ledger before a result is made from it. A resume returns the results of finished
/// items without calling the model again, and works on the others.
///
/// ```
/// use rowmill::{Batch, LedgerFolder};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ledger");
/// let batch = |folder| Batch::over(["a"]).prompt(|item| *item).worker("passthrough").ledger(folder);
/// assert_eq!(batch(LedgerFolder::new(&path)).run_blocking()?.report.kept, 0);
/// assert_eq!(batch(LedgerFolder::resume(&path)).run_blocking()?.report.kept, 1);
/// assert_eq!(batch(LedgerFolder::replace(&path)).run_blocking()?.report.kept, 0);
/// assert!(batch(LedgerFolder::new(&path)).run_blocking().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerFolder {
    path: PathBuf,
    existing: Existing,
}

impl LedgerFolder {
    fn of(path: impl Into<PathBuf>, existing: Existing) -> Self {
        Self { path: path.into(), existing }
    }

    /// Creates a new ledger in the folder; an existing ledger is an error.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::Refuse)
    }

    /// Resumes the existing ledger, if there is one. A different worker, instruction or type of answers
    /// is an error.
    pub fn resume(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::Resume)
    }

    /// Resumes the existing ledger, even with a different worker, instruction or type.
    pub fn resume_changed(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::ResumeChanged)
    }

    /// Deletes the existing ledger, if there is one, and starts a new one.
    pub fn replace(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::Overwrite)
    }
}

/// The state from which a batch starts.
pub(super) struct Begun {
    pub(super) run: String,
    pub(super) ledger: OpenLedger,
    pub(super) resume: Resume,
    pub(super) spent: Spend,
    /// Held for as long as the batch runs.
    pub(super) held: Option<HeldRun>,
}

/// The run of a batch, locked against other processes.
pub(super) struct HeldRun {
    place: RunPlace,
    header: RunHeader,
    ledger: OpenLedger,
    _lock: RunLock,
}

/// What answers, as far as a resume has to know it.
pub(super) struct Speaker {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) schema: Option<String>,
}

/// Opens the ledger of a batch, if it has one.
pub(super) async fn begin(
    folder: Option<LedgerFolder>,
    work: &WorkSpec,
    answers: Option<Answers>,
    speaker: Speaker,
) -> Result<Begun, Problem> {
    let started = jiff::Timestamp::now();
    let run = run_id(started);
    let Some(LedgerFolder { path, existing }) = folder else {
        let (resume, spent) = (Resume::default(), Spend::default());
        return Ok(Begun { run, ledger: NoLedger::open(), resume, spent, held: None });
    };
    let settings = LedgerSettings::new(work, existing);
    let header = RunHeader::new(&run, &seconds(started), &fingerprint(speaker), None);
    let begun = on_thread(move || {
        let place = RunPlace::open(&path).map_err(hint)?;
        let lock = place.store.lock().map_err(hint)?;
        if existing == Existing::Refuse && place.store.header()?.is_some() {
            let message = format!("`{}` has the ledger of an earlier batch", path.display());
            return Err(Problem::new(ProblemCode::OutputExists, message)
                .hint("continue it (`LedgerFolder::resume`) or replace it (`LedgerFolder::replace`)"));
        }
        if let Some(answers) = answers.filter(|_| existing.resumes()) {
            restore(&answers, &*place.store)?;
        }
        let recording = Recording::Unneeded;
        let beginning = match existing.resumes() {
            true => {
                let new = NewRun { header, input: None, recording };
                resumed(&settings, &place, None, new).map_err(hint)?
            }
            false => {
                let prepared = prepare_fresh(&settings, &place, header).map_err(hint)?;
                fresh(None, &place, prepared, recording)?
            }
        };
        Ok((place, lock, beginning))
    })
    .await?;
    let (place, lock, Beginning { header, ledger, resume, spent, .. }) = begun;
    // The id of the first run, so that the keys of calls are the same after a resume.
    let run = header.run.clone();
    let held = HeldRun { place, header, ledger: ledger.clone(), _lock: lock };
    Ok(Begun { run, ledger, resume, spent, held: Some(held) })
}

/// Records the exact amount spent, now that nothing is in flight any more. Until then, a resume assumes
/// the maximum that may have been spent, as the ledger records it.
pub(super) fn settle(held: HeldRun, spent: Spend) {
    let HeldRun { place, header, ledger, _lock } = held;
    let counted = ledger.ledger.position();
    // If this cannot be written, the amount in the ledger is safe, if not exact.
    place.store.finish(RunHeader { spent, counted, ..header }, Retention::Ledger).ok();
}

/// Replaces the hint of a problem, which may name flags, by one for programs.
fn hint(problem: Problem) -> Problem {
    match problem.code {
        ProblemCode::OutputBusy => problem.hint("wait for it, or choose another folder"),
        ProblemCode::WriteFailed => problem.hint("choose another folder"),
        ProblemCode::ChangedRun => {
            problem.hint("restore those settings, or use `LedgerFolder::resume_changed` to mix both")
        }
        _ => problem,
    }
}

/// The ids of items cover the prompts, so only the worker is compared.
fn fingerprint(speaker: Speaker) -> Fingerprint {
    Fingerprint {
        input: InputIdentity { path: "items".into(), size: None, probe: None },
        id_field: Some(ID_FIELD.into()),
        model: speaker.name,
        prompt: String::new(),
        instruction: Some(digest(&speaker.identity)),
        schema: speaker.schema.as_deref().map(digest),
        agents: None,
        query: None,
        delimiter: None,
        columns: None,
        files: None,
    }
}
