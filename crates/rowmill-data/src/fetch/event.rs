//! What is told while something is fetched.

use std::sync::Arc;
use std::time::Duration;

/// Something that happened to a file that is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchEvent {
    /// Which file; several can be under way at once.
    pub name: Arc<str>,
    /// What happened.
    pub step: FetchStep,
}

/// What happened to a file that is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchStep {
    /// A download begins, or goes on from what came before.
    Started {
        /// Bytes that are there already.
        done: u64,
        /// Bytes there are in all, where known.
        total: Option<u64>,
    },
    /// More has come.
    Progress {
        /// Bytes that are there now.
        done: u64,
        /// Bytes there are in all, where known.
        total: Option<u64>,
    },
    /// The file is there and verified.
    Finished {
        /// Its size.
        bytes: u64,
    },
    /// The file was there already and is still the right one.
    Kept {
        /// Its size.
        bytes: u64,
    },
    /// Something is waited for before the next try.
    Waiting {
        /// How long, where known.
        wait: Option<Duration>,
        /// For what.
        reason: String,
    },
    /// What may not be as it should.
    Warning(String),
}

impl FetchStep {
    /// Another process is fetching the same file.
    pub(crate) fn another_process() -> Self {
        Self::Waiting { wait: None, reason: "another process is downloading it".into() }
    }
}
