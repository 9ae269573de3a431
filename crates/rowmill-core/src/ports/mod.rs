//! The ports: what the engine needs from the outside, as traits.
//!
//! They live below their implementors, so adapters know neither each other nor
//! the engine.

mod dataset;
mod own;
mod store;
mod tools;

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use rowmill_types::{AnswerVerdict, CallError, Completion, Problem, Request, RowError};
pub use rowmill_types::{Comparison, Scalar};

pub use dataset::{
    Attachments, Column, ColumnKind, Condition, Dataset, InputIdentity, Part, Position, Room, RowSource,
};

pub use own::{Finish, Finishing, Prompting, Prompts, Verdict};
pub use store::{
    Appended, Durability, Epoch, Group, Ledger, LedgerPosition, LedgerRoom, NamedRow, NoteEvent, OpenLedger,
    ParkedRow, PreparedRun, RecordId, RecordReader, Retention, RunLock, RunStore, ScannedEvent, TurnLine,
};
pub use tools::{HookCall, HookKind, Hooks, ToolFailure, ToolHost, ToolPermit, ToolRequest};

use crate::limits::WaitReason;

/// Answers one turn.
///
/// Live calls, built-in models and fakes are all models. Whatever is the same
/// for every row is inside the model already.
///
/// # Contract
///
/// * The future is polled on the thread that drives all calls, and must neither block nor compute for long there.
/// * Dropping the future ends the call, and nothing of it runs on.
/// * Never retries, sleeps for a retry or logs; it reports a
///   [`CallError`] and the engine decides.
/// * `request.key` is sent as an idempotency key where the provider has one.
pub trait Model: Send + Sync + Debug {
    /// Sends one turn and waits for the answer.
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>>;

    /// Gives back what it keeps at the provider, such as uploaded files; called once when the
    /// run ends.
    ///
    /// It does what it can within half a minute, and what it cannot do is no error. A call that
    /// comes later is answered as ever.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Checks answers with more than a JSON Schema, such as the user's own code.
///
/// # Contract
///
/// * The same answer gets the same verdict.
/// * Dropping the future ends the check, and nothing of it runs on.
/// * A check that hangs or fails ends with [`AnswerVerdict::Unchecked`] in good time.
pub trait AnswerCheck: Send + Sync + Debug {
    /// Checks an answer, which is JSON.
    fn check<'a>(&'a self, answer: &'a str) -> BoxFuture<'a, AnswerVerdict>;
}

/// Answers that were paid for, by the key of what was asked. Only good answers are kept.
///
/// A store is a help and never a hindrance: where it fails, it says so once through
/// its own notice, finds nothing and keeps nothing.
pub trait AnswerStore: Send + Sync + Debug {
    /// The answer to a request that was asked before.
    fn find(&self, key: AskedKey) -> BoxFuture<'_, Option<KeptAnswer>>;

    /// Keeps an answer. It can be found as soon as this returns, and is on disk soon after,
    /// at the latest when the store is dropped.
    fn keep(&self, key: AskedKey, answer: &KeptAnswer);

    /// Takes in answers that are on record elsewhere, as far as it lacks them. It waits until they
    /// are kept, so nobody may call it who must not be held up.
    ///
    /// # Errors
    ///
    /// They cannot be kept.
    fn restore(&self, answers: Vec<(AskedKey, KeptAnswer)>) -> Result<(), Problem> {
        answers.iter().for_each(|(key, answer)| self.keep(*key, answer));
        Ok(())
    }
}

/// Names everything that shapes an answer: model, settings, instruction, schema, messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AskedKey(pub u128);

/// An answer that can be given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The text.
    pub text: String,
    /// What it used when it was paid for, where the provider told.
    pub usage: Option<rowmill_types::Usage>,
    /// The model that answered, where the provider told.
    pub model: Option<String>,
}

/// Where records of ended rows go once the ledger has them.
///
/// A sink is a projection of the ledger: it can fail without losing anything.
pub trait Sink: Send {
    /// Takes one row's record; may hold it back until [`Sink::flush`].
    ///
    /// # Errors
    ///
    /// The record could not be written.
    fn publish(&mut self, published: Published<'_>) -> Result<(), Problem>;

    /// Hands everything taken so far to the kernel.
    ///
    /// # Errors
    ///
    /// It could not be written.
    fn flush(&mut self) -> Result<(), Problem>;
}

/// The parts of a record that sinks choose from.
#[derive(Debug, Clone, Copy)]
pub struct Published<'a> {
    /// The envelope, compact JSON without a newline.
    pub envelope: &'a [u8],
    /// The telemetry, compact JSON without a newline.
    pub telemetry: &'a [u8],
    /// What the trace is made of, compact JSON without a newline; `None` where none was wanted
    /// when the row ended.
    pub trace: Option<&'a [u8]>,
    /// Whether the row is ok.
    pub ok: bool,
}

/// Hears of everything that happens in a run. Progress, notices and tests are observers.
pub trait Observer: Send + Sync {
    /// Called from the engine's loop; must return at once.
    fn observe(&self, event: &Event<'_>);
}

/// What an observer hears.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The feed has come this far in the input.
    Read {
        /// How far.
        position: Position,
        /// Rows that were chosen since the last time.
        selected: u64,
        /// Those of them that are done already and were skipped.
        skipped: u64,
    },
    /// The last row that is wanted was read.
    AllRead,
    /// A run with a budget continues, and its earlier parts spent this, or may have.
    SpentBefore {
        /// What they spent.
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
        /// Whether it was taken to be sent; a row that could not be read never was.
        called: bool,
        /// What its calls used.
        usage: rowmill_types::Usage,
        /// What they cost, as far as prices are known.
        cost: rowmill_types::Money,
    },
    /// A row that an earlier run answered was finished again, and nothing was sent for it.
    Kept {
        /// The row.
        number: u64,
        /// Why it failed, if it did.
        error: Option<&'a RowError>,
    },
    /// Rows that were taken are given back unsent, because the run stops.
    Released {
        /// How many.
        rows: usize,
    },
    /// Rows wait for something outside of the process, and are not in flight meanwhile.
    Parked {
        /// How many.
        rows: usize,
    },
    /// Calls wait.
    Waiting {
        /// The model that they are for.
        lane: &'a str,
        /// What they wait for.
        reason: &'a WaitReason,
        /// How long, where it is known.
        wait: Option<std::time::Duration>,
    },
    /// Calls go out again after a wait.
    Flowing {
        /// The model that they are for.
        lane: &'a str,
    },
    /// Answers are limited in length, because the longest that the model can give would not fit
    /// the budget beside each other. Told once in a run.
    AnswersLimited {
        /// The model.
        lane: &'a str,
        /// The most tokens of the first answer.
        tokens: u64,
        /// How many such calls fit the budget of the run at once, up to as many as are wanted;
        /// `None` where only rows have a budget.
        calls: Option<u64>,
    },
    /// An answer was longer than its request allowed, so that limits on answers are not relied on
    /// any more. Told once for each model.
    LimitIgnored {
        /// The model.
        lane: &'a str,
        /// The tokens that were allowed.
        allowed: u64,
        /// Those that it used.
        used: u64,
    },
    /// Calls are held up by the budget alone: the worst cases of those in flight leave no room
    /// for another, though much of it is not spent. Told once in a run.
    PacedByBudget {
        /// The model.
        lane: &'a str,
        /// How many calls are in flight.
        calls: u64,
    },
    /// A call failed and will be tried again.
    Retrying {
        /// The row.
        number: u64,
        /// What failed.
        error: &'a CallError,
        /// The wait before the next try.
        wait: std::time::Duration,
    },
    /// No further rows are taken; rows in flight are finished.
    Draining,
}
