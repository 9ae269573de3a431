//! What a run needs, complete: no default is left to the engine.

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

/// Everything one run is made of.
pub struct Plan {
    /// The id of the run; part of every request's key.
    pub run: String,
    /// Input rows.
    pub source: Box<dyn RowSource>,
    /// On which threads they are read.
    pub reading: ReadingThread,
    /// Which of the remaining rows are processed.
    pub selector: Selector,
    /// How rows are named.
    pub ids: IdRule,
    /// Whether ids were checked before.
    pub id_check: IdCheck,
    /// What an earlier run left.
    pub resume: Resume,
    /// What answers a row.
    pub worker: Worker,
    /// How many rows are worked on at once, at most.
    pub parallel: usize,
    /// What rows that are worked on may hold in memory together, in bytes: their texts, their
    /// prompts and what is sent of them. A row that is larger is worked on alone. See
    /// [`crate::ROW_MEMORY`].
    pub memory: usize,
    /// When it ends before its input does.
    pub stop_rules: StopRules,
    /// What it may spend, and what was spent before.
    pub budget: Budget,
    /// The truth about the run.
    pub ledger: OpenLedger,
    /// Where records go.
    pub sinks: Sinks,
    /// What keeps others away from the files behind the sinks. It is held until nothing is written to them any
    /// more, also where nobody waits for the run to end.
    pub locks: Option<Arc<dyn Any + Send + Sync>>,
    /// Who hears of it.
    pub observer: Arc<dyn Observer>,
    /// How it is stopped from outside.
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

/// On which threads rows are read. None is held while nothing is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingThread {
    /// Those of the runtime for blocking work, which all runs share. A runtime that ends waits for
    /// a read that is under way, so this is for sources that come to an end by themselves.
    Shared,
    /// One of its own for every stretch of reading, which nobody waits for: for sources that may wait
    /// for ever, such as standard input.
    Own,
}

impl ReadingThread {
    /// The thread for the rows of a dataset: what can be read once only is a stream, of which nobody
    /// knows when it goes on.
    #[must_use]
    pub fn of(dataset: &dyn Dataset) -> Self {
        if dataset.rereadable() { Self::Shared } else { Self::Own }
    }
}

/// Whether the ids of all rows are known to be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdCheck {
    /// The input was read before and every id is valid and unique.
    Done,
    /// The input can be read only once: bad and repeated ids are failed rows.
    WhileReading,
}

/// What answers rows.
#[derive(Debug)]
pub struct Worker {
    /// Who works on them.
    pub casting: Casting,
    /// Spending limits per row.
    pub row_budget: BudgetLimits,
    /// Whether every finished turn goes to the ledger, to go on from after a crash.
    pub checkpoint: bool,
    /// How a row becomes a prompt.
    pub prompts: Arc<dyn Prompts>,
    /// What has the last word on rows that were answered, if anything does.
    pub finish: Option<Arc<dyn Finish>>,
    /// Where the files come from that go with a row, if any do.
    pub attachments: Option<Arc<dyn Attachments>>,
    /// When failed calls are tried again.
    pub retry: retry::Policy,
    /// Timeout for one call.
    pub timeout: Duration,
    /// How long the calls of a row and the waits between its tries may take together.
    pub row_timeout: Option<Duration>,
    /// Answers that were paid for before, if they are to be used.
    pub answers: Option<Answers>,
    /// Whether envelopes contain the input row.
    pub include_input: bool,
    /// What the traces of rows are made with, where they are kept.
    pub traces: Option<Arc<TraceSettings>>,
    /// Takes secrets out of results, errors and kept turns.
    pub redactor: Redactor,
    /// How errors of rows name settings.
    pub vocabulary: Vocabulary,
}

/// Who works on which row.
#[derive(Debug, Clone)]
pub enum Casting {
    /// The same crew works on all rows.
    Same(Arc<Crew>),
    /// Every row has its own.
    Each(Arc<dyn Crews>),
}

impl Casting {
    /// The models of all rows, where they have the same.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        let voices = self.same().map(|crew| crew.voices.as_slice()).unwrap_or_default();
        voices.iter().flat_map(|voice| voice.lanes.iter().cloned()).collect()
    }

    /// The crew of all rows, if there is one.
    pub(crate) fn same(&self) -> Option<&Arc<Crew>> {
        match self {
            Self::Same(crew) => Some(crew),
            Self::Each(_) => None,
        }
    }
}

/// Finds a crew for every row.
pub trait Crews: Send + Sync + Debug {
    /// The crew of a row.
    ///
    /// # Errors
    ///
    /// The row's failure: nothing is sent for it.
    fn of<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Arc<Crew>, RowError>>;

    /// The row has ended, and with it the work of its crew, unless others share it.
    fn ended(&self, crew: Arc<Crew>) -> BoxFuture<'static, ()>;
}

/// Those who work on a row.
#[derive(Debug)]
pub struct Crew {
    /// Who they are, what results must satisfy, and how often answers are corrected.
    pub cast: Arc<Cast>,
    /// The models of each voice of the cast, in its order. Never empty.
    pub voices: Vec<Voice>,
    /// The tools of its agents.
    pub tools: Option<Tools>,
}

/// The models that one voice asks.
#[derive(Debug, Clone)]
pub struct Voice {
    /// The model, then those that are asked when it gives no answer. Never empty.
    pub lanes: Vec<Arc<Lane>>,
    /// What files the model takes.
    pub files: AttachmentRules,
}

/// What agents can do besides asking their models.
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

/// So many rows that all fail for the same reason show that the rest would fail, too.
const SAME_FAILURE_ROWS: u64 = 50;

impl StopRules {
    /// The rules of a run about which nothing else is said: it ends when its first rows have all failed
    /// for the same reason.
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
    /// How many rows must have ended before the share is looked at, where nothing is said.
    #[must_use]
    pub fn usual_after() -> u64 {
        100
    }
}

/// How answers that were paid for are found and kept.
#[derive(Debug, Clone)]
pub struct Answers {
    /// Where they are.
    pub store: Arc<dyn AnswerStore>,
    /// Names everything that shapes an answer besides the messages.
    pub identity: String,
    /// How a row is marked whose answer the store had before the run began.
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
