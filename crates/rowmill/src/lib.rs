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
//! * Workers: a [`Worker`] calls a model, the agents of cards or your own [`extend::Model`]; [`Tools`]
//!   are functions that its model may call.
//! * Failures: [`Raise`], [`ReturnNone`] or [`ReturnError`].
//! * Persistence: a [`LedgerFolder`], to resume from after a crash.
//! * Your own models, sources, tool hosts and observers: see [`extend`].
//! * Runs from files to files, as with the command `rowmill run`: [`run`] takes a [`RunSpec`].
//!
//! All entry points use the same engine, and this is the only crate that names adapters. The guide is
//! `docs/library.md`.

mod agent_flags;
mod agents;
mod all_envelopes;
mod answers;
mod batch;
mod begin;
mod budget_notices;
pub mod cache;
mod columns;
mod config;
mod control;
mod counting;
mod counts;
mod environment;
mod export;
pub mod extend;
mod fetching;
mod files;
mod finish;
mod first_rows;
mod full_paths;
mod head;
mod ids;
mod inputs;
mod kinds;
mod lanes;
mod mcp_login;
mod notices;
mod output;
mod paths;
mod plan;
mod plan_experience;
mod plan_reach;
mod prepare;
mod recorded;
mod report;
pub mod results;
mod resume;
mod resume_scan;
mod rows;
mod run;
mod run_clock;
mod run_place;
mod schema_model;
mod settling;
mod sides;
mod spec;
mod spec_check;
mod spec_json;
mod spec_mistake;
mod spec_place;
mod telemetry_file;
mod texts;
mod traces;
pub mod wording;
mod work;

pub use agent_flags::AgentFlags;
pub use agents::{CardCheck, CardChecks, CheckSpec};
pub use batch::{
    Batch, BatchCause, BatchError, BatchReport, Brief, Done, Failure, First, IntoPrompt, Item, ItemError,
    LedgerFolder, OfferedTool, OnFailure, Progress, Raise, ResultStream, Results, ReturnError, ReturnNone,
    StatefulTools, Tools, Worker,
};
pub use config::{Config, ConfigFile, McpConfig, ParallelSetting, RunDefaults, TimeSetting};
pub use control::{Control, Notice};
pub use environment::Environment;
pub use export::{ExportReport, ExportSpec, export};
pub use head::{ColumnSeen, Head, HeadNotice, HeadRow, HeadSpec, head, look};
pub use kinds::{Kind, KindCounts};
pub use mcp_login::{McpLogin, mcp_login, mcp_logout};
pub use paths::same_file;
pub use plan::{PlanLimits, PlanReport, plan};
pub use plan_reach::Reach;
pub use report::{OutputChanges, RunReport, RunSummary};
pub use rowmill_core::cost::{Price, TokenPrices};
pub use rowmill_core::forecast::Interval;
pub use rowmill_core::limits::{BudgetLimits, Pace, Parallel, RateFlags, Spend, WaitReason};
pub use rowmill_core::ports::{Durability, Event, Observer, Position};
pub use rowmill_core::select::{Sample, Selection};
pub use rowmill_core::summary::{FailureExample, FailureGroup, Numbers};
pub use rowmill_data::output::{READER_ENDED, RemovedRows, StandardOutput};
pub use rowmill_data::table::{InputPart, Layout, TableFormat, TableTarget};
pub use rowmill_data::{
    ColumnType, DocumentIds, FieldDelimiter, Format, InputSpec, Location, SqlEngine, dataset, extract_main,
    in_foreign_code,
};
pub use rowmill_engine::{ErrorRate, Limits, OnQuota, Stop, StopCause, StopRules};
pub use rowmill_http::Timeouts;
pub use rowmill_models::{
    Accuracy, AliasConfig, AliasEntry, AliasSource, CatalogueEntry, Key, KeyState, LongPriceConfig,
    ModelString, PriceConfig, PriceEntry, PriceSource, PriceTable, Priced, Protocol, ProviderConfig,
    Providers, Setting, TokenCounter, alias_origin, catalogue, counter,
};
pub use rowmill_tools::{McpServerConfig, Person};
pub use rowmill_types::{
    ErrorKind, ExitCode, Money, Problem, ProblemCode, Row, RowError, RowId, Secret, ToolOutput, Usage,
    Vocabulary, Words, grouped,
};
pub use run::run;
pub use spec::{
    Existing, FileFlags, KeepTemp, Output, Prompt, Query, RunSpec, Schema, TableOutput, VariableFlags,
};
pub use spec_json::{SpecVersion, run_spec_schema};
pub use texts::check_agent_cards;
pub use work::WorkSpec;

/// The guide, whose code blocks are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
