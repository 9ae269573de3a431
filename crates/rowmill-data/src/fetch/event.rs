//! Events that are reported while something is fetched.

use std::sync::Arc;
use std::time::Duration;

/// An event of a file that is being fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchEvent {
    /// Which file; several can be fetched at once.
    pub name: Arc<str>,
    /// What happened.
    pub step: FetchEventKind,
}

/// What happened to a file that is being fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchEventKind {
    /// A download starts, or continues with a partial file.
    Started {
        /// Bytes that are already downloaded.
        done: u64,
        /// Total bytes, if known.
        total: Option<u64>,
    },
    /// More bytes have arrived.
    Progress {
        /// Bytes downloaded so far.
        done: u64,
        /// Total bytes, if known.
        total: Option<u64>,
    },
    /// The file is downloaded and verified.
    Finished {
        /// Its size.
        bytes: u64,
    },
    /// The cached file is still current.
    AlreadyCached {
        /// Its size.
        bytes: u64,
    },
    /// The next attempt has to wait.
    Waiting {
        /// How long, if known.
        wait: Option<Duration>,
        /// The reason for the wait.
        reason: String,
    },
    /// Something that may be wrong.
    Warning(String),
}
