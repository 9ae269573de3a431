//! Stands in for Parquet files as inputs in a build without them.

use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::{CargoFeature, Problem};

use crate::FileList;

/// Always a problem: this build cannot read Parquet.
pub(crate) fn parquet_dataset(_list: FileList) -> Result<Arc<dyn Dataset>, Problem> {
    Err(CargoFeature::Parquet.missing_problem())
}
