//! A machine that fetches from a simulated hub.

use std::sync::Mutex;
use std::time::Duration;

use rowmill_data::{
    FetchEvent, FetchEventKind, FetchPurpose, FetchSettings, Fetcher, FileList, HubSettings, InputLocation,
    RetrySettings, fetch_to_disk,
};
use rowmill_http::HttpClient;
use rowmill_testkit::hub::{AnswerDamage, HubPort, HubSimulator, ScriptedDamage};
use rowmill_types::{Problem, Secret};
use tempfile::TempDir;

/// A hub, and a machine with its own cache.
pub(crate) struct Machine {
    pub(crate) hub: HubSimulator,
    pub(crate) folder: TempDir,
    pub(crate) settings: FetchSettings,
    /// Whether the client with proxy support is used.
    pub(crate) proxied: bool,
    events: Mutex<Vec<FetchEvent>>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let hub = HubSimulator::start();
        let folder = tempfile::tempdir().unwrap();
        let settings = FetchSettings {
            cache: folder.path().join("cache"),
            hub: HubSettings { endpoint: hub.url(), token: None, offline: false },
            patience: RetrySettings { tries: 5, wait: Duration::ZERO, longest_wait: Duration::from_secs(60) },
        };
        Self { hub, folder, settings, proxied: false, events: Mutex::default() }
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.settings.hub.token = Some(Secret::new(token));
        self
    }

    /// Fetches like a separate command: with new connections.
    pub(crate) async fn bring(&self, address: &str, purpose: FetchPurpose) -> Result<FileList, Problem> {
        let http = HttpClient::new(&|_| self.proxied.then(|| "a proxy".to_owned()));
        let reported = |event| self.events.lock().unwrap().push(event);
        let fetcher = Fetcher { settings: &self.settings, http: &http, on_event: &reported };
        match fetch_to_disk(&InputLocation::parse(address)?, purpose, &fetcher).await? {
            InputLocation::Files(list) => Ok(list),
            other => unreachable!("not fetched: {other:?}"),
        }
    }

    /// Fetches rows.
    pub(crate) async fn rows(&self, address: &str) -> Result<FileList, Problem> {
        self.bring(address, FetchPurpose::Rows).await
    }

    /// Fetches the only file of an address: its name and content.
    pub(crate) async fn content(&self, address: &str) -> (String, Vec<u8>) {
        let list = self.rows(address).await.unwrap();
        assert_eq!(list.files.len(), 1);
        (list.files[0].name.clone(), std::fs::read(&list.files[0].path).unwrap())
    }

    /// The problem of a fetch that fails.
    pub(crate) async fn refused(&self, address: &str) -> Problem {
        let problem = self.rows(address).await.unwrap_err();
        assert!(problem.hint.is_some(), "{}", problem.message);
        problem
    }

    /// The steps that were reported since the last call.
    pub(crate) fn steps(&self) -> Vec<FetchEventKind> {
        self.events.lock().unwrap().drain(..).map(|event| event.step).collect()
    }

    /// The methods and paths that were requested since the last call, without queries.
    pub(crate) fn asked(&self) -> Vec<String> {
        let shown = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
        let asked = self.hub.requests();
        self.hub.forget_requests();
        asked.iter().map(|request| format!("{} {}", request.seen.method, shown(&request.seen.path))).collect()
    }

    /// The values of a header in the requests for bodies so far, `-` if it is missing.
    pub(crate) fn sent(&self, host: HubPort, header: &str) -> Vec<String> {
        let requests = self.hub.requests();
        let bodies = requests.iter().filter(|request| request.host == host && request.seen.method == "GET");
        bodies.map(|request| request.seen.header(header).unwrap_or("-").to_owned()).collect()
    }

    pub(crate) fn trouble(&self, host: HubPort, path: &str, damage: AnswerDamage, times: Option<u32>) {
        self.hub.add_damage(ScriptedDamage { host, path: path.to_owned(), damage, times });
    }
}

/// Bytes without repetition.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 31 % 251) as u8).collect()
}

/// A header.
pub(crate) fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
