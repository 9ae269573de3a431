//! Stands in for documents as rows in a build without them.

use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::{CargoFeature, Problem};

use crate::{DocumentIdRule, FileList};

/// Always a problem: this build has no documents.
pub(crate) fn documents_dataset(_list: FileList, _ids: DocumentIdRule) -> Result<Arc<dyn Dataset>, Problem> {
    Err(CargoFeature::Documents.missing_problem())
}
