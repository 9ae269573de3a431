//! The files and jobs of the batch APIs.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rowmill_schema_faker::seed_from;
use tempfile::TempDir;

use super::clock::JobClock;
use super::hold::BatchHolds;
use super::job::{BatchJob, JobView};
use super::settings::SimulatedBatches;
use super::stored_bytes::StoredBytes;
use super::tally::SubmittedRows;
use super::vendor::{BatchVendor, IdKind};
use crate::protocol::RequestRefusal;
use crate::simulator_state::server_time;

/// The start of the name of its folder.
const FOLDER: &str = "rowmill-simulator-";

/// A file that a client uploaded, or the results of a job.
#[derive(Debug, Clone)]
pub(crate) struct BatchFile {
    pub(crate) id: String,
    pub(crate) vendor: BatchVendor,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) is_result: bool,
    pub(crate) created: Duration,
    pub(crate) bytes: Arc<StoredBytes>,
}

/// All files and jobs, in order of creation.
#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) clock: JobClock,
    pub(crate) files: Vec<BatchFile>,
    pub(crate) jobs: Vec<BatchJob>,
    pub(crate) submitted: SubmittedRows,
    /// The pieces of Google's uploads that are under way.
    pub(crate) pieces: HashMap<String, Vec<StoredBytes>>,
    /// The names of files whose bytes Together waits for, by id.
    pub(crate) awaited: HashMap<String, String>,
    /// How many uploads and downloads there were.
    pub(crate) uploads: u64,
    pub(crate) downloads: u64,
    /// How many ids were given.
    ids: u64,
    /// How many jobs there were, with those that were deleted.
    pub(crate) created_jobs: u64,
    /// Where the folder is made, if not where the system makes such folders.
    parent: Option<PathBuf>,
    folder: Option<TempDir>,
    paths: u64,
}

/// The files and jobs, and the thread that makes results.
#[derive(Debug)]
pub(crate) struct BatchStore {
    held: Mutex<StoreState>,
    /// Which requests are held.
    pub(crate) holds: BatchHolds,
    pub(super) changed: Condvar,
    pub(super) worker: Mutex<Option<JoinHandle<()>>>,
    pub(super) is_stopping: AtomicBool,
}

impl BatchStore {
    pub(crate) fn new(settings: &SimulatedBatches) -> Self {
        let state = StoreState {
            clock: JobClock::new(settings.time_scale, server_time()),
            files: Vec::new(),
            jobs: Vec::new(),
            submitted: SubmittedRows::default(),
            pieces: HashMap::new(),
            awaited: HashMap::new(),
            uploads: 0,
            downloads: 0,
            ids: 0,
            created_jobs: 0,
            parent: settings.folder.clone(),
            folder: None,
            paths: 0,
        };
        Self {
            held: Mutex::new(state),
            holds: BatchHolds::default(),
            changed: Condvar::new(),
            worker: Mutex::new(None),
            is_stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of jobs in each state.
    pub(crate) fn jobs_by_state(&self) -> BTreeMap<String, u64> {
        let held = self.lock();
        let now = held.now();
        let mut counts = BTreeMap::new();
        for job in &held.jobs {
            *counts.entry(job.phase(now).name().to_owned()).or_default() += 1;
        }
        counts
    }

    /// A path for a new file, in a folder that is removed at the end.
    pub(crate) fn new_path(&self) -> io::Result<PathBuf> {
        let mut held = self.lock();
        held.paths += 1;
        let name = held.paths.to_string();
        let folder = match (held.folder.take(), &held.parent) {
            (Some(folder), _) => folder,
            (None, Some(parent)) => tempfile::Builder::new().prefix(FOLDER).tempdir_in(parent)?,
            (None, None) => tempfile::Builder::new().prefix(FOLDER).tempdir()?,
        };
        let path = folder.path().join(name);
        held.folder = Some(folder);
        Ok(path)
    }

    /// Writes bytes to a new file.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<StoredBytes> {
        let path = self.new_path()?;
        std::fs::write(&path, bytes)?;
        StoredBytes::whole(path)
    }
}

impl StoreState {
    /// The time of jobs.
    pub(crate) fn now(&self) -> Duration {
        self.clock.at(server_time())
    }

    pub(crate) fn new_id(&mut self, vendor: BatchVendor, kind: IdKind, seed: u64) -> String {
        self.ids += 1;
        let (seed, number) = (seed.to_string(), self.ids.to_string());
        let first = seed_from(&[&seed, "id", &number]);
        vendor.id(kind, (first, seed_from(&[&seed, "rest of id", &number])))
    }

    pub(crate) fn file(&self, id: &str) -> Option<&BatchFile> {
        self.files.iter().find(|file| file.id == id)
    }

    /// A job of a vendor, as it is now.
    pub(crate) fn view(&self, vendor: BatchVendor, id: &str) -> Option<JobView<'_>> {
        let job = self.jobs.iter().find(|job| job.vendor == vendor && job.id == id)?;
        Some(JobView { job, clock: &self.clock, now: self.now() })
    }

    pub(crate) fn job_mut(&mut self, vendor: BatchVendor, id: &str) -> Option<&mut BatchJob> {
        self.jobs.iter_mut().find(|job| job.vendor == vendor && job.id == id)
    }

    /// The prompt tokens of the open jobs of a vendor and model.
    pub(crate) fn queued_tokens(&self, vendor: BatchVendor, model: Option<&str>) -> u64 {
        let now = self.now();
        let open = self.jobs.iter().filter(|job| job.vendor == vendor && !job.phase(now).is_final());
        open.filter(|job| job.order.model.as_deref() == model).map(|job| job.queued_tokens).sum()
    }
}

/// The answer if the disk of this machine fails.
pub(crate) fn disk_failure(error: io::Error) -> RequestRefusal {
    RequestRefusal::new(500, format!("the simulator cannot use its temporary folder: {error}"))
}
