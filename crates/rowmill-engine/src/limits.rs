//! The known limits of models, shared by runs, and the settings of each run.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowmill_core::limits::{CircuitBreaker, MinuteLimits, PaceMode, RateLimiter, RunPaceSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call_gate::CallGate;

/// The limits of all models that a process calls. Runs that are to share limits get clones of one value: they share
/// what is known about an account, such as the rates that its provider reported, the current usage, and whether the
/// provider is down. Settings that a run makes for its own calls apply to that run alone, and only while it runs.
#[derive(Clone)]
pub struct SharedLimits {
    shared: Arc<Mutex<EndpointRegistry>>,
    /// The run that this value belongs to.
    run: u64,
    /// The call gates of that run.
    gates: Arc<Mutex<HashMap<EndpointKey, Arc<CallGate>>>>,
}

struct EndpointRegistry {
    /// The origin of all times, because model endpoints share what they know about providers.
    epoch: Instant,
    runs: u64,
    endpoints: HashMap<EndpointKey, Arc<SharedEndpoint>>,
    providers: HashMap<(String, String), Arc<Mutex<CircuitBreaker>>>,
}

impl Default for SharedLimits {
    fn default() -> Self {
        let (endpoints, providers) = (HashMap::new(), HashMap::new());
        let registry = EndpointRegistry { epoch: Instant::now(), runs: 0, endpoints, providers };
        Self { shared: Arc::new(Mutex::new(registry)), run: 0, gates: Arc::default() }
    }
}

impl fmt::Debug for SharedLimits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SharedLimits({} endpoints)", lock_unpoisoned(&self.shared).endpoints.len())
    }
}

/// Identifies a model endpoint, which has limits of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointKey {
    /// The provider.
    pub provider: String,
    /// An identifier of the account there; never a key itself.
    pub account: String,
    /// The model.
    pub model: String,
}

/// The settings of one run for its calls to a model endpoint.
#[derive(Debug, Clone, Copy)]
pub struct CallGateSettings {
    /// How calls are paced, and how long they wait.
    pub share: RunPaceSettings,
    /// What to do when the quota is exhausted.
    pub on_quota: OnQuota,
}

/// What to do when a quota is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnQuota {
    /// Wait until the quota renews.
    Wait,
    /// Stop the run.
    Stop,
}

impl CallGateSettings {
    /// Identifies what this run's calls wait for: calls of other runs must not queue behind them unless they wait for
    /// the same.
    fn queue(&self) -> CallQueueKey {
        let RunPaceSettings { pace, rates, .. } = self.share;
        let MinuteLimits { requests, tokens, input_tokens, output_tokens } = rates;
        let caps = [requests, tokens, input_tokens, output_tokens].map(|cap| cap.is_some());
        (pace == PaceMode::Auto, caps)
    }
}

impl SharedLimits {
    /// The same limits for another run, which starts now.
    #[must_use]
    pub fn for_run(&self) -> Self {
        let mut registry = lock_unpoisoned(&self.shared);
        registry.runs += 1;
        Self { shared: Arc::clone(&self.shared), run: registry.runs, gates: Arc::default() }
    }

    /// The call gate of this run for a model endpoint; the same one for the same endpoint.
    #[must_use]
    pub fn gate(&self, key: EndpointKey, settings: CallGateSettings) -> Arc<CallGate> {
        let mut gates = lock_unpoisoned(&self.gates);
        if let Some(gate) = gates.get(&key) {
            return Arc::clone(gate);
        }
        let endpoint = self.endpoint(&key);
        let share = lock_unpoisoned(&endpoint.limiter).add_run(settings.share, endpoint.now());
        let queue = Arc::clone(lock_unpoisoned(&endpoint.queues).entry(settings.queue()).or_default());
        let gate = Arc::new(CallGate::new(endpoint, queue, (share, self.run), settings));
        gates.insert(key, Arc::clone(&gate));
        gate
    }

    fn endpoint(&self, key: &EndpointKey) -> Arc<SharedEndpoint> {
        let mut registry = lock_unpoisoned(&self.shared);
        let provider = (key.provider.clone(), key.account.clone());
        let breaker = Arc::clone(registry.providers.entry(provider).or_default());
        let epoch = registry.epoch;
        let new = || Arc::new(SharedEndpoint::new(breaker, epoch));
        Arc::clone(registry.endpoints.entry(key.clone()).or_insert_with(new))
    }
}

/// Whether limits reported by the provider are respected, and which limits the user set.
type CallQueueKey = (bool, [bool; 4]);
/// Held by the first call in a queue, so that calls go in order of arrival.
pub(crate) type CallQueue = Arc<tokio::sync::Mutex<()>>;

/// What is known about a model endpoint, shared by all runs.
pub(crate) struct SharedEndpoint {
    epoch: Instant,
    pub(crate) limiter: Mutex<RateLimiter>,
    pub(crate) breaker: Arc<Mutex<CircuitBreaker>>,
    /// Where runs wait for each other; runs that wait for the same things share a queue.
    queues: Mutex<HashMap<CallQueueKey, CallQueue>>,
    /// Notified when a call has ended or a run has left.
    pub(crate) changed: Notify,
    /// The time since which refusals have held up all calls and none was answered.
    pub(crate) refusing_since: Mutex<Option<Duration>>,
}

impl SharedEndpoint {
    fn new(breaker: Arc<Mutex<CircuitBreaker>>, epoch: Instant) -> Self {
        Self {
            epoch,
            limiter: Mutex::default(),
            breaker,
            queues: Mutex::default(),
            changed: Notify::new(),
            refusing_since: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

pub(crate) fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
