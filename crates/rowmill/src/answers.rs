//! Answers that are used again: within a run, or from a cache.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::RunStore;
use rowmill_core::record::{ReusableAnswer, Reused};
use rowmill_engine::Answers;
use rowmill_store::answers::SqliteAnswers;
use rowmill_store::file::WorkFolder;
use rowmill_types::Problem;

use crate::inputs::Tell;
use crate::spec::RunSpec;

/// How many answers are given back to a store at once.
const RESTORED_AT_ONCE: usize = 1024;

/// Opens the store that `--cache` or `--dedupe` asks for. Without a cache, answers are kept
/// in the work folder for as long as the run is unfinished.
pub(crate) fn answers(
    spec: &RunSpec,
    folder: &WorkFolder,
    identity: String,
    warn: Tell,
) -> Result<Option<Answers>, Problem> {
    let (place, kept_before) = match (&spec.work.cache, spec.work.dedupe) {
        (Some(folder), _) => (folder.clone(), Reused::Cache),
        (None, true) => (folder.answers(), Reused::Duplicate),
        (None, false) => return Ok(None),
    };
    Ok(Some(Answers { kept_before, ..cached(&place, identity, warn)? }))
}

/// Opens a store of answers that earlier runs may have filled.
pub(crate) fn cached(folder: &Path, identity: String, warn: Tell) -> Result<Answers, Problem> {
    let store = SqliteAnswers::open(folder, Arc::new(move |text| warn(text.into())))?;
    Ok(Answers { store: Arc::new(store), identity, kept_before: Reused::Cache })
}

/// Gives a store the answers that the ledger of an earlier run has and that the store did not
/// get before the run was killed: they are paid for.
pub(crate) fn restore(answers: &Answers, store: &dyn RunStore) -> Result<(), Problem> {
    let mut found = Vec::new();
    store.scan(&mut |scanned| {
        if matches!(scanned.event, LedgerEvent::Ended(_)) {
            found.extend(ReusableAnswer::in_line(scanned.line));
        }
        if found.len() >= RESTORED_AT_ONCE {
            answers.store.restore(std::mem::take(&mut found))?;
        }
        Ok(())
    })?;
    if found.is_empty() { Ok(()) } else { answers.store.restore(found) }
}
