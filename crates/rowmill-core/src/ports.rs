//! The ports: what the engine needs from the outside, as traits.
//!
//! They live below their implementors, so adapters know neither each other nor
//! the engine.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use rowmill_types::{CallError, Completion, Problem, Request, SourceRow};
use serde::{Deserialize, Serialize};

/// Where rows come from; can be opened again unless it is a stream.
pub trait Dataset: Send + Sync + Debug {
    /// Starts a read from the first row.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn open(&self) -> Result<Box<dyn RowSource>, Problem>;

    /// Whether [`Dataset::open`] works more than once with the same rows.
    fn rereadable(&self) -> bool;

    /// What the input is, for the fingerprint of the run.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn identity(&self) -> Result<InputIdentity, Problem>;
}

/// Reads rows in input order, in blocking code, without reading ahead more than
/// it is asked for. The engine gives it a thread of its own.
pub trait RowSource: Send {
    /// Appends rows to `batch` until `room` is used up; `false` once the input has ended.
    ///
    /// A record that is no row is appended as a bad row, and reading goes on after it.
    ///
    /// # Errors
    ///
    /// The input cannot be read any further.
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem>;

    /// How far the read has come.
    fn position(&self) -> Position;
}

/// How much one [`RowSource::read`] may append. At least one row is always appended.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// At most this many rows.
    pub rows: usize,
    /// Stop once the rows' text takes this many bytes.
    pub bytes: usize,
}

/// How far a read has come, for progress and time left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes read so far.
    pub read: u64,
    /// Bytes there are in all, where known.
    pub total: Option<u64>,
}

/// What an input is, so that a resume can tell that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputIdentity {
    /// The absolute path, or `-` for standard input.
    pub path: String,
    /// The size in bytes, where it is a file.
    pub size: Option<u64>,
    /// A digest of the first and the last 64 KiB, where it is a file.
    pub probe: Option<String>,
}

/// Answers one turn.
///
/// Live calls, built-in models and fakes are all models. Whatever is the same
/// for every row is inside the model already.
///
/// # Contract
///
/// * Dropping the future ends the call, and nothing of it runs on.
/// * Never retries, sleeps for a retry or logs; it reports a
///   [`CallError`] and the engine decides.
/// * `request.key` is sent as an idempotency key where the provider has one.
pub trait Model: Send + Sync + Debug {
    /// Sends one turn and waits for the answer.
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>>;
}
