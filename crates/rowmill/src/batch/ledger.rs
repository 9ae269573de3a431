//! Where a batch keeps its ledger, and what it continues from.

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

/// A folder on disk with the ledger of a batch, and what may be done with one that is there.
///
/// An answer is in the ledger before anything is made of it. A resume gives the results of items
/// that are done without asking again, and works on the others.
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

    /// A folder for a new ledger; one that is there already is an error.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::Refuse)
    }

    /// Resumes the ledger that is there, if there is one. Another worker, instruction or type
    /// of answers is an error.
    pub fn resume(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::Resume)
    }

    /// Resumes the ledger that is there, even with another worker, instruction or type.
    pub fn resume_changed(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::ResumeChanged)
    }

    /// Forgets the ledger that is there, if there is one.
    pub fn replace(path: impl Into<PathBuf>) -> Self {
        Self::of(path, Existing::Overwrite)
    }
}

/// What a batch begins from.
pub(super) struct Begun {
    pub(super) run: String,
    pub(super) ledger: OpenLedger,
    pub(super) resume: Resume,
    pub(super) spent: Spend,
    /// Kept for as long as the batch runs.
    pub(super) held: Option<HeldRun>,
}

/// The run of a batch that nobody else can carry out meanwhile.
pub(super) struct HeldRun {
    place: RunPlace,
    header: RunHeader,
    ledger: OpenLedger,
    _lock: RunLock,
}

/// Who answers, as far as a resume has to know.
pub(super) struct Speaker {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) schema: Option<String>,
}

/// Opens the ledger of a batch; nothing is kept where none is wanted.
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
                .hint("go on with it (`LedgerFolder::resume`) or forget it (`LedgerFolder::replace`)"));
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
    // The id that the batch began with, so that keys of calls are the same after a resume.
    let run = header.run.clone();
    let held = HeldRun { place, header, ledger: ledger.clone(), _lock: lock };
    Ok(Begun { run, ledger, resume, spent, held: Some(held) })
}

/// Puts down what was spent, now that nothing is in flight any more. Until then a resume counts
/// the most that it can have been, which is what the ledger says.
pub(super) fn settle(held: HeldRun, spent: Spend) {
    let HeldRun { place, header, ledger, _lock } = held;
    let counted = ledger.ledger.position();
    // Where this cannot be written, what the ledger says is safe if not exact.
    place.store.finish(RunHeader { spent, counted, ..header }, Retention::Ledger).ok();
}

/// The same problem with what a program can do about it, where a command would name its flags.
fn hint(problem: Problem) -> Problem {
    match problem.code {
        ProblemCode::OutputBusy => problem.hint("wait for it, or choose another folder"),
        ProblemCode::WriteFailed => problem.hint("choose another folder"),
        ProblemCode::ChangedRun => {
            problem.hint("go back to those settings, or use `LedgerFolder::resume_changed` to mix both")
        }
        _ => problem,
    }
}

/// Items name what is asked themselves, so only who is asked is looked at.
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
