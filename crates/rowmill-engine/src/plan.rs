//! The complete description of a run: the engine adds no defaults.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::agent::AgentGraph;
use rowmill_core::limits::{Budget, BudgetLimits};
use rowmill_core::ports::{
    AnswerMapper, AnswerStore, AttachmentLoader, Dataset, HookRunner, Observer, OpenLedger, PromptMaker,
    RecordSink, RowSource, ToolHost,
};
use rowmill_core::record::RedactedTraceFacts;
use rowmill_core::redact::Redactor;
use rowmill_core::resume::ResumeIndex;
use rowmill_core::retry;
use rowmill_core::select::{IdRule, RowSelector};
use rowmill_types::{AttachmentRules, DurationText, Row, RowError, SettingVocabulary, duration_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ModelEndpoint, StopHandle};

/// Everything that defines one run.
pub struct RunSetup {
    /// The id of the run; part of every request's key.
    pub run: String,
    /// Input rows.
    pub source: Box<dyn RowSource>,
    /// The threads that read them.
    pub reading: ReadingThread,
    /// Which of the remaining rows are processed.
    pub selector: RowSelector,
    /// How rows get their ids.
    pub ids: IdRule,
    /// Whether ids were checked before.
    pub id_check: IdCheckPhase,
    /// The state that an earlier run left.
    pub resume: ResumeIndex,
    /// How rows are answered.
    pub worker: RowExecutionSetup,
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
    pub sinks: RecordSinks,
    /// Locks on the files behind the sinks. They are held until nothing more is written to the files, even if nobody
    /// waits for the run to end.
    pub locks: Option<Arc<dyn Any + Send + Sync>>,
    /// Receives the events of the run.
    pub observer: Arc<dyn Observer>,
    /// Stops the run from outside.
    pub stop: StopHandle,
}

impl fmt::Debug for RunSetup {
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
    pub fn for_dataset(dataset: &dyn Dataset) -> Self {
        if dataset.is_rereadable() { Self::Shared } else { Self::Own }
    }
}

/// Whether the ids of all rows are known to be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdCheckPhase {
    /// The input was read before, and every id is valid and unique.
    Done,
    /// The input can be read only once: rows with invalid or repeated ids fail.
    WhileReading,
}

/// How rows are answered.
#[derive(Debug)]
pub struct RowExecutionSetup {
    /// The assignment of row workers to rows.
    pub assignment: WorkerAssignment,
    /// Spending limits per row.
    pub row_budget: BudgetLimits,
    /// Whether every finished turn is written to the ledger, so that the row can continue after a crash.
    pub checkpoint: bool,
    /// How a row becomes a prompt.
    pub prompts: Arc<dyn PromptMaker>,
    /// Maps the answers of rows, if the program does that.
    pub answer_mapper: Option<Arc<dyn AnswerMapper>>,
    /// Loads the files that belong to a row, if there are any.
    pub attachments: Option<Arc<dyn AttachmentLoader>>,
    /// When failed calls are retried.
    pub retry: retry::RetryPolicy,
    /// Timeout for one call.
    pub timeout: Duration,
    /// The time limit of a row's calls together with the waits between its attempts.
    pub row_timeout: Option<Duration>,
    /// The cache of paid answers, if it is to be used.
    pub answer_cache: Option<AnswerCache>,
    /// Whether envelopes contain the input row.
    pub include_input: bool,
    /// The settings for the traces of rows, if traces are kept.
    pub traces: Option<Arc<RedactedTraceFacts>>,
    /// Removes secrets from results, errors and kept turns.
    pub redactor: Redactor,
    /// How errors of rows name settings.
    pub vocabulary: SettingVocabulary,
}

/// The assignment of row workers to rows.
#[derive(Debug, Clone)]
pub enum WorkerAssignment {
    /// All rows have the same row worker.
    Shared(Arc<RowWorker>),
    /// Every row has its own.
    PerRow(Arc<dyn RowWorkerSource>),
}

impl WorkerAssignment {
    /// The models of all rows, if all rows have the same.
    #[must_use]
    pub fn shared_endpoints(&self) -> Vec<Arc<ModelEndpoint>> {
        let model_roles =
            self.shared_worker().map(|row_worker| row_worker.model_roles.as_slice()).unwrap_or_default();
        model_roles.iter().flat_map(|model_role| model_role.endpoints.iter().cloned()).collect()
    }

    /// The row worker of all rows, if there is one.
    pub(crate) fn shared_worker(&self) -> Option<&Arc<RowWorker>> {
        match self {
            Self::Shared(row_worker) => Some(row_worker),
            Self::PerRow(_) => None,
        }
    }
}

/// Provides a row worker for every row.
pub trait RowWorkerSource: Send + Sync + Debug {
    /// The row worker of a row.
    ///
    /// # Errors
    ///
    /// The row's failure: nothing is sent for it.
    fn worker_for_row<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Arc<RowWorker>, RowError>>;

    /// The row has ended, and with it the work of its row worker, unless other rows share it.
    fn row_ended(&self, row_worker: Arc<RowWorker>) -> BoxFuture<'static, ()>;
}

/// A row worker: the agents that work on a row.
#[derive(Debug)]
pub struct RowWorker {
    /// The agent graph, the schema of results, and how often answers are corrected.
    pub graph: Arc<AgentGraph>,
    /// The models of each model role of the agent graph, in the same order. Never empty.
    pub model_roles: Vec<ModelRoleEndpoints>,
    /// The tools of its agents.
    pub tools: Option<ToolSetup>,
}

/// The models of one model role.
#[derive(Debug, Clone)]
pub struct ModelRoleEndpoints {
    /// The model, then its fallbacks for when it gives no answer. Never empty.
    pub endpoints: Vec<Arc<ModelEndpoint>>,
    /// The files that the model accepts.
    pub files: AttachmentRules,
}

/// What agents can use besides their models.
#[derive(Debug, Clone)]
pub struct ToolSetup {
    /// Calls tools.
    pub host: Arc<dyn ToolHost>,
    /// Calls hooks, if there are any.
    pub hooks: Option<Arc<dyn HookRunner>>,
    /// Maximum bytes of text taken from a tool result.
    pub result_limit: usize,
}

/// When to stop before the end of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default = "StopRules::standard", deny_unknown_fields)]
pub struct StopRules {
    /// Stop after this many failed rows.
    pub max_errors: Option<u64>,
    /// Stop once the failure rate exceeds a share.
    pub max_error_rate: Option<ErrorRateLimit>,
    /// Stop if the first this many rows all fail for the same reason.
    pub same_failure: Option<u64>,
    /// Stop after the first successful row and cancel the rest.
    pub first_result: bool,
    /// Send no further calls after this time.
    #[serde(with = "duration_text::option")]
    #[schemars(with = "Option<DurationText>")]
    pub deadline: Option<Duration>,
}

/// This many rows that all fail for the same reason show that the rest would fail, too.
const SAME_FAILURE_ROWS: u64 = 50;

impl StopRules {
    /// The default rules: the run ends when its first rows have all failed for the same reason.
    #[must_use]
    pub fn standard() -> Self {
        Self { same_failure: Some(SAME_FAILURE_ROWS), ..Self::default() }
    }
}

/// Allowed failure rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRateLimit {
    /// The share, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
    /// Apply it only after this many rows.
    #[serde(default = "ErrorRateLimit::default_minimum_rows")]
    pub after: u64,
}

impl ErrorRateLimit {
    /// The default for how many rows must have ended before the share is looked at.
    #[must_use]
    pub fn default_minimum_rows() -> u64 {
        100
    }
}

/// How paid answers are found and stored.
#[derive(Debug, Clone)]
pub struct AnswerCache {
    /// The store.
    pub store: Arc<dyn AnswerStore>,
    /// Identifies everything that shapes an answer besides the messages.
    pub identity: String,
    /// The mark of a row whose answer was in the store before the run started.
    pub kept_before: rowmill_core::record::ReusedAnswerSource,
}

/// Where records of ended rows go.
#[derive(Default)]
pub struct RecordSinks {
    /// Get every record in input order.
    pub in_input_order: Vec<Box<dyn RecordSink>>,
    /// Get every record as its row ends.
    pub on_arrival: Vec<Box<dyn RecordSink>>,
}

impl RecordSinks {
    pub(crate) fn is_empty(&self) -> bool {
        self.in_input_order.is_empty() && self.on_arrival.is_empty()
    }
}

impl fmt::Debug for RecordSinks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sinks({} ordered, {} by arrival)", self.in_input_order.len(), self.on_arrival.len())
    }
}
