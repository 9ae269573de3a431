//! rowmill as a library: a [`RunSpec`] in, a [`RunReport`] out.
//!
//! This is the only crate that names adapters. Every way to start a run goes
//! through [`run`].

pub mod cache;
mod config;
mod environment;
mod finish;
mod prepare;
mod report;
mod resume;
mod rows;
mod run;
mod schema_model;
mod spec;
mod texts;

pub use config::{Config, ConfigFile, RunDefaults};
pub use environment::environment;
pub use report::{RunReport, RunSummary};
pub use rowmill_core::ports::{Event, Observer, Position};
pub use rowmill_core::select::{Sample, Selection};
pub use rowmill_data::{Format, InputSpec, Location};
pub use rowmill_engine::{Stop, StopCause};
pub use rowmill_models::{CatalogueEntry, KeyState, ProviderConfig, Providers, catalogue};
pub use rowmill_types::{ErrorKind, ExitCode, Problem, ProblemCode, Usage};
pub use run::{Control, Notice, run};
pub use spec::{Existing, Output, Prompt, RunSpec, Schema, VariableFlags};
