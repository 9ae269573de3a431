//! From a location that is elsewhere to files of this machine.

use std::fmt;

use rowmill_http::HttpClient;
use rowmill_types::Problem;

use super::event::{FetchEvent, FetchStep};
use super::settings::FetchSettings;
use super::web::web;
use crate::Location;

/// Who fetches: with what settings and over which connections, and who hears of it.
#[derive(Clone, Copy)]
pub struct Fetcher<'a> {
    /// Where files are kept and how the hub is reached.
    pub settings: &'a FetchSettings,
    /// The connections.
    pub http: &'a HttpClient,
    /// Hears of what happens, so that a person can be shown it.
    pub told: &'a (dyn Fn(FetchEvent) + Send + Sync),
}

/// What an input is fetched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Its rows, as they are kept.
    Rows,
    /// A query, for which a dataset of the hub is taken as converted Parquet.
    Sql,
}

/// Brings what is elsewhere onto this machine; locations of this machine come back as they are.
///
/// What was fetched before is used again if it has not changed. A download that was cut goes on
/// where it ended, in this call and in a later one.
///
/// # Errors
///
/// The location does not exist, is refused, is ambiguous, or did not come whole.
pub async fn bring(
    location: &Location,
    purpose: Purpose,
    fetcher: &Fetcher<'_>,
) -> Result<Location, Problem> {
    match location {
        Location::Web(url) => web(fetcher, url).await.map(Location::Files),
        Location::Hub(address) => crate::hub::fetch(fetcher, address, purpose).await.map(Location::Files),
        Location::Stdin | Location::File(_) | Location::Pattern(_) | Location::Files(_) => {
            Ok(location.clone())
        }
    }
}

impl Fetcher<'_> {
    pub(crate) fn tell(&self, name: &str, step: FetchStep) {
        (self.told)(FetchEvent { name: name.into(), step });
    }
}

impl fmt::Debug for Fetcher<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fetcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}
