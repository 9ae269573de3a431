//! State that a simulator's connections share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rowmill_types::Money;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::conditions::Conditions;
use crate::gate::Gate;
use crate::limits::Measure;
use crate::recorder::Recorder;
use crate::script::Script;
use crate::stats::Stats;
use crate::stored::Stored;
use crate::thought::Thoughts;
use crate::tokens::Tokenizer;

/// The script, the current conditions, and the records.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
    pub(crate) gate: Gate,
    pub(crate) stored: Stored,
    pub(crate) thoughts: Thoughts,
    conditions: Mutex<Conditions>,
    /// Notifies the server that an outage was started or ended from outside.
    pub(crate) steered: Notify,
}

/// The time according to the clock of the server's own runtime.
///
/// Tests control a simulator from runtimes with paused time, so their clocks are not used.
pub(crate) fn clock() -> Instant {
    Instant::from_std(std::time::Instant::now())
}

impl Shared {
    pub(crate) fn new(script: Script) -> Self {
        if script.tokenizer == Tokenizer::O200k {
            // Loading it takes a moment, which no call should have to wait for.
            script.tokenizer.count("");
        }
        let money = script.price.map(|_| Money::ZERO);
        let recorder = Recorder::new(script.keep_requests, script.keep_prompts, money);
        let gate = Gate::new(script.hold_after, script.drip_every);
        let conditions = Mutex::new(Conditions::new(&script, clock()));
        Self {
            script,
            recorder,
            gate,
            stored: Stored::default(),
            thoughts: Thoughts::default(),
            conditions,
            steered: Notify::new(),
        }
    }

    /// The current conditions.
    pub(crate) fn conditions(&self) -> MutexGuard<'_, Conditions> {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        conditions.advance(clock());
        conditions
    }

    /// The statistics so far, with what was allowed.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.recorder.look(Stats::clone);
        stats.stored_files = self.stored.count();
        self.with_allowed(stats)
    }

    /// Adds what the limits allowed in each minute.
    pub(crate) fn with_allowed(&self, mut stats: Stats) -> Stats {
        let (conditions, now) = (self.conditions(), clock());
        for (number, minute) in stats.minutes.iter_mut().enumerate() {
            let allowed = |measure| conditions.allowed(measure, number, now);
            minute.quota_requests = allowed(Measure::Requests);
            minute.quota_tokens = allowed(Measure::Tokens);
            minute.quota_input_tokens = allowed(Measure::InputTokens);
            minute.quota_output_tokens = allowed(Measure::OutputTokens);
        }
        stats
    }
}
