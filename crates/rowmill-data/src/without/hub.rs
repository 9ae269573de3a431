//! Stands in for the hub in a build without it.

use std::path::PathBuf;

use rowmill_types::{CargoFeature, Problem};

use crate::fetch::{FetchPurpose, Fetcher};
use crate::{FileList, HubAddress};

/// Always a problem: this build cannot fetch from the hub.
pub(crate) async fn fetch_hub_files(
    _fetcher: &Fetcher<'_>,
    _address: &HubAddress,
    _purpose: FetchPurpose,
) -> Result<FileList, Problem> {
    Err(CargoFeature::Hub.missing_problem())
}

/// Always a problem: this build cannot fetch from the hub.
pub(crate) async fn fetch_single_file(
    _fetcher: &Fetcher<'_>,
    _address: &HubAddress,
) -> Result<PathBuf, Problem> {
    Err(CargoFeature::Hub.missing_problem())
}
