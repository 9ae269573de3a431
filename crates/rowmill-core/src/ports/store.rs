//! What outlives a process: the header of a run, and the ledger of what happened in it.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rowmill_types::{Problem, RowId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AskedKey;
use crate::ledger::LedgerEvent;
use crate::limits::Spend;
use crate::record::Record;
use crate::run_header::RunHeader;

/// The place where one run is kept: a folder, or its rows in a database.
///
/// Everything that a process needs to know of the work of an earlier one goes through this port.
/// What [`RunStore::begin`] and [`RunStore::take_up`] open is the only way to add to a run.
///
/// # Contract
///
/// * Whatever moment a process is killed at, the run is there as it was before or after each call.
/// * Anyone may look ([`RunStore::header`], [`RunStore::scan`], [`RunStore::reader`]), also while
///   another process carries out the run. Only who holds the lock may change it.
/// * Every time a run is begun or taken up, it gets an [`Epoch`] that it never had before.
/// * All of it may block, except for [`Ledger::append`].
pub trait RunStore: Send + Sync + Debug {
    /// Keeps other processes away from the run for as long as the lock is held.
    ///
    /// # Errors
    ///
    /// Another process has it.
    fn lock(&self) -> Result<RunLock, Problem>;

    /// What is kept of the run; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The header cannot be read, or is of a format that this version does not know.
    fn header(&self) -> Result<Option<RunHeader>, Problem>;

    /// Makes a new run ready beside whatever is there. Nothing of it counts before
    /// [`RunStore::begin`].
    ///
    /// # Errors
    ///
    /// There is no room for it; nothing is left of the attempt.
    fn prepare(&self, header: RunHeader, room: LedgerRoom) -> Result<PreparedRun, Problem>;

    /// Replaces whatever is there by the prepared run, whose ledger is empty.
    ///
    /// # Errors
    ///
    /// It could not be replaced.
    fn begin(&self, prepared: PreparedRun) -> Result<OpenLedger, Problem>;

    /// Takes back what [`RunStore::prepare`] made.
    fn cancel(&self, prepared: PreparedRun);

    /// Continues with the run under a new header, behind the events that it has.
    ///
    /// # Errors
    ///
    /// The ledger cannot be opened, or the header not be replaced; the run is as it was before.
    fn take_up(&self, header: RunHeader, room: LedgerRoom) -> Result<OpenLedger, Problem>;

    /// Gives every event of the run to `see`, in the order in which they were appended, and tells where the
    /// next one will stand. What a crash cut short is left out. A run that is not there has no events.
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
    /// There is no ledger that could be read.
    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem>;

    /// Puts down how the run stands now that nobody appends to it any more, and removes what is not to be kept.
    ///
    /// # Errors
    ///
    /// The header cannot be replaced; the run is as it was before.
    fn finish(&self, header: RunHeader, retention: Retention) -> Result<(), Problem>;

    /// Removes the run with everything that was kept for it.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    fn forget(&self) -> Result<(), Problem>;
}

/// Adds to a run.
///
/// # Contract
///
/// * When `append` has returned, a kill of the process loses nothing of the group, and readers find it.
/// * A group is there as a whole or, after a crash in the middle, up to one of its events.
/// * Who appends with an epoch that is over is refused.
pub trait Ledger: Send + Sync + Debug {
    /// Appends a group of events.
    ///
    /// # Errors
    ///
    /// They could not be written, even with the reserve, or another process continues with the run.
    /// Earlier groups are safe.
    fn append<'a>(&'a self, epoch: Epoch, group: Group<'a>) -> BoxFuture<'a, Result<Appended, Problem>>;

    /// Reads records back while the run continues.
    ///
    /// # Errors
    ///
    /// The ledger cannot be opened for reading.
    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem>;

    /// Where the next event will stand.
    fn position(&self) -> LedgerPosition;

    /// Whether it keeps anything; where not, records are not even made for it.
    fn keeps(&self) -> bool {
        true
    }
}

/// Reads events back.
pub trait RecordReader: Send {
    /// The event of this id, byte for byte as it was appended.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be read.
    fn read(&mut self, id: RecordId) -> Result<Vec<u8>, Problem>;
}

/// A run that no other process can carry out while this is alive.
#[must_use]
pub struct RunLock(#[expect(dead_code, reason = "held for what its end does")] Box<dyn Send + Sync>);

impl RunLock {
    /// A lock that ends when `guard` is dropped.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

impl Debug for RunLock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RunLock")
    }
}

/// A ledger that is open for a part of a run, from its begin or resume to its end.
#[derive(Debug, Clone)]
pub struct OpenLedger {
    /// Where events are appended.
    pub ledger: Arc<dyn Ledger>,
    /// The part of the run.
    pub epoch: Epoch,
}

/// A new run that is ready, and does not count yet.
#[derive(Debug)]
pub struct PreparedRun {
    /// What the run is.
    pub header: RunHeader,
    /// Its ledger, which is empty.
    pub ledger: OpenLedger,
}

/// What a store should be ready for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerRoom {
    /// Rows whose records must still find room when the disk is full.
    pub rows: usize,
    /// Whether every group is forced to disk, so that it outlasts a power failure.
    pub durability: Durability,
}

/// What appended events outlast.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The end of the process: the kernel has them.
    #[default]
    Process,
    /// The end of the machine's power: the disk has them.
    Power,
}

/// Counts the parts of a run: every resume begins a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the part that follows this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A place between two events of a ledger. Only the store knows what is in it; what comes later is larger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LedgerPosition(u64);

impl LedgerPosition {
    /// The place before all events.
    pub const START: Self = Self(0);

    /// For stores: a place that they can find again by its key.
    #[must_use]
    pub fn from_key(key: u64) -> Self {
        Self(key)
    }

    /// For stores: the key that they gave.
    #[must_use]
    pub fn key(self) -> u64 {
        self.0
    }
}

/// Names an event of a ledger. Only the store knows what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId {
    position: LedgerPosition,
    bytes: u32,
}

impl RecordId {
    /// For stores: the event at `position`, which is so many bytes long.
    #[must_use]
    pub fn new(position: LedgerPosition, bytes: usize) -> Self {
        Self { position, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
    }

    /// The place before the event.
    #[must_use]
    pub fn position(self) -> LedgerPosition {
        self.position
    }

    /// For stores: how long the event is.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.bytes as usize
    }
}

/// An event as it is found in a ledger.
#[derive(Debug)]
pub struct ScannedEvent<'a> {
    /// By what it can be read back.
    pub id: RecordId,
    /// What it says.
    pub event: LedgerEvent,
    /// The event as it was appended.
    pub line: &'a [u8],
}

/// What is left of a run that nobody appends to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Header and ledger.
    Ledger,
    /// The header alone: what the ledger has is elsewhere, too.
    Header,
}

/// Events that are appended together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Group<'a> {
    /// Rows that are about to be sent.
    pub taken: &'a [NamedRow],
    /// Records of rows that ended.
    pub records: &'a [Record],
    /// What happened to rows that continue, where turns are kept.
    pub turns: &'a [TurnLine],
    /// Rows that wait for something outside of this process, and are not in flight meanwhile.
    pub parked: &'a [ParkedRow],
    /// Rows that were taken and are given back: nothing is in flight for them, and
    /// nothing was answered.
    pub released: &'a [NamedRow],
    /// What the run cannot have spent more than, with everything that is in flight.
    pub cover: Option<Spend>,
    /// What else is to be on record.
    pub notes: &'a [NoteEvent],
}

/// A row as events name it that tell of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// The number that it had when the event was appended.
    pub number: u64,
    /// Its id, by which it is known again although rows may have moved: its number, where it has no other,
    /// and where an earlier version appended the event.
    pub id: RowId,
}

/// Something that happened to a row that continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLine {
    /// The row.
    pub row: u64,
    /// Its id, by which it is known again although rows may have moved.
    pub id: RowId,
    /// What it asks: turns are of use only while a row asks the same.
    pub asked: AskedKey,
    /// The happening, as [`crate::agent::Happening::write`] writes it.
    pub happening: Vec<u8>,
}

/// A row that waits for something outside of this process: nothing of it is in flight, and nothing about
/// it is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedRow {
    /// The row.
    pub row: u64,
    /// Its id, by which it is known again although rows may have moved.
    pub id: RowId,
    /// What it waits for, as whoever parked it knows it again; several where several calls were parked.
    pub waits_for: Vec<String>,
}

/// An event that the engine itself has no use for, such as a step of a job at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteEvent {
    /// Names what happened; unlike every event of the engine.
    pub kind: String,
    /// Whether a reader who does not know the kind must not continue with the run.
    pub required: bool,
    /// What happened, as one JSON value without a newline.
    pub data: String,
}

/// What [`Ledger::append`] did.
#[derive(Debug)]
pub struct Appended {
    /// The ids of the group's records, in their order.
    pub records: Vec<RecordId>,
    /// Set when the events could be written only with the reserve: the run must
    /// stop taking rows, for this reason.
    pub trouble: Option<Problem>,
}
