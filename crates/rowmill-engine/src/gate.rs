//! Where calls wait for their turn: the limiter's decisions, carried out.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowmill_core::limits::{
    Admission, Blame, Breaker, Charge, FailedCall, Limiter, Need, Pace, Parallel, Passage, RateFlags,
    Refusal, Wait, WaitReason,
};
use rowmill_types::actions::RUN_AGAIN;
use rowmill_types::settings::ON_QUOTA;
use rowmill_types::{CallError, CallFailure, Completion, Fault, Problem, ProblemCode};
use tokio::sync::Notify;
use tokio::time::Instant;

/// While another model's call probes the same provider, its end is looked for this often.
const PROBE_POLL: Duration = Duration::from_millis(250);

/// How long a provider is waited for that has not answered a single call.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);

/// The limits of all models that a process calls. Runs that are to share limits are given
/// clones of one value.
#[derive(Clone)]
pub struct Limits {
    shared: Arc<Mutex<Registry>>,
}

struct Registry {
    /// All times are counted from here, because gates share what they know of providers.
    epoch: Instant,
    gates: HashMap<LaneKey, Arc<Gate>>,
    providers: HashMap<(String, String), Arc<Mutex<Breaker>>>,
}

impl Default for Limits {
    fn default() -> Self {
        let registry = Registry { epoch: Instant::now(), gates: HashMap::new(), providers: HashMap::new() };
        Self { shared: Arc::new(Mutex::new(registry)) }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Limits({} lanes)", locked(&self.shared).gates.len())
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

/// How a lane is paced.
#[derive(Debug, Clone, Copy)]
pub struct LaneSettings {
    /// How many calls may be in flight.
    pub parallel: Parallel,
    /// Whether limits that the provider tells are kept to.
    pub pace: Pace,
    /// Limits that the user sets.
    pub rates: RateFlags,
    /// The most tokens of an answer, where requests say so.
    pub max_output: Option<u64>,
    /// Whether the provider sets those aside until the answer is there.
    pub reserves_output: bool,
    /// Whether the first call goes alone to fill the provider's cache.
    pub priming: bool,
    /// What happens when the quota is used up.
    pub on_quota: OnQuota,
    /// How long calls may wait for a provider that lets none through. With no time at all,
    /// nothing counts as an outage, and rows fail when their tries are used up.
    pub max_outage: Duration,
}

/// What happens when a quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnQuota {
    /// The run waits until there is quota again.
    Wait,
    /// The run stops.
    Stop,
}

impl Limits {
    /// The gate of a lane; the same for everyone who names the same lane.
    #[must_use]
    pub fn gate(&self, key: LaneKey, settings: LaneSettings) -> Arc<Gate> {
        let mut registry = locked(&self.shared);
        let provider = (key.provider.clone(), key.account.clone());
        let breaker = registry.providers.entry(provider).or_default().clone();
        let epoch = registry.epoch;
        let new = || Arc::new(Gate::new(settings, breaker, epoch));
        registry.gates.entry(key).or_insert_with(new).clone()
    }
}

/// What is told of a wait.
pub(crate) enum Told<'a> {
    /// It goes on, for so long where that is known.
    Waits(&'a Wait, Option<Duration>),
    /// It is over.
    Goes,
}

/// Why there is no permit.
pub(crate) enum Denied {
    /// The provider is down or has no quota, and another can be asked.
    Down,
    /// Waiting makes no sense any more.
    Problem(Problem),
}

/// The way to one model.
pub struct Gate {
    epoch: Instant,
    limiter: Mutex<Limiter>,
    breaker: Arc<Mutex<Breaker>>,
    /// Whoever waits holds this, so that calls go in the order in which they came.
    turn: tokio::sync::Mutex<()>,
    changed: Notify,
    on_quota: OnQuota,
    max_outage: Duration,
    /// Since when refusals hold all calls up, and none was answered.
    refusing_since: Mutex<Option<Duration>>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}

impl Gate {
    fn new(settings: LaneSettings, breaker: Arc<Mutex<Breaker>>, epoch: Instant) -> Self {
        let LaneSettings {
            parallel,
            pace,
            rates,
            max_output,
            reserves_output,
            priming,
            on_quota,
            max_outage,
        } = settings;
        let limiter = Limiter::new(parallel, pace, rates, epoch.elapsed())
            .with_max_output(max_output, reserves_output)
            .with_priming(priming);
        Self {
            epoch,
            limiter: Mutex::new(limiter),
            breaker,
            turn: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
            on_quota,
            max_outage,
            refusing_since: Mutex::default(),
        }
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// For how long the provider has let no call through.
    pub(crate) fn stuck_for(&self) -> Duration {
        locked(&self.breaker).stuck_for(self.now())
    }

    /// Calls that may be in flight at once, as it is now.
    pub(crate) fn allowed(&self) -> usize {
        locked(&self.limiter).allowed()
    }

    /// Calls that should fit beside each other.
    pub(crate) fn wanted(&self) -> usize {
        locked(&self.limiter).wanted()
    }

    /// The limits that are known by now, per minute.
    #[must_use]
    pub fn known(&self) -> RateFlags {
        locked(&self.limiter).known()
    }

    /// Whether another model should be asked, if there is one.
    pub(crate) fn is_down(&self) -> bool {
        let now = self.now();
        matches!(locked(&self.breaker).passage(now), Passage::Wait(_))
            || locked(&self.limiter).is_exhausted(now)
    }

    /// A permit, if it can be had at once and nobody is waiting for one.
    pub(crate) fn try_admit(self: &Arc<Self>, need: Need) -> Option<Permit> {
        let _turn = self.turn.try_lock().ok()?;
        self.ask(need).ok()
    }

    /// Waits for a permit, in the order in which calls came. `told` hears of every wait.
    /// A wait for a provider that is down or without quota is given up once `elsewhere`
    /// says that another can be asked.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        need: Need,
        told: &(dyn Fn(Told<'_>) + Sync),
        elsewhere: &(dyn Fn() -> bool + Sync),
    ) -> Result<Permit, Denied> {
        let _turn = self.turn.lock().await;
        let mut waited = false;
        loop {
            let changed = self.changed.notified();
            let wait = match self.ask(need) {
                Ok(permit) => {
                    if waited {
                        told(Told::Goes);
                    }
                    return Ok(permit);
                }
                Err(wait) => wait,
            };
            if wait.reason.is_grave() && elsewhere() {
                return Err(Denied::Down);
            }
            self.check_patience(&wait).map_err(Denied::Problem)?;
            waited = true;
            let left = wait.until.map(|until| until.saturating_sub(self.now()));
            told(Told::Waits(&wait, left));
            // The next try may come later than the time for which the provider is waited for at all.
            match left.into_iter().chain(self.patience_left(&wait)).min() {
                None => changed.await,
                Some(left) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep(left) => {}
                    }
                }
            }
        }
    }

    /// How long a provider is waited for that lets nothing through; no time at all where rows fail by
    /// their tries, and a refusal is only waited out.
    fn patience(&self, breaker: &Breaker) -> Duration {
        // What never worked is more likely set up wrong than down.
        if breaker.was_ever_there() { self.max_outage } else { self.max_outage.min(FIRST_PATIENCE) }
    }

    /// How much longer this is waited for, where that has an end of its own.
    fn patience_left(&self, wait: &Wait) -> Option<Duration> {
        let breaker = locked(&self.breaker);
        let most = self.patience(&breaker);
        let is_stuck = matches!(wait.reason, WaitReason::Outage(_) | WaitReason::Throttled);
        (is_stuck && !most.is_zero()).then(|| most.saturating_sub(breaker.stuck_for(self.now())))
    }

    /// Whether waiting for this still makes sense.
    fn check_patience(&self, wait: &Wait) -> Result<(), Problem> {
        let breaker = locked(&self.breaker);
        let most = self.patience(&breaker);
        let patience_ended = !most.is_zero() && breaker.stuck_for(self.now()) >= most;
        match &wait.reason {
            WaitReason::Quota(said) if self.on_quota == OnQuota::Stop => {
                Err(Problem::new(ProblemCode::QuotaExhausted, said.clone()).hint(format!(
                    "raise the quota, then {RUN_AGAIN}; {on_quota} waits for it",
                    on_quota = ON_QUOTA.to("wait")
                )))
            }
            WaitReason::Outage(said) if patience_ended => {
                let waited = most.as_secs_f64();
                let message = format!("the provider has not answered for {waited} s: {said}");
                Err(Problem::new(ProblemCode::ProviderDown, message)
                    .hint(format!("{RUN_AGAIN} when the provider is back")))
            }
            WaitReason::Throttled if patience_ended => Err(Problem::new(
                ProblemCode::ProviderDown,
                "the provider refuses every call because of its rate limit",
            )
            .hint(format!("check the limits of the account, then {RUN_AGAIN}"))),
            _ => Ok(()),
        }
    }

    /// Whether nobody is to wait for a provider that refused a call which was sent at `sent`: one that
    /// lets nothing through although the wait after its first refusals is over.
    fn is_unwaited(&self, sent: Duration) -> bool {
        self.max_outage.is_zero() && locked(&self.refusing_since).is_some_and(|since| since < sent)
    }

    fn ask(self: &Arc<Self>, need: Need) -> Result<Permit, Wait> {
        let now = self.now();
        let mut breaker = locked(&self.breaker);
        let probe = match breaker.passage(now) {
            Passage::Free => false,
            Passage::Probe => true,
            Passage::Wait(until) => {
                let reason = WaitReason::Outage(breaker.said().to_owned());
                return Err(Wait { until: Some(until.unwrap_or(now + PROBE_POLL)), reason });
            }
        };
        match locked(&self.limiter).admit(need, now) {
            Admission::Wait(wait) => Err(wait),
            Admission::Granted(charge) => {
                if probe {
                    breaker.probe();
                }
                Ok(Permit { gate: self.clone(), charge: Some(charge), probe })
            }
        }
    }
}

/// A held share of the limits. Dropping it gives the share back.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    charge: Option<Charge>,
    probe: bool,
}

impl Permit {
    /// The call was answered.
    pub(crate) fn answered(mut self, completion: &Completion) {
        let Some(charge) = self.charge.take() else { return };
        let now = self.gate.now();
        *locked(&self.gate.refusing_since) = None;
        let is_back = locked(&self.gate.breaker).answered(charge.sent(), now);
        let mut limiter = locked(&self.gate.limiter);
        if is_back {
            limiter.restart(now);
        }
        limiter.answered(&charge, completion.usage.as_ref(), completion.rates.as_deref(), now);
    }

    /// The call of `row` failed; who is to blame decides whether the row loses a try.
    pub(crate) fn failed(mut self, row: u64, error: &CallError) -> Blame {
        let Some(charge) = self.charge.take() else { return Blame::Row };
        let now = self.gate.now();
        let (rates, sent) = (error.rates.as_deref(), charge.sent());
        let mut breaker = locked(&self.gate.breaker);
        let mut limiter = locked(&self.gate.limiter);
        let (is_back, blame) = match error.fault() {
            Fault::Throttled { .. } if self.gate.is_unwaited(sent) => {
                limiter.failed(&charge, rates, now);
                let blame = if limiter.never_fits(&charge) { Blame::Row } else { Blame::Unwaited };
                (breaker.refused(sent, now), blame)
            }
            Fault::Throttled { after } => {
                let blame = match limiter.refused(&charge, after, rates, now) {
                    _ if limiter.never_fits(&charge) => Blame::Row,
                    Refusal::Everybody => {
                        locked(&self.gate.refusing_since).get_or_insert(now);
                        Blame::Provider
                    }
                    Refusal::RowAlone(after) => Blame::StrayRefusal(after),
                };
                (breaker.refused(sent, now), blame)
            }
            Fault::Exhausted { after } => {
                limiter.exhausted(&charge, after, &error.message, now);
                (breaker.refused(sent, now), Blame::Provider)
            }
            Fault::Crowded => {
                let others_go_on = limiter.crowded(&charge, now);
                if self.probe {
                    breaker.probe_lost(now);
                }
                return if others_go_on { Blame::Provider } else { Blame::Row };
            }
            Fault::Permanent | Fault::Fatal => {
                limiter.failed(&charge, rates, now);
                (breaker.answered(sent, now), Blame::Row)
            }
            Fault::Transient { .. } => {
                // A probe says whether the provider is back, not how many calls it can take.
                let overloaded = !breaker.is_open()
                    && error.failure == CallFailure::Server
                    && matches!(error.status, Some(503 | 529));
                if overloaded {
                    limiter.overloaded(&charge, rates, now);
                } else {
                    limiter.failed(&charge, rates, now);
                }
                if self.gate.max_outage.is_zero() {
                    return Blame::Row;
                }
                let call = FailedCall { row, sent, failure: error.failure, message: &error.message };
                (false, breaker.failed(call, now))
            }
        };
        if is_back {
            limiter.restart(now);
        }
        blame
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            locked(&self.gate.limiter).cancelled(&charge);
            if self.probe {
                locked(&self.gate.breaker).probe_lost(self.gate.now());
            }
        }
        self.gate.changed.notify_one();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
