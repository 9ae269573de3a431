//! A model that answers from scripts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_types::{CallError, CallFailure, Completion, MessageRole, Request, TokenUsage};
use tokio::sync::watch;

/// A model that answers prompts from scripts, and other prompts with an echo.
///
/// The prompt of a request is its first user message. The last result of a
/// script repeats.
///
/// ```
/// # use rowmill_testkit::{FakeModel, fake_answer, busy_failure};
/// let model = FakeModel::default().script("recovers", vec![Err(busy_failure()), Ok(fake_answer("four"))]);
/// assert!(model.seen().is_empty());
/// ```
#[derive(Debug)]
pub struct FakeModel {
    scripts: HashMap<String, Vec<Result<Completion, CallError>>>,
    calls: Mutex<RecordedRequests>,
    delay: Duration,
    open: watch::Sender<bool>,
    now: AtomicUsize,
    most: AtomicUsize,
}

#[derive(Debug, Default)]
struct RecordedRequests {
    seen: Vec<Request>,
    by_prompt: HashMap<String, usize>,
}

impl Default for FakeModel {
    fn default() -> Self {
        Self {
            scripts: HashMap::new(),
            calls: Mutex::default(),
            delay: Duration::ZERO,
            open: watch::channel(true).0,
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }
}

impl FakeModel {
    /// Answers `prompt` with these results, one per call; the last one repeats.
    #[must_use]
    pub fn script(mut self, prompt: impl Into<String>, results: Vec<Result<Completion, CallError>>) -> Self {
        self.scripts.insert(prompt.into(), results);
        self
    }

    /// Waits this long on tokio's clock before each answer.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Holds every answer until [`FakeModel::release`].
    #[must_use]
    pub fn hold_answers(self) -> Self {
        self.open.send_replace(false);
        self
    }

    /// Releases held answers and all later ones.
    pub fn release(&self) {
        self.open.send_replace(true);
    }

    /// All requests so far, in order of arrival.
    #[must_use]
    pub fn seen(&self) -> Vec<Request> {
        self.calls().seen.clone()
    }

    /// The maximum number of calls that ran at once.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    fn calls(&self) -> MutexGuard<'_, RecordedRequests> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request and finds its result.
    fn take(&self, request: &Request) -> Result<Completion, CallError> {
        let first = request.messages.iter().find(|message| message.role == MessageRole::User);
        let prompt = first.map(|message| message.text.as_str()).unwrap_or_default();
        let mut calls = self.calls();
        calls.seen.push(request.clone());
        let call = calls.by_prompt.entry(prompt.to_owned()).or_default();
        *call += 1;
        let scripted = self.scripts.get(prompt).and_then(|results| results.get(*call - 1).or(results.last()));
        scripted.cloned().unwrap_or_else(|| Ok(fake_answer(format!("answer to: {prompt}"))))
    }
}

impl Model for FakeModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let result = self.take(request);
            let _running = RunningCall::start(self);
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            // The sender lives as long as this model, so the wait ends only when the model is released.
            drop(self.open.subscribe().wait_for(|open| *open).await);
            result
        })
    }
}

/// A running call; ends even if its future is dropped.
struct RunningCall<'m>(&'m FakeModel);

impl<'m> RunningCall<'m> {
    fn start(model: &'m FakeModel) -> Self {
        let now = model.now.fetch_add(1, Ordering::SeqCst) + 1;
        model.most.fetch_max(now, Ordering::SeqCst);
        Self(model)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A complete answer with this text and plausible usage.
#[must_use]
pub fn fake_answer(text: impl Into<String>) -> Completion {
    let text = text.into();
    let usage = TokenUsage { input: 10, output: text.len().div_ceil(4) as u64, ..TokenUsage::default() };
    Completion { usage: Some(usage), model: Some("fake".to_owned()), ..Completion::from_text(text) }
}

/// A call with this failure.
#[must_use]
pub fn fake_failure(failure: CallFailure) -> CallError {
    CallError::new(failure, format!("the fake model failed: {failure:?}"))
}

/// The error of a provider that fails temporarily.
#[must_use]
pub fn busy_failure() -> CallError {
    CallError { status: Some(503), ..fake_failure(CallFailure::Server) }
}
