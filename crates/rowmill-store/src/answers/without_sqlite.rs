//! Stands in for the store in a build without it.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{AnswerKey, AnswerStore, StoredAnswer};
use rowmill_types::{CargoFeature, Problem};

use super::{AnswerStoreStats, PruneReport, PruneSpec};

/// Answers in an SQLite file, which this build cannot open.
#[derive(Debug)]
pub struct SqliteAnswerStore(Infallible);

impl SqliteAnswerStore {
    /// Would open the store in `folder`.
    ///
    /// # Errors
    ///
    /// Always: this build has no store of answers.
    pub fn open(_folder: &Path, _notice: Arc<dyn Fn(String) + Send + Sync>) -> Result<Self, Problem> {
        Err(CargoFeature::Cache.missing_problem())
    }

    /// All existing files with a store's names in `folder`: this build cannot tell whose they are.
    #[must_use]
    pub fn foreign_files_in(folder: &Path) -> Vec<PathBuf> {
        Self::files_in(folder).into_iter().filter(|file| file.is_file()).collect()
    }

    /// The content of the store.
    ///
    /// # Errors
    ///
    /// There is no store that could fail.
    pub fn stats(&self) -> Result<AnswerStoreStats, Problem> {
        match self.0 {}
    }

    /// Removes answers.
    ///
    /// # Errors
    ///
    /// There is no store that could fail.
    pub fn prune(&self, _spec: PruneSpec) -> Result<PruneReport, Problem> {
        match self.0 {}
    }
}

impl AnswerStore for SqliteAnswerStore {
    fn find(&self, _key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
        match self.0 {}
    }

    fn store(&self, _key: AnswerKey, _answer: &StoredAnswer) {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_a_store_is_a_problem_that_names_the_feature() {
        let problem = SqliteAnswerStore::open(Path::new("."), Arc::new(drop)).unwrap_err();
        assert_eq!(
            problem.message.to_string(),
            "this build has no store of answers: enable the feature `cache`"
        );
    }
}
