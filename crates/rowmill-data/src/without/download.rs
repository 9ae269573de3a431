//! Stands in for downloads in a build without remote files.

use rowmill_http::Url;
use rowmill_types::{CargoFeature, Problem};

use crate::FileList;
use crate::fetch::Fetcher;

/// Always a problem: this build cannot download files.
pub(crate) async fn fetch_web_file(_fetcher: &Fetcher<'_>, _url: &Url) -> Result<FileList, Problem> {
    Err(CargoFeature::Hub.missing_problem())
}
