//! Stands in for documents as rows in a build without them.

use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::{Feature, Problem};

use crate::{DocumentIds, FileList};

/// Always a problem: this build has no documents.
pub(crate) fn documents_dataset(_list: FileList, _ids: DocumentIds) -> Result<Arc<dyn Dataset>, Problem> {
    Err(Feature::Documents.missing_problem())
}
