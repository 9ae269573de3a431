//! The storage of a run until it is finished.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::limits::CallParallelism;
use rowmill_core::ports::{LedgerRequirements, RunLock, RunStore};
use rowmill_store::file::{FileRunStore, WorkFolder};
use rowmill_types::Problem;

use crate::spec::ExistingOutput;
use crate::work_spec::WorkSpec;

/// When a disk is full, the rows that have just ended and those in flight must still fit into the
/// ledger, while the output may be taking as much from the same disk.
const RESERVED_PER_PLACE: usize = 4;

/// The number of slots to reserve if it is unknown how many calls there will be at once.
const PLACES_OF_AUTO: usize = 128;

/// The store of a run, and a folder for everything else it keeps: answers that rows share, rows of a
/// query, envelopes that a table is made from.
#[derive(Debug, Clone)]
pub(crate) struct RunStorage {
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) folder: WorkFolder,
    /// The lock on the run, if something holds it that lasts longer than this part of the run.
    held: Option<Arc<RunLock>>,
}

impl RunStorage {
    /// Opens the run in the work folder at `path`, which is created if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        WorkFolder::open(path).map(Self::in_folder)
    }

    /// Opens the run in the work folder at `path`, and holds its lock as long as any copy of this value exists.
    pub(crate) fn open_locked(path: &Path) -> Result<Self, Problem> {
        let storage = Self::open(path)?;
        let lock = Arc::new(storage.store.lock()?);
        Ok(Self { held: Some(lock), ..storage })
    }

    /// Locks the run against other processes, unless its lock is held already.
    pub(crate) fn lock(&self) -> Result<Arc<RunLock>, Problem> {
        match &self.held {
            Some(held) => Ok(Arc::clone(held)),
            None => self.store.lock().map(Arc::new),
        }
    }

    /// Whether the lock on the run is held for longer than this part of the run.
    pub(crate) fn is_locked(&self) -> bool {
        self.held.is_some()
    }

    /// Opens it for reading only; the folder need not exist.
    pub(crate) fn look_at(path: &Path) -> Self {
        Self::in_folder(WorkFolder::look_at(path))
    }

    fn in_folder(folder: WorkFolder) -> Self {
        Self { store: Arc::new(FileRunStore::new(folder.clone())), folder, held: None }
    }
}

/// How a run starts or continues, wherever its rows come from and its results go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerSettings {
    /// What to do if a run already exists.
    pub(crate) existing: ExistingOutput,
    /// Whether rows are retried whose tools may have run.
    pub(crate) retry_unknown: bool,
    /// Whether turns are recorded.
    pub(crate) checkpoint_turns: bool,
    /// How much space the ledger should reserve.
    pub(crate) room: LedgerRequirements,
}

impl LedgerSettings {
    pub(crate) fn new(work: &WorkSpec, existing: ExistingOutput) -> Self {
        let places = match work.parallel {
            CallParallelism::Auto | CallParallelism::AutoUpTo(_) => PLACES_OF_AUTO,
            CallParallelism::AtMost(rows) => rows,
        };
        Self {
            existing,
            retry_unknown: work.agents.retry_unknown,
            checkpoint_turns: work.agents.checkpoint_turns,
            room: LedgerRequirements { rows: places * RESERVED_PER_PLACE, durability: work.durability },
        }
    }
}
