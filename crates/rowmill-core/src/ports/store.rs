//! State that outlives a process: the header of a run, and the ledger of its events.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rowmill_types::{Problem, RowId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AnswerKey;
use crate::ledger::LedgerEvent;
use crate::limits::Spend;
use crate::record::RowRecord;
use crate::run_header::RunHeader;

/// The storage of one run: a folder, or rows in a database.
///
/// A process learns about the work of earlier processes only through this port. A run can be appended to only through
/// what [`RunStore::begin`] and [`RunStore::reopen`] open.
///
/// # Contract
///
/// * Whenever a process is killed, the run is left as it was before or after one of these calls.
/// * Anyone may read ([`RunStore::header`], [`RunStore::scan`], [`RunStore::reader`]), even while another process
///   carries out the run. Only the holder of the lock may change it.
/// * Every time a run is begun or resumed, it gets an [`RunEpoch`] that it never had before.
/// * Every method may block, except for [`Ledger::append`].
pub trait RunStore: Send + Sync + Debug {
    /// Locks the run against other processes.
    ///
    /// # Errors
    ///
    /// Another process holds the lock.
    fn lock(&self) -> Result<RunLock, Problem>;

    /// The header of the run; `None` if there is no run.
    ///
    /// # Errors
    ///
    /// The header cannot be read, or its format is unknown to this version.
    fn header(&self) -> Result<Option<RunHeader>, Problem>;

    /// Prepares a new run beside an existing one. It has no effect before [`RunStore::begin`].
    ///
    /// # Errors
    ///
    /// There is no room for it; nothing is left behind.
    fn prepare(&self, header: RunHeader, room: LedgerRequirements) -> Result<PreparedRun, Problem>;

    /// Replaces the existing run, if any, by the prepared one, whose ledger is empty.
    ///
    /// # Errors
    ///
    /// It could not be replaced.
    fn begin(&self, prepared: PreparedRun) -> Result<OpenLedger, Problem>;

    /// Undoes [`RunStore::prepare`].
    fn discard_prepared(&self, prepared: PreparedRun);

    /// Resumes the run under a new header, appending after its existing events.
    ///
    /// # Errors
    ///
    /// The ledger cannot be opened, or the header cannot be replaced; the run is unchanged.
    fn reopen(&self, header: RunHeader, room: LedgerRequirements) -> Result<OpenLedger, Problem>;

    /// Passes every event of the run to `see`, in the order in which they were appended, and returns the position of
    /// the next one. A partial event left by a crash is skipped. A missing run has no events.
    ///
    /// # Errors
    ///
    /// An event cannot be read, or `see` fails.
    fn scan(
        &self,
        see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
    ) -> Result<LedgerPosition, Problem>;

    /// Reads events back by their ids.
    ///
    /// # Errors
    ///
    /// There is no readable ledger.
    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem>;

    /// Stores the final header now that nobody appends to the run any more, and removes what is not to be kept.
    ///
    /// # Errors
    ///
    /// The header cannot be replaced; the run is unchanged.
    fn finish(&self, header: RunHeader, retention: RetainedRunParts) -> Result<(), Problem>;

    /// Deletes the run and all its data.
    ///
    /// # Errors
    ///
    /// It cannot be deleted.
    fn remove(&self) -> Result<(), Problem>;
}

/// Appends events to a run.
///
/// # Contract
///
/// * Once `append` has returned, the group survives a kill of the process, and readers find it.
/// * A group is complete or, after a crash during the write, a prefix of its events.
/// * Appends with an epoch that is over are refused.
pub trait Ledger: Send + Sync + Debug {
    /// Appends a group of events.
    ///
    /// # Errors
    ///
    /// The events could not be written, even with the reserve, or another process has taken over the run. Earlier
    /// groups are safe.
    fn append<'a>(
        &'a self,
        epoch: RunEpoch,
        group: EventGroup<'a>,
    ) -> BoxFuture<'a, Result<AppendOutcome, Problem>>;

    /// Opens a reader of records while the run continues.
    ///
    /// # Errors
    ///
    /// The ledger cannot be opened for reading.
    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem>;

    /// The position of the next event.
    fn position(&self) -> LedgerPosition;

    /// Whether it stores anything; if not, records are not even created for it.
    fn is_persistent(&self) -> bool {
        true
    }
}

/// Reads events back.
pub trait RecordReader: Send {
    /// The event with this id, byte for byte as it was appended.
    ///
    /// # Errors
    ///
    /// There is no such event, or it cannot be read.
    fn read(&mut self, id: LedgerRecordId) -> Result<Vec<u8>, Problem>;
}

/// The lock on a run: no other process can carry the run out while this is alive.
#[must_use]
pub struct RunLock(#[expect(dead_code, reason = "held for what its end does")] Box<dyn Send + Sync>);

impl RunLock {
    /// A lock that is released when `guard` is dropped.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

impl Debug for RunLock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RunLock")
    }
}

/// A ledger that is open for one part of a run: from its start or a resume to its end.
#[derive(Debug, Clone)]
pub struct OpenLedger {
    /// The ledger to append to.
    pub ledger: Arc<dyn Ledger>,
    /// The part of the run.
    pub epoch: RunEpoch,
}

/// A new run that is ready but not yet in effect.
#[derive(Debug)]
pub struct PreparedRun {
    /// The header of the run.
    pub header: RunHeader,
    /// Its empty ledger.
    pub ledger: OpenLedger,
}

/// The load that a store must be prepared for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerRequirements {
    /// The number of rows whose records must still fit when the disk is full.
    pub rows: usize,
    /// Whether every group is forced to disk, so that it survives a power failure.
    pub durability: Durability,
}

/// What recorded events survive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// A crash of the process: they are passed to the operating system.
    #[default]
    Process,
    /// A power failure: they are synced to disk.
    Power,
}

/// Counts the parts of a run: every resume starts a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunEpoch(pub u64);

impl RunEpoch {
    /// The epoch of the part that follows this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A position between two events of a ledger. Its value is opaque outside the store; later positions are larger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LedgerPosition(u64);

impl LedgerPosition {
    /// The position before all events.
    pub const START: Self = Self(0);

    /// For stores: the position with this key.
    #[must_use]
    pub fn from_key(key: u64) -> Self {
        Self(key)
    }

    /// For stores: the key of the position.
    #[must_use]
    pub fn key(self) -> u64 {
        self.0
    }
}

/// Identifies an event of a ledger. Opaque outside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LedgerRecordId {
    position: LedgerPosition,
    bytes: u32,
}

impl LedgerRecordId {
    /// For stores: the event at `position` with this length in bytes.
    #[must_use]
    pub fn new(position: LedgerPosition, bytes: usize) -> Self {
        Self { position, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
    }

    /// The position before the event.
    #[must_use]
    pub fn position(self) -> LedgerPosition {
        self.position
    }

    /// For stores: the length of the event.
    #[must_use]
    pub fn event_length(self) -> usize {
        self.bytes as usize
    }
}

/// An event found in a ledger.
#[derive(Debug)]
pub struct ScannedEvent<'a> {
    /// The id by which it can be read back.
    pub id: LedgerRecordId,
    /// The parsed event.
    pub event: LedgerEvent,
    /// The event as it was appended.
    pub line: &'a [u8],
}

/// What to keep of a run that nobody appends to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedRunParts {
    /// Header and ledger.
    Ledger,
    /// Only the header: the content of the ledger is stored in another place too.
    Header,
}

/// Events that are appended together.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventGroup<'a> {
    /// Rows that are about to be sent.
    pub taken: &'a [NamedRow],
    /// Records of rows that have ended.
    pub records: &'a [RowRecord],
    /// Step events of rows that are still being worked on, if turns are kept.
    pub turns: &'a [RowStepEvent],
    /// Rows that wait for something outside of this process and are not in flight in the meantime.
    pub parked: &'a [ParkedRow],
    /// Rows that were taken and are released: nothing is in flight for them, and nothing was answered.
    pub released: &'a [NamedRow],
    /// An upper bound of what the run has spent, including everything in flight.
    pub spent_at_most: Option<Spend>,
    /// Further events to record.
    pub notes: &'a [LedgerExtensionEvent],
}

/// A row as identified in events about several rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// Its number when the event was appended.
    pub number: u64,
    /// Its id, which identifies the row even if rows have moved. It is the row's number if the row has no other id or
    /// if an earlier version appended the event.
    pub id: RowId,
}

/// A step event of a row that is still being worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowStepEvent {
    /// The row.
    pub row: u64,
    /// Its id, which identifies the row even if rows have moved.
    pub id: RowId,
    /// The key of the row's request: turns can be reused only while the row's request is the same.
    pub answer_key: AnswerKey,
    /// The step event, as written by [`crate::agent::StepEvent::write`].
    pub step_event: Vec<u8>,
}

/// A row that waits for something outside of this process: none of its calls is in flight, and none has an unknown
/// outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedRow {
    /// The row.
    pub row: u64,
    /// Its id, which identifies the row even if rows have moved.
    pub id: RowId,
    /// Identifiers of what it waits for, known to whoever parked it; several if several calls were parked.
    pub waits_for: Vec<String>,
    /// Set if it had failed before: the part of the run in which it was started again. The keys of its requests depend
    /// on it.
    pub failed_before: Option<RunEpoch>,
}

/// An event that the engine itself does not use, such as a step of a batch job at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerExtensionEvent {
    /// The name of the event; different from the names of all engine events.
    pub kind: String,
    /// Whether a reader that does not know the kind must refuse to continue the run.
    pub required: bool,
    /// The data, as one JSON value without a newline.
    pub data: String,
}

/// The result of [`Ledger::append`].
#[derive(Debug)]
pub struct AppendOutcome {
    /// The ids of the group's records, in order.
    pub records: Vec<LedgerRecordId>,
    /// Set if the events could be written only with the reserve: the run must stop taking rows, for this reason.
    pub problem: Option<Problem>,
}
