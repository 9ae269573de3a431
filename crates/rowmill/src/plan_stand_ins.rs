//! Substitutes for model, ledger and store while a run is only planned.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::ports::{
    AnswerKey, AnswerStore, AppendOutcome, EventGroup, Ledger, LedgerPosition, LedgerRecordId, Model,
    OpenLedger, RecordReader, RunEpoch, StoredAnswer,
};
use rowmill_models::{CountAccuracy, TokenCounter, message_tokens};
use rowmill_types::{CallError, Completion, Problem, ProblemCode, Request};

use crate::row_completion_curve::ReachObserver;

/// A model that counts the tokens of its requests.
#[derive(Debug)]
pub(crate) struct CountingModel {
    counter: TokenCounter,
    reach: Arc<ReachObserver>,
    fixed: u64,
    tokens: AtomicU64,
    /// Whether there was a file whose tokens can only be estimated.
    guessed: AtomicBool,
}

impl CountingModel {
    pub(crate) fn new(counter: TokenCounter, fixed: u64, reach: Arc<ReachObserver>) -> Self {
        Self { counter, reach, fixed, tokens: AtomicU64::new(0), guessed: AtomicBool::new(false) }
    }

    /// How accurate the count is, given the files that occurred.
    pub(crate) fn accuracy(&self) -> CountAccuracy {
        if self.guessed.load(Ordering::Relaxed) {
            self.counter.accuracy_with_files()
        } else {
            self.counter.accuracy()
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }
}

impl Model for CountingModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        async move {
            self.reach.record_call();
            let tokens = self.fixed + message_tokens(&self.counter, &request.messages);
            self.tokens.fetch_add(tokens, Ordering::Relaxed);
            let files = request.messages.iter().flat_map(|message| &message.attachments);
            if files.into_iter().any(|file| file.text().is_none()) {
                self.guessed.store(true, Ordering::Relaxed);
            }
            Ok(Completion::from_text("counted"))
        }
        .boxed()
    }
}

/// A ledger that stores nothing: a plan must leave no files behind.
#[derive(Debug)]
pub(crate) struct NoLedger;

impl NoLedger {
    /// Opens a ledger that stores nothing.
    pub(crate) fn open() -> OpenLedger {
        OpenLedger { ledger: Arc::new(Self), epoch: RunEpoch::default() }
    }
}

impl Ledger for NoLedger {
    fn append<'a>(&'a self, _: RunEpoch, _: EventGroup<'a>) -> BoxFuture<'a, Result<AppendOutcome, Problem>> {
        std::future::ready(Ok(AppendOutcome { records: Vec::new(), problem: None })).boxed()
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        Ok(Box::new(Self))
    }

    fn position(&self) -> LedgerPosition {
        LedgerPosition::START
    }

    fn is_persistent(&self) -> bool {
        false
    }
}

impl RecordReader for NoLedger {
    fn read(&mut self, _: LedgerRecordId) -> Result<Vec<u8>, Problem> {
        // With one row at a time no record waits for another, so none is read back.
        Err(Problem::new(ProblemCode::Internal, "a look ahead keeps no records"))
    }
}

/// Looks up answers in a store and among the requests so far, without writing to the store.
#[derive(Debug)]
pub(crate) struct ReadOnlyAnswerStore {
    store: Arc<dyn AnswerStore>,
    seen: Mutex<SeenAnswers>,
}

#[derive(Debug, Default)]
struct SeenAnswers {
    /// The keys of earlier requests, and of answers found in the store.
    keys: HashSet<AnswerKey>,
    /// The usage of the answers that were found.
    used: AnsweredRowUsage,
}

impl ReadOnlyAnswerStore {
    pub(crate) fn new(store: Arc<dyn AnswerStore>) -> Self {
        Self { store, seen: Mutex::default() }
    }

    /// The usage of the answers that were found in the store, each counted once.
    pub(crate) fn usage_of_hits(&self) -> AnsweredRowUsage {
        self.seen().used.clone()
    }

    fn seen(&self) -> MutexGuard<'_, SeenAnswers> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerStore for ReadOnlyAnswerStore {
    fn find(&self, key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
        async move {
            if self.seen().keys.contains(&key) {
                return Some(StoredAnswer { text: "counted".into(), usage: None, model: None });
            }
            let found = self.store.find(key).await?;
            let mut seen = self.seen();
            if let Some(usage) = found.usage.as_ref().filter(|_| seen.keys.insert(key)) {
                // The duration of a call is not stored with its answer.
                seen.used.add_row(usage, Duration::ZERO);
            }
            Some(found)
        }
        .boxed()
    }

    fn store(&self, key: AnswerKey, _: &StoredAnswer) {
        self.seen().keys.insert(key);
    }
}
