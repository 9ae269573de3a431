//! Fetches a remote location into local files.

use std::fmt;

use rowmill_http::HttpClient;
use rowmill_types::Problem;

use super::event::FetchEvent;
use super::settings::FetchSettings;
use crate::InputLocation;
use crate::download::fetch_web_file;

/// Fetches remote files with these settings and connections, and reports progress.
#[derive(Clone, Copy)]
pub struct Fetcher<'a> {
    /// Where files are cached and how the hub is reached.
    pub settings: &'a FetchSettings,
    /// The connections.
    pub http: &'a HttpClient,
    /// Receives progress events, for display.
    pub on_event: &'a (dyn Fn(FetchEvent) + Send + Sync),
}

/// Why an input is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchPurpose {
    /// To read its rows in its own format.
    Rows,
    /// For a query; a dataset of the hub is then taken as converted Parquet.
    Sql,
}

/// Downloads a remote location; local locations are returned unchanged.
///
/// A cached file is reused if it has not changed. An interrupted download continues where it stopped, in this
/// call or in a later one.
///
/// # Errors
///
/// The location does not exist, access is refused, it is ambiguous, or the download is incomplete.
pub async fn fetch_to_disk(
    location: &InputLocation,
    purpose: FetchPurpose,
    fetcher: &Fetcher<'_>,
) -> Result<InputLocation, Problem> {
    match location {
        InputLocation::Web(url) => fetch_web_file(fetcher, url).await.map(InputLocation::Files),
        InputLocation::Hub(address) => {
            crate::hub::fetch_hub_files(fetcher, address, purpose).await.map(InputLocation::Files)
        }
        InputLocation::Stdin
        | InputLocation::File(_)
        | InputLocation::Pattern(_)
        | InputLocation::Files(_) => Ok(location.clone()),
    }
}

impl fmt::Debug for Fetcher<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fetcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}
