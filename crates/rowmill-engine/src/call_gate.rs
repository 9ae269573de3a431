//! Where the calls of a run wait for their turn: carries out the limiter's decisions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{
    AdmissionDecision, BreakerDecision, CallNeed, CallWait, CircuitBreaker, FailedCall, FailureBlame,
    LimiterRunId, MinuteLimits, RateLimitCharge, RefusalScope, WaitReason,
};
use rowmill_types::actions::RUN_AGAIN;
use rowmill_types::settings::ON_QUOTA;
use rowmill_types::{CallError, CallFailure, CallRetryClass, Completion, Problem, ProblemCode};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::limits::{CallGateSettings, CallQueue, OnQuota, SharedEndpoint, lock_unpoisoned};

/// While a call of another model probes the same provider, its end is polled at this interval.
const PROBE_POLL: Duration = Duration::from_millis(250);

/// How long to wait for a provider that has not answered a single call.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);

/// A report about a wait.
pub(crate) enum WaitNotice<'a> {
    /// The wait continues, for this long if known.
    Waiting(&'a CallWait, Option<Duration>),
    /// The wait is over.
    Over,
}

/// Why there is no permit.
pub(crate) enum PermitDenied {
    /// The provider is down or out of quota, and another model can be asked.
    Down,
    /// Further waiting is pointless.
    Problem(Problem),
}

/// Why a call cannot go now.
enum BlockedBy {
    /// It is queued, and waits for the same as its whole queue.
    InLine(CallWait),
    /// Only calls of its own run delay it. Those of other runs continue.
    OwnRun(CallWait),
    /// The provider refuses all calls. Each run decides how long it waits for that.
    Provider(CallWait),
}

impl BlockedBy {
    fn wait(&self) -> &CallWait {
        match self {
            Self::InLine(wait) | Self::OwnRun(wait) | Self::Provider(wait) => wait,
        }
    }
}

/// The call gate of one run for one model.
pub struct CallGate {
    endpoint: Arc<SharedEndpoint>,
    /// The share of this run among those that use the model endpoint, and its number among all runs.
    share: LimiterRunId,
    run: u64,
    /// Held by the first waiting call of this run.
    turn: tokio::sync::Mutex<()>,
    /// The queue in which that call waits for calls of other runs.
    queue: CallQueue,
    /// Notified when a call of this run has ended.
    changed: Notify,
    settings: CallGateSettings,
}

impl fmt::Debug for CallGate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate").field("limiter", &self.endpoint.limiter).finish_non_exhaustive()
    }
}

impl CallGate {
    pub(crate) fn new(
        endpoint: Arc<SharedEndpoint>,
        queue: CallQueue,
        (share, run): (LimiterRunId, u64),
        settings: CallGateSettings,
    ) -> Self {
        let (turn, changed) = (tokio::sync::Mutex::new(()), Notify::new());
        Self { endpoint, share, run, turn, queue, changed, settings }
    }

    fn now(&self) -> Duration {
        self.endpoint.now()
    }

    /// For how long the provider has refused all calls.
    pub(crate) fn blocked_for(&self) -> Duration {
        lock_unpoisoned(&self.endpoint.breaker).time_without_answer(self.now())
    }

    /// The current maximum number of calls in flight.
    pub(crate) fn max_calls_in_flight(&self) -> usize {
        lock_unpoisoned(&self.endpoint.limiter).max_calls_in_flight(self.share)
    }

    /// The number of concurrent calls to make room for.
    pub(crate) fn wanted_calls(&self) -> usize {
        lock_unpoisoned(&self.endpoint.limiter).wanted_calls(self.share)
    }

    /// The limits per minute that are known by now.
    #[must_use]
    pub fn effective_minute_limits(&self) -> MinuteLimits {
        lock_unpoisoned(&self.endpoint.limiter).effective_minute_limits(self.share)
    }

    /// Whether another model should be asked, if there is one.
    pub(crate) fn is_down(&self) -> bool {
        let now = self.now();
        matches!(lock_unpoisoned(&self.endpoint.breaker).decide(now), BreakerDecision::Wait(_))
            || lock_unpoisoned(&self.endpoint.limiter).is_waiting_for_quota(now)
    }

    /// A permit, if it is available at once and no call waits for one.
    pub(crate) fn try_admit(self: &Arc<Self>, need: CallNeed) -> Option<CallPermit> {
        let _turn = self.turn.try_lock().ok()?;
        let _place = self.queue.try_lock().ok()?;
        self.ask(need).ok()
    }

    /// Waits for a permit, in order of arrival. Every wait is reported to `told`. A wait for a provider that is down or
    /// out of quota is given up once `elsewhere` reports that another model can be asked.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        need: CallNeed,
        on_wait: &(dyn Fn(WaitNotice<'_>) + Sync),
        elsewhere: &(dyn Fn() -> bool + Sync),
    ) -> Result<CallPermit, PermitDenied> {
        let _turn = self.turn.lock().await;
        let mut waited = false;
        let mut place = None;
        loop {
            if place.is_none() {
                place = Some(self.queue.lock().await);
            }
            let (changed, own_changed) = (self.endpoint.changed.notified(), self.changed.notified());
            let held = match self.ask(need) {
                Ok(permit) => {
                    if waited {
                        on_wait(WaitNotice::Over);
                    }
                    return Ok(permit);
                }
                Err(held) => held,
            };
            let wait = held.wait();
            if wait.reason.is_serious() && elsewhere() {
                return Err(PermitDenied::Down);
            }
            self.check_patience(wait).map_err(PermitDenied::Problem)?;
            waited = true;
            let left = wait.until.map(|until| until.saturating_sub(self.now()));
            on_wait(WaitNotice::Waiting(wait, left));
            // The next attempt may be later than the time limit for waiting.
            let longest = left.into_iter().chain(self.patience_left(wait)).min();
            match &held {
                BlockedBy::InLine(_) => until(changed, longest).await,
                BlockedBy::Provider(_) => {
                    place = None;
                    until(changed, longest).await;
                }
                BlockedBy::OwnRun(_) => {
                    place = None;
                    until(own_changed, longest).await;
                }
            }
        }
    }

    /// How long to wait for a provider that refuses all calls; zero if rows fail once their attempts are used up and a
    /// refusal is only waited out.
    fn patience(&self, breaker: &CircuitBreaker) -> Duration {
        // A provider that never worked is more likely misconfigured than down.
        if breaker.was_ever_reached() { self.max_outage() } else { self.max_outage().min(FIRST_PATIENCE) }
    }

    fn max_outage(&self) -> Duration {
        self.settings.share.max_outage
    }

    /// The wait that the provider asks of one call, if waiting is allowed.
    pub(crate) fn kept_wait(&self, asked: Option<Duration>) -> Option<Duration> {
        asked.filter(|asked| self.settings.share.accepts_requested_wait(*asked))
    }

    /// The wait of one call, capped at the allowed time.
    pub(crate) fn capped_wait(&self, wait: Duration) -> Duration {
        if self.max_outage().is_zero() { wait } else { wait.min(self.max_outage()) }
    }

    /// Whether it still makes sense to wait for a provider that refused a call on its own, without affecting others.
    ///
    /// # Errors
    ///
    /// It has refused all calls for too long.
    pub(crate) fn check_refusal_patience(&self) -> Result<(), Problem> {
        self.check_patience(&CallWait { until: None, reason: WaitReason::Throttled })
    }

    /// The remaining time for this wait, if it has a limit of its own.
    fn patience_left(&self, wait: &CallWait) -> Option<Duration> {
        let breaker = lock_unpoisoned(&self.endpoint.breaker);
        let most = self.patience(&breaker);
        let is_stuck = matches!(wait.reason, WaitReason::Outage(_) | WaitReason::Throttled);
        (is_stuck && !most.is_zero()).then(|| most.saturating_sub(breaker.time_without_answer(self.now())))
    }

    /// Whether this wait still makes sense.
    fn check_patience(&self, wait: &CallWait) -> Result<(), Problem> {
        let breaker = lock_unpoisoned(&self.endpoint.breaker);
        let most = self.patience(&breaker);
        let patience_ended = !most.is_zero() && breaker.time_without_answer(self.now()) >= most;
        match &wait.reason {
            WaitReason::Quota(cause) if self.settings.on_quota == OnQuota::Stop => {
                Err(Problem::new(ProblemCode::QuotaExhausted, cause.clone()).hint(format!(
                    "raise the quota, then {RUN_AGAIN}; use {on_quota} to wait for it",
                    on_quota = ON_QUOTA.with_value("wait")
                )))
            }
            WaitReason::Outage(cause) if patience_ended => {
                let waited = most.as_secs_f64();
                let message = format!("the provider has not answered for {waited} s: {cause}");
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
        let has_waited = || lock_unpoisoned(&self.endpoint.refusing_since).is_some_and(|since| since < sent);
        asks_too_much || (self.max_outage().is_zero() && has_waited())
    }

    fn ask(self: &Arc<Self>, need: CallNeed) -> Result<CallPermit, BlockedBy> {
        let now = self.now();
        let mut breaker = lock_unpoisoned(&self.endpoint.breaker);
        let probe = match breaker.decide(now) {
            // What other runs treat as an outage is none if nothing is waited for.
            _ if self.max_outage().is_zero() => false,
            BreakerDecision::Allowed => false,
            BreakerDecision::Probe => true,
            BreakerDecision::Wait(until) => {
                let reason = WaitReason::Outage(breaker.last_message().to_owned());
                let until = Some(until.unwrap_or(now + PROBE_POLL));
                return Err(BlockedBy::Provider(CallWait { until, reason }));
            }
        };
        match lock_unpoisoned(&self.endpoint.limiter).admit(self.share, need, now) {
            AdmissionDecision::Wait(wait) => match wait.reason {
                WaitReason::Throttled | WaitReason::Quota(_) => Err(BlockedBy::Provider(wait)),
                _ => Err(BlockedBy::InLine(wait)),
            },
            AdmissionDecision::WaitForOwnRun(wait) => Err(BlockedBy::OwnRun(wait)),
            AdmissionDecision::Granted(charge) => {
                if probe {
                    breaker.record_probe_sent();
                }
                Ok(CallPermit { gate: self.clone(), charge: Some(charge), probe })
            }
        }
    }
}

impl Drop for CallGate {
    fn drop(&mut self) {
        lock_unpoisoned(&self.endpoint.limiter).remove_run(self.share, self.endpoint.now());
        // Limits that this run set no longer hold up other calls.
        self.endpoint.changed.notify_waiters();
    }
}

/// A share of the limits. Dropping it returns the share.
#[derive(Debug)]
pub(crate) struct CallPermit {
    gate: Arc<CallGate>,
    charge: Option<RateLimitCharge>,
    probe: bool,
}

impl CallPermit {
    /// The call was answered.
    pub(crate) fn record_answer(mut self, completion: &Completion) {
        let Some(charge) = self.charge.take() else { return };
        let now = self.gate.now();
        *lock_unpoisoned(&self.gate.endpoint.refusing_since) = None;
        let is_back = lock_unpoisoned(&self.gate.endpoint.breaker).record_answer(charge.sent_at(), now);
        let mut limiter = lock_unpoisoned(&self.gate.endpoint.limiter);
        if is_back {
            limiter.restart_after_outage(now);
        }
        limiter.record_answer(&charge, completion.usage.as_ref(), completion.rate_limits.as_deref(), now);
    }

    /// The call of `row` failed; the blame decides whether this costs the row an attempt.
    pub(crate) fn record_failure(mut self, row: u64, error: &CallError) -> FailureBlame {
        let Some(charge) = self.charge.take() else { return FailureBlame::Row };
        let now = self.gate.now();
        let (rates, sent, run) = (error.rate_limits.as_deref(), charge.sent_at(), self.gate.run);
        let mut breaker = lock_unpoisoned(&self.gate.endpoint.breaker);
        let mut limiter = lock_unpoisoned(&self.gate.endpoint.limiter);
        let (is_back, blame) = match error.retry_class() {
            CallRetryClass::Throttled { after } if self.gate.is_unwaited(sent, after) => {
                limiter.record_failure(&charge, rates, now);
                let blame = match limiter.never_fits(&charge) {
                    true => FailureBlame::Row,
                    false => FailureBlame::ProviderNotAwaited,
                };
                (breaker.record_refusal(sent, now), blame)
            }
            CallRetryClass::Throttled { after } => {
                let blame = match limiter.record_refusal(&charge, after, rates, now) {
                    _ if limiter.never_fits(&charge) => FailureBlame::Row,
                    RefusalScope::EveryCall => {
                        lock_unpoisoned(&self.gate.endpoint.refusing_since).get_or_insert(now);
                        FailureBlame::Provider
                    }
                    RefusalScope::RowAlone(after) => FailureBlame::StrayRefusal(after),
                };
                (breaker.record_refusal(sent, now), blame)
            }
            CallRetryClass::Exhausted { after } => {
                limiter.record_quota_exhaustion(&charge, after, &error.message, now);
                (breaker.record_refusal(sent, now), FailureBlame::Provider)
            }
            CallRetryClass::LocalShortage => {
                let others_go_on = limiter.record_local_shortage(&charge, now);
                if self.probe {
                    breaker.record_lost_probe(now);
                }
                return if others_go_on { FailureBlame::Provider } else { FailureBlame::Row };
            }
            CallRetryClass::Permanent | CallRetryClass::Fatal => {
                limiter.record_failure(&charge, rates, now);
                (breaker.record_answer(sent, now), FailureBlame::Row)
            }
            CallRetryClass::Transient { .. } => {
                // A probe shows whether the provider is back, not how many calls it can take.
                let overloaded = !breaker.is_open()
                    && error.failure == CallFailure::Server
                    && matches!(error.status, Some(503 | 529));
                if overloaded {
                    limiter.record_overload(&charge, rates, now);
                } else {
                    limiter.record_failure(&charge, rates, now);
                }
                if self.gate.max_outage().is_zero() {
                    return FailureBlame::Row;
                }
                let call = FailedCall { run, row, sent, failure: error.failure, message: &error.message };
                (false, breaker.record_failure(call, now))
            }
        };
        if is_back {
            limiter.restart_after_outage(now);
        }
        blame
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            lock_unpoisoned(&self.gate.endpoint.limiter).record_cancel(&charge);
            if self.probe {
                lock_unpoisoned(&self.gate.endpoint.breaker).record_lost_probe(self.gate.now());
            }
        }
        self.gate.changed.notify_waiters();
        self.gate.endpoint.changed.notify_waiters();
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
