//! Inspects and prunes stores of cached answers.

use std::path::Path;
use std::sync::Arc;

pub use rowmill_store::answers::{AnswerStoreStats, PruneReport, PruneSpec, SqliteAnswerStore};
use rowmill_types::settings::CACHE;
use rowmill_types::{Problem, ProblemCode};

/// Statistics of the answer store in `folder`.
///
/// # Errors
///
/// There is no store, or it cannot be read.
pub fn cache_stats(folder: &Path) -> Result<AnswerStoreStats, Problem> {
    existing(folder)?.stats()
}

/// Removes answers from the store in `folder`; returns what was removed, and the statistics after it.
///
/// # Errors
///
/// There is no store, or it cannot be written.
pub fn prune_cache(folder: &Path, spec: PruneSpec) -> Result<(PruneReport, AnswerStoreStats), Problem> {
    let store = existing(folder)?;
    let pruned = store.prune(spec)?;
    Ok((pruned, store.stats()?))
}

/// Opens a store that exists; inspecting one must not create it.
fn existing(folder: &Path) -> Result<SqliteAnswerStore, Problem> {
    if !SqliteAnswerStore::file_in(folder).exists() {
        let message = format!("there is no answer cache in `{}`", folder.display());
        return Err(Problem::new(ProblemCode::CacheUnusable, message)
            .hint(format!("use the folder that a run was given with {CACHE}")));
    }
    // A problem with the file is returned as the problem of the call itself.
    SqliteAnswerStore::open(folder, Arc::new(drop))
}
