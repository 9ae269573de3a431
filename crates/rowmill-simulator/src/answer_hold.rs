//! Holds answers back until a test releases them.

use std::time::Duration;

use tokio::sync::{Semaphore, watch};

/// Which calls may be answered, and how many bytes of dripping answers may be sent.
#[derive(Debug)]
pub(crate) struct AnswerHold {
    allowed: watch::Sender<u64>,
    drops: Semaphore,
    interval: Option<Duration>,
}

impl AnswerHold {
    pub(crate) fn new(hold_after: Option<u64>, interval: Option<Duration>) -> Self {
        let (allowed, _) = watch::channel(hold_after.unwrap_or(u64::MAX));
        Self { allowed, drops: Semaphore::new(0), interval }
    }

    /// Waits until the call with this number (from 1) may be answered.
    pub(crate) async fn wait_for_release(&self, call: u64) {
        let mut allowed = self.allowed.subscribe();
        // The sender lives as long as this value, so the wait ends only by permission.
        drop(allowed.wait_for(|allowed| call <= *allowed).await);
    }

    pub(crate) fn release(&self) {
        self.allowed.send_replace(u64::MAX);
    }

    pub(crate) fn release_some(&self, calls: u64) {
        self.allowed.send_modify(|allowed| *allowed = allowed.saturating_add(calls));
    }

    pub(crate) fn allow_bytes(&self, bytes: usize) {
        self.drops.add_permits(bytes);
    }

    /// Waits until one more byte may be sent.
    pub(crate) async fn wait_for_byte(&self) {
        let permitted = async {
            if let Ok(permit) = self.drops.acquire().await {
                permit.forget();
            }
        };
        match self.interval {
            None => permitted.await,
            Some(interval) => {
                tokio::select! {
                    () = permitted => {}
                    () = tokio::time::sleep(interval) => {}
                }
            }
        }
    }
}
