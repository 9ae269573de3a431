//! State that a simulator's connections share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rowmill_types::Money;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::answer_hold::AnswerHold;
use crate::batch::BatchStore;
use crate::conditions::CurrentConditions;
use crate::limits::LimitKind;
use crate::recorder::RequestRecorder;
use crate::script::SimulatorScript;
use crate::stats::SimulatorStats;
use crate::stored_uploads::StoredUploads;
use crate::thought::ThoughtRegistry;
use crate::tokens::Tokenizer;

/// The script, the current conditions, and the records.
#[derive(Debug)]
pub(crate) struct SimulatorState {
    pub(crate) script: SimulatorScript,
    pub(crate) recorder: RequestRecorder,
    pub(crate) gate: AnswerHold,
    pub(crate) stored: StoredUploads,
    pub(crate) batches: BatchStore,
    pub(crate) thoughts: ThoughtRegistry,
    conditions: Mutex<CurrentConditions>,
    /// Notifies the server that an outage was started or ended from outside.
    pub(crate) outage_changed: Notify,
}

/// The time according to the clock of the server's own runtime.
///
/// Tests control a simulator from runtimes with paused time, so their clocks are not used.
pub(crate) fn server_time() -> Instant {
    Instant::from_std(std::time::Instant::now())
}

impl SimulatorState {
    pub(crate) fn new(script: SimulatorScript) -> Self {
        if script.tokenizer == Tokenizer::O200k {
            // Loading it takes a moment, which no call should have to wait for.
            script.tokenizer.count("");
        }
        let money = script.price.map(|_| Money::ZERO);
        let recorder = RequestRecorder::new(script.keep_requests, script.keep_prompts, money);
        let gate = AnswerHold::new(script.hold_after, script.drip_every);
        let conditions = Mutex::new(CurrentConditions::new(&script, server_time()));
        let batches = BatchStore::new(&script.batches);
        Self {
            script,
            batches,
            recorder,
            gate,
            stored: StoredUploads::default(),
            thoughts: ThoughtRegistry::default(),
            conditions,
            outage_changed: Notify::new(),
        }
    }

    /// The current conditions.
    pub(crate) fn conditions(&self) -> MutexGuard<'_, CurrentConditions> {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        conditions.advance(server_time());
        conditions
    }

    /// The statistics so far, with what was allowed.
    pub(crate) fn stats(&self) -> SimulatorStats {
        let mut stats = self.recorder.with_stats(SimulatorStats::clone);
        stats.stored_files = self.stored.count();
        stats.batches.jobs_by_state = self.batches.jobs_by_state();
        self.with_allowed(stats)
    }

    /// Adds what the limits allowed in each minute.
    pub(crate) fn with_allowed(&self, mut stats: SimulatorStats) -> SimulatorStats {
        let (conditions, now) = (self.conditions(), server_time());
        for (number, minute) in stats.minutes.iter_mut().enumerate() {
            let allowed = |measure| conditions.allowed(measure, number, now);
            minute.quota_requests = allowed(LimitKind::Requests);
            minute.quota_tokens = allowed(LimitKind::Tokens);
            minute.quota_input_tokens = allowed(LimitKind::InputTokens);
            minute.quota_output_tokens = allowed(LimitKind::OutputTokens);
        }
        stats
    }
}
