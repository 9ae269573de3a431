//! The rowmill library: the engine of the command `rowmill`, for programs.
//!
//! A [`Batch`] takes the program's items and a worker, and returns results in order. This example needs
//! neither an API key nor a network:
//!
//! ```
//! use rowmill::Batch;
//!
//! let words = ["mill", "stone"];
//! let results = Batch::over(words)
//!     .prompt(|word| format!("Use the word `{word}` in a sentence."))
//!     .worker("simulated")
//!     .run_blocking()?;
//! for (word, answer) in words.iter().zip(results) {
//!     println!("{word}: {answer}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * Workers: a [`Worker`] calls a model, the agents of cards or your own [`extend::Model`]; [`WorkerTools`]
//!   are functions that its model may call.
//! * Failures: [`StopAtFirstFailure`], [`ReturnNone`] or [`ReturnError`].
//! * Persistence: a [`LedgerOptions`], to resume from after a crash.
//! * Your own models, sources, tool hosts and observers: see [`extend`].
//! * Runs from files to files, as with the command `rowmill run`: [`run`] takes a [`RunSpec`].
//!
//! All entry points use the same engine, and this is the only crate that names adapters. The guide is
//! `docs/library.md`.

mod agent_options;
mod agents;
mod all_envelopes;
mod answer_cache;
mod attachments;
mod batch;
mod batch_runs;
mod budget_notices;
pub mod cache;
mod claim_files;
mod columns;
mod config;
mod control;
mod counts;
mod endpoints;
mod environment;
mod export;
pub mod extend;
mod fetch_notices;
mod finish;
mod first_rows;
mod full_paths;
mod head;
mod inputs;
mod json_kinds;
mod json_place;
mod lane;
mod mcp_login;
mod notices;
mod notify;
mod paths;
mod plan;
mod plan_stand_ins;
mod plan_statistics;
mod prepare_input;
mod query_recording;
mod report;
pub mod results;
mod resume;
mod resume_scan;
mod row_checks;
mod row_completion_curve;
mod row_identity;
mod run;
mod run_clock;
mod run_storage;
mod schema_model;
mod settle_output;
mod side_files;
mod spec;
mod spec_check;
mod spec_json;
mod spec_mistake;
mod table_envelopes;
mod telemetry_file;
mod texts;
mod traces;
pub mod wording;
mod work_spec;

pub use agent_options::AgentOptions;
pub use agents::{CardCheck, CardCheckSpec, CardChecks};
pub use batch::{
    AnsweredItem, Batch, BatchError, BatchFailureCause, BatchItem, BatchProgress, BatchReport, BatchResults,
    FirstBatchResult, FunctionFailure, IntoPrompt, ItemError, LedgerOptions, ModelRequirements, OfferedTool,
    OnFailure, ResultStream, ReturnError, ReturnNone, StatefulTools, StopAtFirstFailure, Worker, WorkerTools,
};
pub use batch_runs::{
    BatchJobInfo, BatchJobProgress, BatchRunAction, BatchRunRowCounts, BatchRunStatus, ContinuedRunOutcome,
    KnownBatchRun, KnownBatchRuns, KnownRunState, LatestRunReason, batch_run_status, continue_batch_run,
    overall_batch_state,
};
pub use config::{Config, ConfigDuration, ConfigFile, McpConfig, ParallelSetting, RunDefaults};
pub use control::{RunControl, RunNotice};
pub use environment::RunEnvironment;
pub use export::{ExportReport, ExportSpec, export_table};
pub use head::{ColumnProfile, HeadNoticeFn, HeadRow, HeadSpec, InputHead, head_of_dataset, read_head};
pub use json_kinds::{JsonKind, JsonKindCounts};
pub use lane::{BatchContinuationMode, BatchLaneHandle, Lane, LaneOptions, RepairLane};
pub use mcp_login::{McpLoginSpec, mcp_login, mcp_logout};
pub use notify::{NotifyOptions, RunNotification, send_notification};
pub use paths::same_file;
pub use plan::{PlanMinuteLimits, PlanReport, plan_run};
pub use report::{BatchLaneReport, NoticedCorrections, OutputChanges, RunReport, RunSummary, UnusedAnswers};
pub use row_completion_curve::RowCompletionCurve;
pub use rowmill_core::cost::{Price, TokenPrices};
pub use rowmill_core::forecast::ForecastInterval;
pub use rowmill_core::limits::{BudgetLimits, CallParallelism, MinuteLimits, PaceMode, Spend, WaitReason};
pub use rowmill_core::ports::{Durability, InputReadProgress, Observer, RunEvent, RunJobCounts};
pub use rowmill_core::select::{RowSampleSettings, RowSelection};
pub use rowmill_core::summary::{FailureExample, FailureGroup, SummaryNumbers};
pub use rowmill_data::output::{READER_ENDED, RemovedRows, StandardOutput};
pub use rowmill_data::table::{InputRowInclusion, TableFormat, TableLayout, TableTarget};
pub use rowmill_data::{
    ColumnTypeSetting, DocumentIdRule, FieldDelimiter, InputFormat, InputLocation, InputSpec, SqlEngine,
    is_in_foreign_code, open_dataset, run_extract_child,
};
pub use rowmill_engine::{ErrorRateLimit, OnQuota, SharedLimits, StopCause, StopHandle, StopRules};
pub use rowmill_http::HttpTimeouts;
pub use rowmill_models::{
    AliasConfig, AliasEntry, AliasSource, ApiKeyPresence, BatchLimitOverrides, CountAccuracy,
    LongPriceConfig, ModelPrice, ModelSettingKey, ModelSettingValue, ModelString, PriceConfig, PriceEntry,
    PriceSource, PriceTable, ProviderCatalogueEntry, ProviderConfig, ProviderProtocol, ProviderRegistry,
    TokenCounter, built_in_alias_origin, provider_catalogue, token_counter,
};
pub use rowmill_tools::{InteractiveSignIn, McpServerConfig};
pub use rowmill_types::{
    DiagnosticText, ExitCode, Money, Problem, ProblemCode, Row, RowError, RowErrorKind, RowId, Secret,
    SettingVocabulary, TokenUsage, ToolOutput, group_digits,
};
pub use run::run;
pub use spec::{
    AttachmentOptions, ExistingOutput, InputQuery, InstructionVariableOptions, KeptFiles, OutputTarget,
    PromptSource, ResultSchemaSource, RunSpec, TableOutput,
};
pub use spec_json::{SpecVersion, run_spec_schema};
pub use texts::check_agent_cards;
pub use work_spec::WorkSpec;

/// The guide, whose code blocks are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
