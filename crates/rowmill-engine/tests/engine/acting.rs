//! A model whose answers a test defines, and which records when it was called.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_testkit::fake_failure;
use rowmill_types::{CallError, CallFailure, Completion, Request};
use tokio::time::Instant;

pub(crate) type Outcome = Result<Completion, CallError>;

/// A call, as the model sees it.
pub(crate) struct Call<'a> {
    pub(crate) prompt: &'a str,
    /// The time since the model was created.
    pub(crate) at: Duration,
    /// The number of earlier calls.
    pub(crate) before: usize,
    /// The maximum number of tokens of the answer, if the call sets one.
    pub(crate) cap: Option<u64>,
}

type Act = dyn Fn(Call<'_>) -> (Duration, Outcome) + Send + Sync;

/// A model whose answers and answer times are given by a function.
pub(crate) struct Acting {
    act: Box<Act>,
    began: Instant,
    calls: Mutex<Vec<(Duration, String)>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Acting {
    pub(crate) fn new(act: impl Fn(Call<'_>) -> (Duration, Outcome) + Send + Sync + 'static) -> Self {
        Self {
            act: Box::new(act),
            began: Instant::now(),
            calls: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }

    /// The times of calls in seconds, and their prompts.
    pub(crate) fn calls(&self) -> Vec<(f64, String)> {
        let calls = self.calls.lock().unwrap();
        calls.iter().map(|(at, prompt)| (at.as_secs_f64(), prompt.clone())).collect()
    }

    /// The times of calls, in seconds.
    pub(crate) fn times(&self) -> Vec<f64> {
        self.calls().into_iter().map(|(at, _)| at).collect()
    }

    /// The maximum number of concurrent calls.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Acting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Acting").finish_non_exhaustive()
    }
}

impl Model for Acting {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let prompt = &request.messages[0].text;
            let at = self.began.elapsed();
            let before = {
                let mut calls = self.calls.lock().unwrap();
                calls.push((at, prompt.clone()));
                calls.len() - 1
            };
            let running = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            let (wait, outcome) = (self.act)(Call { prompt, at, before, cap: request.output_cap });
            tokio::time::sleep(wait).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            outcome
        })
    }
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A refusal because of a rate limit, with the wait that the provider asks for.
pub(crate) fn refused(after: Option<f64>) -> CallError {
    let retry_after = after.map(seconds);
    CallError { status: Some(429), retry_after, ..fake_failure(CallFailure::RateLimited) }
}

/// An exhausted quota.
pub(crate) fn exhausted() -> CallError {
    CallError { status: Some(429), ..CallError::new(CallFailure::QuotaExhausted, "no credit is left") }
}

/// A provider failure during this call.
pub(crate) fn broken() -> CallError {
    CallError { status: Some(500), ..fake_failure(CallFailure::Server) }
}
