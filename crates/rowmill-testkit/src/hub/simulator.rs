//! The running hub, and its controls for tests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::content::{FileKind, HubState, PlainPage, StoredFile};
use super::server::{HubAddresses, HubRequest, ScriptedDamage, serve};

/// A hub that answers until it is dropped.
///
/// ```
/// use rowmill_testkit::hub::{FileKind, HubSimulator};
/// let hub = HubSimulator::start();
/// let commit = hub.put("datasets/owner/name", "rows.jsonl", "{}\n", FileKind::Small);
/// assert_eq!(commit.len(), 40);
/// assert!(hub.url().starts_with("http://127.0.0.1:"));
/// ```
#[derive(Debug)]
pub struct HubSimulator {
    hosts: HubAddresses,
    state: Arc<Mutex<HubState>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HubSimulator {
    /// Starts an empty hub.
    ///
    /// # Panics
    ///
    /// No loopback sockets are available, without which no test can continue.
    #[must_use]
    #[expect(clippy::panic, reason = "a test that cannot have its hub must fail")]
    pub fn start() -> Self {
        Self::try_start().unwrap_or_else(|error| panic!("the hub cannot start: {error}"))
    }

    fn try_start() -> std::io::Result<Self> {
        let state = Arc::new(Mutex::new(HubState { page_length: 1000, ..HubState::default() }));
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = mpsc::sync_channel(1);
        let served = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("hub".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let ran = runtime.and_then(|runtime| runtime.block_on(run(served, stopped, &ready)));
            if let Err(error) = ran {
                // Once started, nothing waits for this any more.
                drop(ready.send(Err(error)));
            }
        })?;
        let hosts = started.recv().map_err(std::io::Error::other)??;
        Ok(Self { hosts, state, stop: Some(stop), thread: Some(thread) })
    }

    /// The value for `HF_ENDPOINT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.hosts.hub)
    }

    /// Adds a file to a repository, such as `datasets/owner/name`, in a new commit; returns the commit's
    /// name.
    pub fn put(&self, repository: &str, path: &str, bytes: impl AsRef<[u8]>, kind: FileKind) -> String {
        let file = StoredFile { bytes: bytes.as_ref().to_vec(), kind };
        self.state().repositories.entry(repository.to_owned()).or_default().put(path, file)
    }

    /// Tags the newest commit.
    pub fn tag(&self, repository: &str, tag: &str) {
        let mut state = self.state();
        let repository = state.repositories.entry(repository.to_owned()).or_default();
        if let Some((commit, _)) = repository.commits.last() {
            repository.tags.insert(tag.to_owned(), commit.clone());
        }
    }

    /// Adds a split of converted Parquet to a dataset.
    pub fn convert(&self, repository: &str, config: &str, split: &str, files: &[&[u8]]) {
        let stored = |bytes: &&[u8]| Arc::new(StoredFile { bytes: bytes.to_vec(), kind: FileKind::Large });
        let files = files.iter().map(stored).collect();
        let mut state = self.state();
        let repository = state.repositories.entry(repository.to_owned()).or_default();
        repository.converted.push((config.to_owned(), split.to_owned(), files));
    }

    /// Makes a repository private: it requires this token.
    pub fn protect(&self, repository: &str, token: &str) {
        self.state().repositories.entry(repository.to_owned()).or_default().token = Some(token.to_owned());
    }

    /// Makes a repository gated, with conditions that nobody has accepted.
    pub fn gate(&self, repository: &str) {
        self.state().repositories.entry(repository.to_owned()).or_default().is_gated = true;
    }

    /// Adds a plain page at a path.
    pub fn page(&self, path: &str, page: PlainPage) {
        self.state().pages.insert(path.to_owned(), page);
    }

    /// Sets the number of files per page of lists.
    pub fn list_in_pages_of(&self, files: usize) {
        self.state().page_length = files;
    }

    /// Injects this fault from now on.
    pub fn add_damage(&self, trouble: ScriptedDamage) {
        self.state().troubles.push(trouble);
    }

    /// Injects no faults any more.
    pub fn stop_damage(&self) {
        self.state().troubles.clear();
    }

    /// The requests so far, at both ports, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<HubRequest> {
        self.state().requests.clone()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.state().requests.clear();
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HubSimulator {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            debug_assert!(joined.is_ok() || std::thread::panicking(), "the hub's thread panicked");
        }
    }
}

/// Listens on both ports and serves until `stopped` ends.
async fn run(
    state: Arc<Mutex<HubState>>,
    stopped: oneshot::Receiver<()>,
    ready: &mpsc::SyncSender<std::io::Result<HubAddresses>>,
) -> std::io::Result<()> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (hub, store) = (TcpListener::bind(any).await?, TcpListener::bind(any).await?);
    let hosts = HubAddresses { hub: hub.local_addr()?, store: store.local_addr()? };
    ready.send(Ok(hosts)).map_err(std::io::Error::other)?;
    tokio::select! {
        _ = stopped => {}
        () = serve(&hub, &store, hosts, &state) => {}
    }
    Ok(())
}
