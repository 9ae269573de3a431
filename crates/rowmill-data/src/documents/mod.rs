//! A folder of files: one row per file.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::{Problem, ProblemCode};

use crate::{FileList, Format};

/// The files of a folder and its folders: those with an ending of `format`, or all.
pub(crate) fn files_of_folder(path: &Path, format: Option<Format>) -> Result<FileList, Problem> {
    Err(Problem::new(ProblemCode::InputFormat, format!("`{}` {format:?} cannot be read yet", path.display())))
}

/// The dataset of documents.
pub(crate) fn dataset(list: FileList) -> Result<Arc<dyn Dataset>, Problem> {
    Err(Problem::new(ProblemCode::InputFormat, format!("`{}` cannot be read yet", list.name)))
}
