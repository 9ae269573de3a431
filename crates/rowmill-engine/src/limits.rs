//! What is known of the limits of models, shared by runs; and what each run says of its own.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowmill_core::limits::{Breaker, Limiter, Pace, RateFlags, ShareSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::gate::Gate;

/// The limits of all models that a process calls. Runs that are to share limits are given
/// clones of one value: they share what is known of an account, such as the rate that its
/// provider told, what is used of it, and whether the provider is down. What a run says of its own
/// calls holds for that run alone, and only as long as it continues.
#[derive(Clone)]
pub struct Limits {
    shared: Arc<Mutex<Registry>>,
    /// Which run this value is of.
    run: u64,
    /// The gates of that run.
    gates: Arc<Mutex<HashMap<LaneKey, Arc<Gate>>>>,
}

struct Registry {
    /// All times are counted from here, because model endpoints share what they know of providers.
    epoch: Instant,
    runs: u64,
    lanes: HashMap<LaneKey, Arc<SharedLane>>,
    providers: HashMap<(String, String), Arc<Mutex<Breaker>>>,
}

impl Default for Limits {
    fn default() -> Self {
        let (lanes, providers) = (HashMap::new(), HashMap::new());
        let registry = Registry { epoch: Instant::now(), runs: 0, lanes, providers };
        Self { shared: Arc::new(Mutex::new(registry)), run: 0, gates: Arc::default() }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Limits({} lanes)", locked(&self.shared).lanes.len())
    }
}

/// What has limits of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaneKey {
    /// The provider.
    pub provider: String,
    /// Which account there; never a key itself.
    pub account: String,
    /// The model.
    pub model: String,
}

/// What one run says of its calls to a model endpoint.
#[derive(Debug, Clone, Copy)]
pub struct LaneSettings {
    /// How they are paced, and how long they wait.
    pub share: ShareSettings,
    /// What happens when the quota is used up.
    pub on_quota: OnQuota,
}

/// What happens when a quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnQuota {
    /// The run waits until there is quota again.
    Wait,
    /// The run stops.
    Stop,
}

impl LaneSettings {
    /// Who has to wait for the same as this run: calls of others must not wait behind it.
    fn queue(&self) -> QueueKey {
        let ShareSettings { pace, rates, .. } = self.share;
        let RateFlags { requests, tokens, input_tokens, output_tokens } = rates;
        let caps = [requests, tokens, input_tokens, output_tokens].map(|cap| cap.is_some());
        (pace == Pace::Auto, caps)
    }
}

impl Limits {
    /// The same limits for a run that begins now.
    #[must_use]
    pub fn for_run(&self) -> Self {
        let mut registry = locked(&self.shared);
        registry.runs += 1;
        Self { shared: Arc::clone(&self.shared), run: registry.runs, gates: Arc::default() }
    }

    /// The way of this run to a model endpoint; the same whenever the run names the same model endpoint.
    #[must_use]
    pub fn gate(&self, key: LaneKey, settings: LaneSettings) -> Arc<Gate> {
        let mut gates = locked(&self.gates);
        if let Some(gate) = gates.get(&key) {
            return Arc::clone(gate);
        }
        let lane = self.lane(&key);
        let share = locked(&lane.limiter).join(settings.share, lane.now());
        let queue = Arc::clone(locked(&lane.queues).entry(settings.queue()).or_default());
        let gate = Arc::new(Gate::new(lane, queue, (share, self.run), settings));
        gates.insert(key, Arc::clone(&gate));
        gate
    }

    fn lane(&self, key: &LaneKey) -> Arc<SharedLane> {
        let mut registry = locked(&self.shared);
        let provider = (key.provider.clone(), key.account.clone());
        let breaker = Arc::clone(registry.providers.entry(provider).or_default());
        let epoch = registry.epoch;
        let new = || Arc::new(SharedLane::new(breaker, epoch));
        Arc::clone(registry.lanes.entry(key.clone()).or_insert_with(new))
    }
}

/// Whether limits that answers told are kept to, and which limits the user set.
type QueueKey = (bool, [bool; 4]);
/// Whoever is first in a queue holds this, so that calls go in the order in which they came.
pub(crate) type Queue = Arc<tokio::sync::Mutex<()>>;

/// What is known of a model endpoint, whoever calls it.
pub(crate) struct SharedLane {
    epoch: Instant,
    pub(crate) limiter: Mutex<Limiter>,
    pub(crate) breaker: Arc<Mutex<Breaker>>,
    /// Where runs wait for each other, those with the same things to wait for in the same queue.
    queues: Mutex<HashMap<QueueKey, Queue>>,
    /// Told when a call has ended or a run has left.
    pub(crate) changed: Notify,
    /// Since when refusals hold all calls up, and none was answered.
    pub(crate) refusing_since: Mutex<Option<Duration>>,
}

impl SharedLane {
    fn new(breaker: Arc<Mutex<Breaker>>, epoch: Instant) -> Self {
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

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
