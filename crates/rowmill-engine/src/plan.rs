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
    /// Where rows come from.
    pub source: Box<dyn RowSource>,
    /// On which threads they are read.
    pub reading: ReadingThread,
    /// Which of them are taken.
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
    /// knows when it continues.
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
    /// What one row may spend.
    pub row_budget: BudgetLimits,
    /// Whether every finished turn goes to the ledger, to continue from after a crash.
    pub checkpoint: bool,
    /// How a row becomes a prompt.
    pub prompts: Arc<dyn Prompts>,
    /// What has the last word on rows that were answered, if anything does.
    pub finish: Option<Arc<dyn Finish>>,
    /// Where the files come from that go with a row, if any do.
    pub attachments: Option<Arc<dyn Attachments>>,
    /// When failed calls are tried again.
    pub retry: retry::Policy,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long the calls of a row and the waits between its attempts may take together.
    pub row_timeout: Option<Duration>,
    /// Answers that were paid for before, if they are to be used.
    pub answers: Option<Answers>,
    /// Whether envelopes carry the input row.
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
    /// The same row worker works on all rows.
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

    /// The row worker of all rows, if there is one.
    pub(crate) fn same(&self) -> Option<&Arc<Crew>> {
        match self {
            Self::Same(crew) => Some(crew),
            Self::Each(_) => None,
        }
    }
}

/// Finds a row worker for every row.
pub trait Crews: Send + Sync + Debug {
    /// The row worker of a row.
    ///
    /// # Errors
    ///
    /// The row's failure: nothing is sent for it.
    fn of<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Arc<Crew>, RowError>>;

    /// The row has ended, and with it the work of its row worker, unless others share it.
    fn ended(&self, crew: Arc<Crew>) -> BoxFuture<'static, ()>;
}

/// Those who work on a row.
#[derive(Debug)]
pub struct Crew {
    /// Who they are, what results must satisfy, and how often answers are corrected.
    pub cast: Arc<Cast>,
    /// The models of each model role of the agent graph, in its order. Never empty.
    pub voices: Vec<Voice>,
    /// The tools of its agents.
    pub tools: Option<Tools>,
}

/// The models that one model role asks.
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
    /// The most bytes of text that a tool's result brings into a conversation.
    pub result_limit: usize,
}

/// When a run ends before its input does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default = "StopRules::usual", deny_unknown_fields)]
pub struct StopRules {
    /// Once this many rows failed.
    pub max_errors: Option<u64>,
    /// Once more than a share of rows failed.
    pub max_error_rate: Option<ErrorRate>,
    /// Once the first so many rows have all failed for the same reason.
    pub same_failure: Option<u64>,
    /// Once a row is ok: the rest is cancelled.
    pub first_result: bool,
    /// After so long: no further call is sent.
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

/// The share of rows that may fail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRate {
    /// The share, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
    /// How many rows must have ended before it is looked at.
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
