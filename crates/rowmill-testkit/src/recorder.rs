//! What the simulator saw, for assertions.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rowmill_core::simulate::seed_of;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

/// Counts of what happened so far. An answer counts once its last byte was
/// handed to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Model calls read to their end, over HTTP or a WebSocket.
    pub requests: u64,
    /// Answers with a 2xx status that were written to their end, garbage included.
    pub answers: u64,
    /// All answers that were written to their end, by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Calls whose client went away before the answer was written.
    pub abandoned: u64,
    /// Calls that are being answered or held now.
    pub in_flight: u64,
    /// The most calls that were in flight at once.
    pub max_in_flight: u64,
    /// Prompts that differ. The prompt of a conversation is its first user message.
    pub distinct_prompts: u64,
    /// Answers to prompts that had been answered before.
    pub repeated_answers: u64,
    /// Answers by prompt, unless the script forgets prompts.
    pub answers_by_prompt: BTreeMap<String, u64>,
}

/// One request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSeen {
    /// The method; `WEBSOCKET` for a message on a WebSocket.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, without chunked framing.
    pub body: Vec<u8>,
}

impl RequestSeen {
    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

#[derive(Debug, Default)]
struct Held {
    stats: Stats,
    prompts: HashMap<u64, PromptCounts>,
    prefixes: HashSet<u64>,
    requests: VecDeque<RequestSeen>,
}

#[derive(Debug, Default)]
struct PromptCounts {
    calls: u64,
    answers: u64,
}

/// Collects [`Stats`] and wakes those who wait for them.
#[derive(Debug)]
pub(crate) struct Recorder {
    held: Mutex<Held>,
    changed: Condvar,
    version: watch::Sender<()>,
    keep_requests: usize,
    keep_prompts: bool,
    /// Counted apart, because a benchmark cannot afford the lock.
    pub(crate) instant_requests: AtomicU64,
    pub(crate) instant_answers: AtomicU64,
}

impl Recorder {
    pub(crate) fn new(keep_requests: usize, keep_prompts: bool) -> Self {
        Self {
            held: Mutex::default(),
            changed: Condvar::new(),
            version: watch::channel(()).0,
            keep_requests,
            keep_prompts,
            instant_requests: AtomicU64::new(0),
            instant_answers: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.version.send_replace(());
        result
    }

    pub(crate) fn connected(&self) {
        self.change(|held| held.stats.connections += 1);
    }

    pub(crate) fn keep(&self, request: &RequestSeen) {
        if self.keep_requests == 0 {
            return;
        }
        self.change(|held| {
            if held.requests.len() == self.keep_requests {
                held.requests.pop_front();
            }
            held.requests.push_back(request.clone());
        });
    }

    /// A model call begins; it is in flight until the guard is dropped.
    pub(crate) fn begin(&self) -> Call<'_> {
        let number = self.change(|held| {
            held.stats.requests += 1;
            held.stats.in_flight += 1;
            held.stats.max_in_flight = held.stats.max_in_flight.max(held.stats.in_flight);
            held.stats.requests
        });
        Call { recorder: self, number }
    }

    /// Counts a call of `prompt`; how many there were, this one included.
    pub(crate) fn prompt_called(&self, prompt: &str) -> u64 {
        let key = seed_of(&[prompt]);
        self.change(|held| {
            let counts = held.prompts.entry(key).or_default();
            counts.calls += 1;
            let calls = counts.calls;
            held.stats.distinct_prompts = held.prompts.len() as u64;
            calls
        })
    }

    /// Whether a system prompt was seen before; it is known from now on.
    pub(crate) fn prefix_is_known(&self, system: &str) -> bool {
        !self.lock().prefixes.insert(seed_of(&[system]))
    }

    pub(crate) fn written(&self, status: u16, prompt: Option<&str>) {
        self.change(|held| {
            *held.stats.by_status.entry(status).or_default() += 1;
            let (200..300, Some(prompt)) = (status, prompt) else { return };
            held.stats.answers += 1;
            let counts = held.prompts.entry(seed_of(&[prompt])).or_default();
            counts.answers += 1;
            held.stats.repeated_answers += u64::from(counts.answers > 1);
            if self.keep_prompts {
                *held.stats.answers_by_prompt.entry(prompt.to_owned()).or_default() += 1;
            }
        });
    }

    pub(crate) fn abandoned(&self) {
        self.change(|held| held.stats.abandoned += 1);
    }

    pub(crate) fn requests(&self) -> Vec<RequestSeen> {
        self.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.snapshot(&self.lock())
    }

    fn snapshot(&self, held: &Held) -> Stats {
        let mut stats = held.stats.clone();
        let answers = self.instant_answers.load(Ordering::Relaxed);
        stats.requests += self.instant_requests.load(Ordering::Relaxed);
        stats.answers += answers;
        if answers > 0 {
            *stats.by_status.entry(200).or_default() += answers;
        }
        stats
    }

    pub(crate) async fn wait_until(&self, reached: impl Fn(&Stats) -> bool) -> Stats {
        let mut version = self.version.subscribe();
        loop {
            let stats = self.stats();
            // The sender is a field of this very value, so it cannot be gone.
            if reached(&stats) || version.changed().await.is_err() {
                return stats;
            }
        }
    }

    pub(crate) fn wait_until_blocking(&self, reached: impl Fn(&Stats) -> bool) -> Stats {
        let mut held = self.lock();
        loop {
            let stats = self.snapshot(&held);
            if reached(&stats) {
                return stats;
            }
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct Call<'r> {
    recorder: &'r Recorder,
    /// Its number among all calls, from 1.
    pub(crate) number: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.recorder.change(|held| held.stats.in_flight -= 1);
    }
}
