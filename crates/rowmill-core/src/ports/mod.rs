//! The ports: traits for everything that the engine needs from outside.
//!
//! They are defined in the crate below the adapters, so adapters know neither each other nor the engine.

mod batch_api;
mod dataset;
mod program;
mod store;
mod tools;

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use rowmill_types::{AnswerVerdict, CallError, Completion, Problem, Request, RowError};
pub use rowmill_types::{ComparisonOperator, ComparisonValue};

pub use batch_api::{
    BatchApi, BatchRules, ExpiredJobResultRule, JobCounts, JobError, JobFile, JobKeyReporting, JobReport,
    JobResult, JobState,
};
pub use dataset::{
    AttachmentLoader, ColumnCondition, ColumnKind, Dataset, DatasetColumn, InputIdentity, InputReadProgress,
    ReadLimit, RequestedDatasetPart, RowSource,
};

pub use program::{AnswerMapper, AnsweredRow, PromptMaker, PromptRendering, ResultVerdict};
pub use store::{
    AppendOutcome, Durability, EventGroup, Ledger, LedgerExtensionEvent, LedgerPosition, LedgerRecordId,
    LedgerRequirements, NamedRow, OpenLedger, ParkedRow, PreparedRun, RecordReader, RetainedRunParts,
    RowStepEvent, RunEpoch, RunLock, RunStore, ScannedEvent,
};
pub use tools::{HookCall, HookKind, HookRunner, ToolFailure, ToolHost, ToolPermit, ToolRequest};

use crate::limits::WaitReason;

/// A model: answers one turn.
///
/// Live calls, built-in models and fakes are all models. Everything that is the same for every row is part of the
/// model.
///
/// # Contract
///
/// * The future is polled on the thread that drives all calls; it must neither block nor compute for long there.
/// * Dropping the future ends the call; nothing keeps running.
/// * A model never retries, sleeps before a retry or logs; it returns a [`CallError`] and the engine decides.
/// * `request.key` is sent as an idempotency key if the provider supports one.
pub trait Model: Send + Sync + Debug {
    /// Sends one turn and waits for the answer.
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>>;

    /// Deletes what the model keeps at the provider, such as uploaded files; called once when the run ends.
    ///
    /// It does what it can within half a minute; what remains is not an error. A later call is answered as usual.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Checks answers with more than a JSON Schema, such as the user's own code.
///
/// # Contract
///
/// * The same answer gets the same verdict.
/// * Dropping the future ends the check; nothing keeps running.
/// * A check that hangs or fails returns [`AnswerVerdict::Unchecked`] in good time.
pub trait AnswerChecker: Send + Sync + Debug {
    /// Checks an answer, which is valid JSON.
    fn check<'a>(&'a self, answer: &'a str) -> BoxFuture<'a, AnswerVerdict>;
}

/// A cache of paid answers, by the key of the request. Only good answers are kept.
///
/// A store must never hinder a run: if it fails, it reports that once through its own notice, finds nothing and keeps
/// nothing.
pub trait AnswerStore: Send + Sync + Debug {
    /// The answer to an identical earlier request.
    fn find(&self, key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>>;

    /// Stores an answer. It can be found as soon as this returns, and is on disk soon after, at the latest when the
    /// store is dropped.
    fn store(&self, key: AnswerKey, answer: &StoredAnswer);

    /// Adds answers from other records, unless the store has them. Blocks until they are stored, so it must not be
    /// called where blocking is not allowed.
    ///
    /// # Errors
    ///
    /// They cannot be stored.
    fn restore(&self, answers: Vec<(AnswerKey, StoredAnswer)>) -> Result<(), Problem> {
        answers.iter().for_each(|(key, answer)| self.store(*key, answer));
        Ok(())
    }
}

/// Identifies everything that shapes an answer: model, settings, instruction, schema, messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnswerKey(pub u128);

/// An answer that can be reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The text.
    pub text: String,
    /// The usage when it was paid for, if the provider reported it.
    pub usage: Option<rowmill_types::TokenUsage>,
    /// The model that answered, if the provider reported it.
    pub model: Option<String>,
}

/// Receives the records of ended rows once they are in the ledger.
///
/// A sink is a projection of the ledger: nothing is lost if it fails.
pub trait RecordSink: Send {
    /// Takes one row's record; may buffer it until [`RecordSink::flush`].
    ///
    /// # Errors
    ///
    /// The record could not be written.
    fn publish(&mut self, published: PublishedRecord<'_>) -> Result<(), Problem>;

    /// Hands everything taken so far to the kernel.
    ///
    /// # Errors
    ///
    /// It could not be written.
    fn flush(&mut self) -> Result<(), Problem>;
}

/// The parts of a record that sinks choose from.
#[derive(Debug, Clone, Copy)]
pub struct PublishedRecord<'a> {
    /// The envelope, compact JSON without a newline.
    pub envelope: &'a [u8],
    /// The telemetry, compact JSON without a newline.
    pub telemetry: &'a [u8],
    /// The data for the trace, compact JSON without a newline; `None` if no trace was wanted when the row ended.
    pub trace: Option<&'a [u8]>,
    /// Whether the row is ok.
    pub ok: bool,
}

/// Receives every event of a run. Progress, notices and tests are observers.
pub trait Observer: Send + Sync {
    /// Called from the engine's loop; must return at once.
    fn observe(&self, event: &RunEvent<'_>);
}

/// An event of a run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// The reader has reached this position in the input.
    Read {
        /// The position.
        position: InputReadProgress,
        /// Rows that were selected since the last such event.
        selected: u64,
        /// Those of them that were skipped because they are done already.
        skipped: u64,
    },
    /// The last wanted row was read.
    AllRead,
    /// A run with a budget is resumed, and its earlier parts spent this, or may have.
    SpentBefore {
        /// The amount.
        spent: crate::limits::Spend,
    },
    /// Rows were taken and their calls are about to be sent.
    Taken {
        /// How many.
        rows: usize,
    },
    /// A row has ended and the ledger has it.
    Ended {
        /// The row.
        number: u64,
        /// Why it failed, if it did.
        error: Option<&'a RowError>,
        /// Whether it was taken to be sent; `false` for a row that could not be read.
        called: bool,
        /// What its calls used.
        usage: rowmill_types::TokenUsage,
        /// What they cost, as far as prices are known.
        cost: rowmill_types::Money,
    },
    /// A row that was answered earlier was processed again without sending anything.
    FinishedAgain {
        /// The row.
        number: u64,
        /// Why it failed, if it did.
        error: Option<&'a RowError>,
    },
    /// Rows that were taken are released unsent, because the run stops.
    Released {
        /// How many.
        rows: usize,
    },
    /// Rows wait for something outside of the process and are not in flight in the meantime.
    Parked {
        /// How many.
        rows: usize,
    },
    /// Calls are waiting.
    Waiting {
        /// The model that is to be called.
        endpoint: &'a str,
        /// The reason for the wait.
        reason: &'a WaitReason,
        /// The duration, if it is known.
        wait: Option<std::time::Duration>,
    },
    /// Calls are sent again after a wait.
    WaitEnded {
        /// The model that is called.
        endpoint: &'a str,
    },
    /// The length of answers is limited, because several answers of the model's maximum length would not fit the budget
    /// at the same time. Reported once per run.
    AnswersCapped {
        /// The model.
        endpoint: &'a str,
        /// The maximum number of tokens of the first answer.
        tokens: u64,
        /// How many such calls fit the budget of the run at once, up to the wanted number; `None` if only rows have a
        /// budget.
        calls: Option<u64>,
    },
    /// An answer was longer than its request allowed, so limits on answers are no longer relied on. Reported once per
    /// model.
    OutputCapIgnored {
        /// The model.
        endpoint: &'a str,
        /// The tokens that were allowed.
        allowed: u64,
        /// The tokens that were used.
        used: u64,
    },
    /// Calls wait only because of the budget: the worst cases of those in flight leave no room for another, though
    /// much of the budget is unspent. Reported once per run.
    PacedByBudget {
        /// The model.
        endpoint: &'a str,
        /// How many calls are in flight.
        calls: u64,
    },
    /// A call failed and will be retried.
    Retrying {
        /// The row.
        number: u64,
        /// The error.
        error: &'a CallError,
        /// The wait before the next attempt.
        wait: std::time::Duration,
    },
    /// What the batch jobs of the run are doing.
    BatchJobs {
        /// The numbers.
        counts: &'a RunJobCounts,
    },
    /// No further rows are taken; rows in flight are completed.
    Draining,
}

/// What the batch jobs of a run are doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunJobCounts {
    /// All jobs of the run so far.
    pub jobs: u64,
    /// Those that wait to be submitted.
    pub waiting: u64,
    /// Those that the provider works on.
    pub submitted: u64,
    /// Those that have ended.
    pub ended: u64,
    /// Requests in jobs that have not ended.
    pub requests_out: u64,
    /// Those of them that are finished, as far as the provider reports it.
    pub requests_finished: u64,
    /// The maximum cost of the jobs whose results were not counted yet.
    pub reserved: rowmill_types::Money,
    /// When the oldest submitted job was created, in seconds since 1970.
    pub oldest: Option<i64>,
    /// When the first submitted job expires, in seconds since 1970.
    pub first_expiry: Option<i64>,
}
