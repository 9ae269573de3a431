//! Where the calls of a run wait for their turn: carries out the limiter's decisions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{
    Admission, Blame, Breaker, Charge, FailedCall, Need, Passage, RateFlags, Refusal, ShareId, Wait,
    WaitReason,
};
use rowmill_types::actions::RUN_AGAIN;
use rowmill_types::settings::ON_QUOTA;
use rowmill_types::{CallError, CallFailure, Completion, Fault, Problem, ProblemCode};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::limits::{LaneSettings, OnQuota, Queue, SharedLane, locked};

/// While a call of another model probes the same provider, its end is polled at this interval.
const PROBE_POLL: Duration = Duration::from_millis(250);

/// How long to wait for a provider that has not answered a single call.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);

/// A report about a wait.
pub(crate) enum Told<'a> {
    /// The wait continues, for this long if known.
    Waits(&'a Wait, Option<Duration>),
    /// The wait is over.
    Goes,
}

/// Why there is no permit.
pub(crate) enum Denied {
    /// The provider is down or out of quota, and another model can be asked.
    Down,
    /// Further waiting is pointless.
    Problem(Problem),
}

/// Why a call cannot go now.
enum Held {
    /// It is queued, and waits for the same as its whole queue.
    InLine(Wait),
    /// Only calls of its own run delay it. Those of other runs continue.
    ByOwn(Wait),
    /// The provider refuses all calls. Each run decides how long it waits for that.
    Everybody(Wait),
}

impl Held {
    fn wait(&self) -> &Wait {
        match self {
            Self::InLine(wait) | Self::ByOwn(wait) | Self::Everybody(wait) => wait,
        }
    }
}

/// The call gate of one run for one model.
pub struct Gate {
    lane: Arc<SharedLane>,
    /// The share of this run among those that use the model endpoint, and its number among all runs.
    share: ShareId,
    run: u64,
    /// Held by the first waiting call of this run.
    turn: tokio::sync::Mutex<()>,
    /// The queue in which that call waits for calls of other runs.
    queue: Queue,
    /// Notified when a call of this run has ended.
    changed: Notify,
    settings: LaneSettings,
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate").field("limiter", &self.lane.limiter).finish_non_exhaustive()
    }
}

impl Gate {
    pub(crate) fn new(
        lane: Arc<SharedLane>,
        queue: Queue,
        (share, run): (ShareId, u64),
        settings: LaneSettings,
    ) -> Self {
        let (turn, changed) = (tokio::sync::Mutex::new(()), Notify::new());
        Self { lane, share, run, turn, queue, changed, settings }
    }

    fn now(&self) -> Duration {
        self.lane.now()
    }

    /// For how long the provider has refused all calls.
    pub(crate) fn stuck_for(&self) -> Duration {
        locked(&self.lane.breaker).stuck_for(self.now())
    }

    /// The current maximum number of calls in flight.
    pub(crate) fn allowed(&self) -> usize {
        locked(&self.lane.limiter).allowed(self.share)
    }

    /// The number of concurrent calls to make room for.
    pub(crate) fn wanted(&self) -> usize {
        locked(&self.lane.limiter).wanted(self.share)
    }

    /// The limits per minute that are known by now.
    #[must_use]
    pub fn known(&self) -> RateFlags {
        locked(&self.lane.limiter).known(self.share)
    }

    /// Whether another model should be asked, if there is one.
    pub(crate) fn is_down(&self) -> bool {
        let now = self.now();
        matches!(locked(&self.lane.breaker).passage(now), Passage::Wait(_))
            || locked(&self.lane.limiter).is_exhausted(now)
    }

    /// A permit, if it is available at once and no call waits for one.
    pub(crate) fn try_admit(self: &Arc<Self>, need: Need) -> Option<Permit> {
        let _turn = self.turn.try_lock().ok()?;
        let _place = self.queue.try_lock().ok()?;
        self.ask(need).ok()
    }

    /// Waits for a permit, in order of arrival. Every wait is reported to `told`. A wait for a provider that is down or
    /// out of quota is given up once `elsewhere` reports that another model can be asked.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        need: Need,
        told: &(dyn Fn(Told<'_>) + Sync),
        elsewhere: &(dyn Fn() -> bool + Sync),
    ) -> Result<Permit, Denied> {
        let _turn = self.turn.lock().await;
        let mut waited = false;
        let mut place = None;
        loop {
            if place.is_none() {
                place = Some(self.queue.lock().await);
            }
            let (changed, own_changed) = (self.lane.changed.notified(), self.changed.notified());
            let held = match self.ask(need) {
                Ok(permit) => {
                    if waited {
                        told(Told::Goes);
                    }
                    return Ok(permit);
                }
                Err(held) => held,
            };
            let wait = held.wait();
            if wait.reason.is_grave() && elsewhere() {
                return Err(Denied::Down);
            }
            self.check_patience(wait).map_err(Denied::Problem)?;
            waited = true;
            let left = wait.until.map(|until| until.saturating_sub(self.now()));
            told(Told::Waits(wait, left));
            // The next attempt may be later than the time limit for waiting.
            let longest = left.into_iter().chain(self.patience_left(wait)).min();
            match &held {
                Held::InLine(_) => until(changed, longest).await,
                Held::Everybody(_) => {
                    place = None;
                    until(changed, longest).await;
                }
                Held::ByOwn(_) => {
                    place = None;
                    until(own_changed, longest).await;
                }
            }
        }
    }

    /// How long to wait for a provider that refuses all calls; zero if rows fail once their attempts are used up and a
    /// refusal is only waited out.
    fn patience(&self, breaker: &Breaker) -> Duration {
        // A provider that never worked is more likely misconfigured than down.
        if breaker.was_ever_there() { self.max_outage() } else { self.max_outage().min(FIRST_PATIENCE) }
    }

    fn max_outage(&self) -> Duration {
        self.settings.share.max_outage
    }

    /// The wait that the provider asks of one call, if waiting is allowed.
    pub(crate) fn kept_wait(&self, asked: Option<Duration>) -> Option<Duration> {
        asked.filter(|asked| self.settings.share.waits_for(*asked))
    }

    /// The wait of one call, capped at the allowed time.
    pub(crate) fn longest_wait(&self, wait: Duration) -> Duration {
        if self.max_outage().is_zero() { wait } else { wait.min(self.max_outage()) }
    }

    /// Whether it still makes sense to wait for a provider that refused a call on its own, without affecting others.
    ///
    /// # Errors
    ///
    /// It has refused all calls for too long.
    pub(crate) fn check_refused(&self) -> Result<(), Problem> {
        self.check_patience(&Wait { until: None, reason: WaitReason::Throttled })
    }

    /// The remaining time for this wait, if it has a limit of its own.
    fn patience_left(&self, wait: &Wait) -> Option<Duration> {
        let breaker = locked(&self.lane.breaker);
        let most = self.patience(&breaker);
        let is_stuck = matches!(wait.reason, WaitReason::Outage(_) | WaitReason::Throttled);
        (is_stuck && !most.is_zero()).then(|| most.saturating_sub(breaker.stuck_for(self.now())))
    }

    /// Whether this wait still makes sense.
    fn check_patience(&self, wait: &Wait) -> Result<(), Problem> {
        let breaker = locked(&self.lane.breaker);
        let most = self.patience(&breaker);
        let patience_ended = !most.is_zero() && breaker.stuck_for(self.now()) >= most;
        match &wait.reason {
            WaitReason::Quota(said) if self.settings.on_quota == OnQuota::Stop => {
                Err(Problem::new(ProblemCode::QuotaExhausted, said.clone()).hint(format!(
                    "raise the quota, then {RUN_AGAIN}; use {on_quota} to wait for it",
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
                "the provider rejects every call because of its rate limit",
            )
            .hint(format!("check the account's limits, then {RUN_AGAIN}"))),
            _ => Ok(()),
        }
    }

    /// Whether to stop waiting for a provider that refused a call sent at `sent`: it still refuses all calls although
    /// the wait after its first refusals is over, or it asks for a longer wait than is allowed.
    fn is_unwaited(&self, sent: Duration, asked: Option<Duration>) -> bool {
        let asks_too_much = asked.is_some() && self.kept_wait(asked).is_none();
        let has_waited = || locked(&self.lane.refusing_since).is_some_and(|since| since < sent);
        asks_too_much || (self.max_outage().is_zero() && has_waited())
    }

    fn ask(self: &Arc<Self>, need: Need) -> Result<Permit, Held> {
        let now = self.now();
        let mut breaker = locked(&self.lane.breaker);
        let probe = match breaker.passage(now) {
            // What other runs treat as an outage is none if nothing is waited for.
            _ if self.max_outage().is_zero() => false,
            Passage::Free => false,
            Passage::Probe => true,
            Passage::Wait(until) => {
                let reason = WaitReason::Outage(breaker.said().to_owned());
                let until = Some(until.unwrap_or(now + PROBE_POLL));
                return Err(Held::Everybody(Wait { until, reason }));
            }
        };
        match locked(&self.lane.limiter).admit(self.share, need, now) {
            Admission::Wait(wait) => match wait.reason {
                WaitReason::Throttled | WaitReason::Quota(_) => Err(Held::Everybody(wait)),
                _ => Err(Held::InLine(wait)),
            },
            Admission::WaitForOwn(wait) => Err(Held::ByOwn(wait)),
            Admission::Granted(charge) => {
                if probe {
                    breaker.probe();
                }
                Ok(Permit { gate: self.clone(), charge: Some(charge), probe })
            }
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        locked(&self.lane.limiter).leave(self.share, self.lane.now());
        // Limits that this run set no longer hold up other calls.
        self.lane.changed.notify_waiters();
    }
}

/// A share of the limits. Dropping it returns the share.
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
        *locked(&self.gate.lane.refusing_since) = None;
        let is_back = locked(&self.gate.lane.breaker).answered(charge.sent(), now);
        let mut limiter = locked(&self.gate.lane.limiter);
        if is_back {
            limiter.restart(now);
        }
        limiter.answered(&charge, completion.usage.as_ref(), completion.rates.as_deref(), now);
    }

    /// The call of `row` failed; the blame decides whether this costs the row an attempt.
    pub(crate) fn failed(mut self, row: u64, error: &CallError) -> Blame {
        let Some(charge) = self.charge.take() else { return Blame::Row };
        let now = self.gate.now();
        let (rates, sent, run) = (error.rates.as_deref(), charge.sent(), self.gate.run);
        let mut breaker = locked(&self.gate.lane.breaker);
        let mut limiter = locked(&self.gate.lane.limiter);
        let (is_back, blame) = match error.fault() {
            Fault::Throttled { after } if self.gate.is_unwaited(sent, after) => {
                limiter.failed(&charge, rates, now);
                let blame = if limiter.never_fits(&charge) { Blame::Row } else { Blame::Unwaited };
                (breaker.refused(sent, now), blame)
            }
            Fault::Throttled { after } => {
                let blame = match limiter.refused(&charge, after, rates, now) {
                    _ if limiter.never_fits(&charge) => Blame::Row,
                    Refusal::Everybody => {
                        locked(&self.gate.lane.refusing_since).get_or_insert(now);
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
                // A probe shows whether the provider is back, not how many calls it can take.
                let overloaded = !breaker.is_open()
                    && error.failure == CallFailure::Server
                    && matches!(error.status, Some(503 | 529));
                if overloaded {
                    limiter.overloaded(&charge, rates, now);
                } else {
                    limiter.failed(&charge, rates, now);
                }
                if self.gate.max_outage().is_zero() {
                    return Blame::Row;
                }
                let call = FailedCall { run, row, sent, failure: error.failure, message: &error.message };
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
            locked(&self.gate.lane.limiter).cancelled(&charge);
            if self.probe {
                locked(&self.gate.lane.breaker).probe_lost(self.gate.now());
            }
        }
        self.gate.changed.notify_waiters();
        self.gate.lane.changed.notify_waiters();
    }
}

/// Waits until something has changed, at most for `longest`.
async fn until(changed: Notified<'_>, longest: Option<Duration>) {
    match longest {
        None => changed.await,
        Some(longest) => {
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(longest) => {}
            }
        }
    }
}
