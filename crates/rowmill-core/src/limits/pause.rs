//! A time during which no call goes to a model.

use std::time::Duration;

use super::wait::{CallWait, WaitReason};

/// The current pause of a model, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct CallPause(Option<ActivePause>);

#[derive(Debug, Clone)]
struct ActivePause {
    began: Duration,
    until: Duration,
    reason: WaitReason,
    /// When the call was sent whose refusal started the pause, if only the number of refusals suggests one.
    doubted_since: Option<Duration>,
}

impl CallPause {
    /// Pauses until `until`, unless there is a longer pause already.
    pub(super) fn begin(
        &mut self,
        (began, until): (Duration, Duration),
        reason: WaitReason,
        doubted_since: Option<Duration>,
    ) {
        if self.0.as_ref().is_none_or(|paused| paused.until < until) {
            self.0 = Some(ActivePause { began, until, reason, doubted_since });
        }
    }

    /// Its full length, if it is a pause after refusals.
    pub(super) fn after_refusals(&self) -> Option<Duration> {
        let paused = self.0.as_ref().filter(|paused| paused.reason == WaitReason::Throttled)?;
        Some(paused.until.saturating_sub(paused.began))
    }

    /// What calls wait for now.
    pub(super) fn wait(&mut self, now: Duration) -> Option<CallWait> {
        let paused = self.0.as_ref()?;
        if paused.until > now {
            return Some(CallWait { until: Some(paused.until), reason: paused.reason.clone() });
        }
        self.0 = None;
        None
    }

    /// Whether calls wait for quota now.
    pub(super) fn is_for_quota(&self, now: Duration) -> bool {
        let paused = self.0.as_ref().filter(|paused| paused.until > now);
        paused.is_some_and(|paused| matches!(paused.reason, WaitReason::Quota(_)))
    }

    /// Most calls are not refused, and a call that was sent at `sent` was answered: ends a pause that is based only on
    /// refusals of earlier calls. Returns `true` if there was one.
    pub(super) fn end_if_doubted(&mut self, sent: Duration) -> bool {
        let doubted = self.0.as_ref().and_then(|paused| paused.doubted_since);
        doubted.is_some_and(|since| since <= sent) && self.0.take().is_some()
    }
}
