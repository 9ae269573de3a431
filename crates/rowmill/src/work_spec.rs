//! What answers rows, and within which limits, as plain data with its defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{Budget, BudgetLimits, CallParallelism, MinuteLimits, PaceMode, Spend};
use rowmill_core::ports::{Durability, OpenLedger, PromptMaker, RowSource};
use rowmill_core::redact::Redactor;
use rowmill_core::resume::ResumeIndex;
use rowmill_core::retry;
use rowmill_core::select::{IdRule, RowSelector};
use rowmill_engine::{
    IdCheckPhase, OnQuota, ROW_MEMORY, ReadingThread, RecordSinks, RowExecutionSetup, RunSetup, StopRules,
    WorkerAssignment,
};
use rowmill_http::HttpTimeouts;
use rowmill_models::{AliasConfig, PriceConfig, ProviderConfig};
use rowmill_types::{DurationText, SettingVocabulary, duration_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent_options::AgentOptions;
use crate::budget_notices;
use crate::control::RunControl;
use crate::lane::LaneOptions;

/// Models, agents and limits: the same for every way to start a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default = "WorkSpec::for_file_run", deny_unknown_fields)]
pub struct WorkSpec {
    /// Model string; may be empty only if agent cards name their own.
    pub model: String,
    /// Agents that process rows, and what they may do.
    pub agents: AgentOptions,
    /// Maximum number of rows in flight.
    pub parallel: CallParallelism,
    /// Whether to respect the rate limits that the provider reports.
    pub pace: PaceMode,
    /// Limits per minute.
    pub rates: MinuteLimits,
    /// What to do when the quota is exhausted.
    pub on_quota: OnQuota,
    /// How long to wait for a provider that is down before stopping the run. With 0, do not wait, not
    /// even if the provider asks for more than a minute: rows fail once their retries are exhausted.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub max_outage: Duration,
    /// Models to use, in order, when the model fails.
    pub fallback_models: Vec<String>,
    /// When to stop before the end of the input.
    pub stop_rules: StopRules,
    /// Spending limits of the run, including all resumes.
    pub budget: BudgetLimits,
    /// Whether to send identical prompts only once.
    pub dedupe: bool,
    /// Folder of the answer cache.
    pub cache: Option<PathBuf>,
    /// Whether the first call is sent alone to fill the provider's prompt cache.
    pub prime: bool,
    /// What recorded answers survive.
    pub durability: Durability,
    /// Number of retries after a transient failure.
    pub retries: u32,
    /// Initial backoff between retries; doubles each time.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub retry_wait: Duration,
    /// Timeout for one call.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,
    /// Timeout for all calls of a row.
    #[serde(with = "duration_text::option")]
    #[schemars(with = "Option<DurationText>")]
    pub row_timeout: Option<Duration>,
    /// Timeouts for the parts of a call.
    pub timeouts: HttpTimeouts,
    /// How many times to ask the model to correct an answer that violates the schema.
    pub repairs: u32,
    /// Providers of the configuration file.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Model aliases, in addition to the built-in ones.
    pub aliases: AliasConfig,
    /// Prices of the configuration file.
    pub prices: BTreeMap<String, PriceConfig>,
    /// How requests reach the provider.
    pub lane: LaneOptions,
}

impl Default for WorkSpec {
    fn default() -> Self {
        Self {
            model: String::new(),
            agents: AgentOptions::default(),
            parallel: CallParallelism::Auto,
            pace: PaceMode::Auto,
            rates: MinuteLimits::default(),
            on_quota: OnQuota::Wait,
            max_outage: Duration::from_secs(3_600),
            fallback_models: Vec::new(),
            stop_rules: StopRules::default(),
            budget: BudgetLimits::default(),
            dedupe: false,
            cache: None,
            prime: true,
            durability: Durability::default(),
            retries: 4,
            retry_wait: Duration::from_millis(500),
            timeout: Duration::from_secs(600),
            row_timeout: None,
            timeouts: HttpTimeouts::default(),
            repairs: 1,
            providers: BTreeMap::new(),
            aliases: AliasConfig::default(),
            prices: BTreeMap::new(),
            lane: LaneOptions::default(),
        }
    }
}

/// The parts of a plan besides settings.
pub(crate) struct PlanParts {
    /// The id of the first run, so that the keys of calls are the same after a resume.
    pub(crate) run: String,
    pub(crate) source: Box<dyn RowSource>,
    pub(crate) reading: ReadingThread,
    pub(crate) selector: RowSelector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheckPhase,
    pub(crate) resume: ResumeIndex,
    pub(crate) worker: RowExecutionSetup,
    /// The amount that earlier parts of the run spent, or may have spent.
    pub(crate) spent: Spend,
    pub(crate) ledger: OpenLedger,
}

impl WorkSpec {
    /// The defaults of a run from files to files.
    #[must_use]
    pub fn for_file_run() -> Self {
        Self { stop_rules: StopRules::standard(), ..Self::default() }
    }

    /// A plan for the engine whose results go only to the ledger.
    pub(crate) fn plan(&self, parts: PlanParts, control: &RunControl) -> RunSetup {
        let PlanParts { run, source, reading, selector, ids, id_check, resume, worker, spent, ledger } =
            parts;
        RunSetup {
            run,
            source,
            reading,
            selector,
            ids,
            id_check,
            resume,
            worker,
            parallel: self.parallel.max_calls(),
            memory: ROW_MEMORY,
            stop_rules: self.stop_rules,
            budget: Budget::new(self.budget, spent),
            ledger,
            sinks: RecordSinks::default(),
            locks: None,
            observer: budget_notices::observer(self, control),
            stop: control.stop.clone(),
        }
    }

    /// The engine's view of the worker, for rows without files whose answers are not reused.
    pub(crate) fn worker(
        &self,
        assignment: WorkerAssignment,
        prompts: Arc<dyn PromptMaker>,
    ) -> RowExecutionSetup {
        RowExecutionSetup {
            assignment,
            row_budget: self.agents.row_budget,
            checkpoint: self.agents.checkpoint_turns,
            attachments: None,
            prompts,
            answer_mapper: None,
            retry: retry::RetryPolicy {
                retries: self.retries,
                base: self.retry_wait,
                ..retry::RetryPolicy::default()
            },
            timeout: self.timeout,
            row_timeout: self.row_timeout,
            answer_cache: None,
            include_input: false,
            traces: None,
            redactor: Redactor::default(),
            vocabulary: SettingVocabulary::NEUTRAL,
        }
    }
}
