//! Stores of answers, for those who look after them: what is in one, and making it smaller.

use std::path::Path;
use std::sync::Arc;

pub use rowmill_store::answers::{PruneSpec, Pruned, SqliteAnswers, Stats};
use rowmill_types::settings::CACHE;
use rowmill_types::{Problem, ProblemCode};

/// What the store in `folder` holds.
///
/// # Errors
///
/// There is no store, or it cannot be read.
pub fn stats(folder: &Path) -> Result<Stats, Problem> {
    existing(folder)?.stats()
}

/// Removes answers from the store in `folder`, and says what is left too.
///
/// # Errors
///
/// There is no store, or it cannot be written.
pub fn prune(folder: &Path, spec: PruneSpec) -> Result<(Pruned, Stats), Problem> {
    let store = existing(folder)?;
    let pruned = store.prune(spec)?;
    Ok((pruned, store.stats()?))
}

/// Looking at a store must not make one.
fn existing(folder: &Path) -> Result<SqliteAnswers, Problem> {
    if !SqliteAnswers::file_in(folder).exists() {
        let message = format!("there is no answer cache in `{}`", folder.display());
        return Err(Problem::new(ProblemCode::CacheUnusable, message)
            .hint(format!("use the folder that a run was given with {CACHE}")));
    }
    // What the file cannot do is told as the problem of the call itself.
    SqliteAnswers::open(folder, Arc::new(drop))
}
