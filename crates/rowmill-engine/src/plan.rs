//! The complete description of a run: the engine adds no defaults.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::agent::Cast;
use rowmill_core::limits::{Budget, BudgetLimits};
use rowmill_core::ports::{
    AnswerStore, Attachments, Dataset, Finish, Hooks, Observer, OpenLedger, Prompts, RowSource, Sink,
    ToolHost,
};
use rowmill_core::record::TraceSettings;
use rowmill_core::redact::Redactor;
use rowmill_core::resume::Resume;
use rowmill_core::retry;
use rowmill_core::select::{IdRule, Selector};
use rowmill_types::{AttachmentRules, Row, RowError, TimeText, Vocabulary, time_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Lane, Stop};

/// Everything that defines one run.
pub struct Plan {
    /// The id of the run; part of every request's key.
    pub run: String,
    /// Input rows.
    pub source: Box<dyn RowSource>,
    /// The threads that read them.
    pub reading: ReadingThread,
    /// Which of the remaining rows are processed.
    pub selector: Selector,
    /// How rows get their ids.
    pub ids: IdRule,
    /// Whether ids were checked before.
    pub id_check: IdCheck,
    /// The state that an earlier run left.
    pub resume: Resume,
    /// How rows are answered.
    pub worker: Worker,
    /// The maximum number of rows worked on at once.
    pub parallel: usize,
    /// The maximum memory of the rows that are worked on, in bytes: their texts, their prompts and their requests. A
    /// larger row is worked on alone. See [`crate::ROW_MEMORY`].
    pub memory: usize,
    /// When the run ends before its input does.
    pub stop_rules: StopRules,
    /// What it may spend, and what was spent before.
    pub budget: Budget,
    /// The ledger, which is authoritative for the run.
    pub ledger: OpenLedger,
    /// Where records go.
    pub sinks: Sinks,
    /// Locks on the files behind the sinks. They are held until nothing more is written to the files, even if nobody
    /// waits for the run to end.
    pub locks: Option<Arc<dyn Any + Send + Sync>>,
    /// Receives the events of the run.
    pub observer: Arc<dyn Observer>,
    /// Stops the run from outside.
    pub stop: Stop,
}

impl fmt::Debug for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Plan")
            .field("run", &self.run)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// The threads that read rows. None is held while nothing is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingThread {
    /// The runtime's threads for blocking work, which all runs share. A runtime that shuts down waits for a read in
    /// progress, so this is for sources that always come to an end.
    Shared,
    /// A thread of its own for every stretch of reading, which nothing waits for: for sources that may block for ever,
    /// such as standard input.
    Own,
}

impl ReadingThread {
    /// The thread for the rows of a dataset: a dataset that can be read only once is a stream, which may block for
    /// ever.
    #[must_use]
    pub fn of(dataset: &dyn Dataset) -> Self {
        if dataset.rereadable() { Self::Shared } else { Self::Own }
    }
}

/// Whether the ids of all rows are known to be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdCheck {
    /// The input was read before, and every id is valid and unique.
    Done,
    /// The input can be read only once: rows with invalid or repeated ids fail.
    WhileReading,
}

/// How rows are answered.
#[derive(Debug)]
pub struct Worker {
    /// The assignment of row workers to rows.
    pub casting: Casting,
    /// Spending limits per row.
    pub row_budget: BudgetLimits,
    /// Whether every finished turn is written to the ledger, so that the row can continue after a crash.
    pub checkpoint: bool,
    /// How a row becomes a prompt.
    pub prompts: Arc<dyn Prompts>,
    /// Maps the answers of rows, if the program does that.
    pub finish: Option<Arc<dyn Finish>>,
    /// Loads the files that belong to a row, if there are any.
    pub attachments: Option<Arc<dyn Attachments>>,
    /// When failed calls are retried.
    pub retry: retry::Policy,
    /// Timeout for one call.
    pub timeout: Duration,
    /// The time limit of a row's calls together with the waits between its attempts.
    pub row_timeout: Option<Duration>,
    /// The cache of paid answers, if it is to be used.
    pub answers: Option<Answers>,
    /// Whether envelopes contain the input row.
    pub include_input: bool,
    /// The settings for the traces of rows, if traces are kept.
    pub traces: Option<Arc<TraceSettings>>,
    /// Removes secrets from results, errors and kept turns.
    pub redactor: Redactor,
    /// How errors of rows name settings.
    pub vocabulary: Vocabulary,
}

/// The assignment of row workers to rows.
#[derive(Debug, Clone)]
pub enum Casting {
    /// All rows have the same row worker.
    Same(Arc<Crew>),
    /// Every row has its own.
    Each(Arc<dyn Crews>),
}

impl Casting {
    /// The models of all rows, if all rows have the same.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        let voices = self.same().map(|crew| crew.voices.as_slice()).unwrap_or_default();
        voices.iter().flat_map(|voice| voice.lanes.iter().cloned()).collect()
    }

    /// The row worker of all rows, if there is one.
    pub(crate) fn same(&self) -> Option<&Arc<Crew>> {
        match self {
            Self::Same(crew) => Some(crew),
            Self::Each(_) => None,
        }
    }
}

/// Provides a row worker for every row.
pub trait Crews: Send + Sync + Debug {
    /// The row worker of a row.
    ///
    /// # Errors
    ///
    /// The row's failure: nothing is sent for it.
    fn of<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Arc<Crew>, RowError>>;

    /// The row has ended, and with it the work of its row worker, unless other rows share it.
    fn ended(&self, crew: Arc<Crew>) -> BoxFuture<'static, ()>;
}

/// A row worker: the agents that work on a row.
#[derive(Debug)]
pub struct Crew {
    /// The agent graph, the schema of results, and how often answers are corrected.
    pub cast: Arc<Cast>,
    /// The models of each model role of the agent graph, in the same order. Never empty.
    pub voices: Vec<Voice>,
    /// The tools of its agents.
    pub tools: Option<Tools>,
}

/// The models of one model role.
#[derive(Debug, Clone)]
pub struct Voice {
    /// The model, then its fallbacks for when it gives no answer. Never empty.
    pub lanes: Vec<Arc<Lane>>,
    /// The files that the model accepts.
    pub files: AttachmentRules,
}

/// What agents can use besides their models.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Calls tools.
    pub host: Arc<dyn ToolHost>,
    /// Calls hooks, if there are any.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Maximum bytes of text taken from a tool result.
    pub result_limit: usize,
}

/// When to stop before the end of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default = "StopRules::usual", deny_unknown_fields)]
pub struct StopRules {
    /// Stop after this many failed rows.
    pub max_errors: Option<u64>,
    /// Stop once the failure rate exceeds a share.
    pub max_error_rate: Option<ErrorRate>,
    /// Stop if the first this many rows all fail for the same reason.
    pub same_failure: Option<u64>,
    /// Stop after the first successful row and cancel the rest.
    pub first_result: bool,
    /// Send no further calls after this time.
    #[serde(with = "time_text::option")]
    #[schemars(with = "Option<TimeText>")]
    pub deadline: Option<Duration>,
}

/// This many rows that all fail for the same reason show that the rest would fail, too.
const SAME_FAILURE_ROWS: u64 = 50;

impl StopRules {
    /// The default rules: the run ends when its first rows have all failed for the same reason.
    #[must_use]
    pub fn usual() -> Self {
        Self { same_failure: Some(SAME_FAILURE_ROWS), ..Self::default() }
    }
}

/// Allowed failure rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRate {
    /// The share, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
    /// Apply it only after this many rows.
    #[serde(default = "ErrorRate::usual_after")]
    pub after: u64,
}

impl ErrorRate {
    /// The default for how many rows must have ended before the share is looked at.
    #[must_use]
    pub fn usual_after() -> u64 {
        100
    }
}

/// How paid answers are found and stored.
#[derive(Debug, Clone)]
pub struct Answers {
    /// The store.
    pub store: Arc<dyn AnswerStore>,
    /// Identifies everything that shapes an answer besides the messages.
    pub identity: String,
    /// The mark of a row whose answer was in the store before the run started.
    pub kept_before: rowmill_core::record::Reused,
}

/// Where records of ended rows go.
#[derive(Default)]
pub struct Sinks {
    /// Get every record in input order.
    pub ordered: Vec<Box<dyn Sink>>,
    /// Get every record as its row ends.
    pub arrival: Vec<Box<dyn Sink>>,
}

impl Sinks {
    pub(crate) fn is_empty(&self) -> bool {
        self.ordered.is_empty() && self.arrival.is_empty()
    }
}

impl fmt::Debug for Sinks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sinks({} ordered, {} by arrival)", self.ordered.len(), self.arrival.len())
    }
}
