//! The tasks and their flags.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::{SuiteName, TimingsFlags};
use crate::generate::DocumentMode;
use crate::read_rows::ReadRowsFlags;
use crate::soak::SoakFlags;
use crate::work_items::WorkItemsFlags;
use crate::workspace::Workspace;
use crate::{
    TaskFailure, api, bench, check_layers, check_licences, deny, generate_documents, make_rows, printer,
    read_rows, real_model, soak, work_items,
};

/// Tasks of rowmill's developers and its CI.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true)]
struct TaskArguments {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Write the documents that are generated from the code: `docs/cli.md`, `docs/errors.md`,
    /// `docs/exit-codes.md`.
    Generate {
        /// Write nothing; fail if a document is stale.
        #[arg(long)]
        check: bool,
    },
    /// Document all crates without a warning, and write everything that users of the library can name to
    /// `docs/public-api.txt`.
    Api {
        /// Write nothing; fail if something that users can name has changed.
        #[arg(long)]
        check: bool,
    },
    /// Check that crates depend on each other only in the directions that the design allows.
    Layers,
    /// Check the licence of every dependency against the list in `deny.toml`.
    Licences,
    /// Run cargo-deny, if it is installed.
    Deny,
    Bench(BenchFlags),
    Timings(TimingsFlags),
    Soak(SoakFlags),
    MakeRows(MakeRowsFlags),
    RealModel(RealModelFlags),
    ReadRows(ReadRowsFlags),
    WorkItems(WorkItemsFlags),
}

/// Measure rowmill against competitors and its own targets, and write a part of `docs/benchmarks.md`.
#[derive(Debug, Args)]
pub(crate) struct BenchFlags {
    /// What to measure.
    #[arg(value_enum, default_value_t)]
    pub(crate) suite: SuiteName,
    /// Use a twentieth of the rows, or half of the time, and leave `docs/benchmarks.md` alone.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Fail when a target is missed.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The cargo profile to build and measure.
    #[arg(long, default_value = "dist")]
    pub(crate) profile: String,
    /// Measure only scenarios whose name contains this text; leaves `docs/benchmarks.md` alone.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
}

/// Write a sample dataset: the same rows in every format, for benchmarks and comparisons.
#[derive(Debug, Args)]
pub(crate) struct MakeRowsFlags {
    /// How many rows.
    #[arg(long, value_name = "N")]
    pub(crate) rows: u64,
    /// The format of the rows.
    #[arg(long, value_enum)]
    pub(crate) format: RowsFormat,
    /// The file to write; one that exists is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The same seed gives the same rows.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// The format of sample rows.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RowsFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values; lists and objects are JSON text.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// Classify twenty reviews with a real model on this machine, without a key.
#[derive(Debug, Args)]
pub(crate) struct RealModelFlags {
    /// The cargo profile to build rowmill with.
    #[arg(long, default_value = "dev")]
    pub(crate) profile: String,
}

/// Runs the task that the command line selects.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(folder) = std::env::var_os(api::JSON_FOLDER) {
        return api::run_as_rustdoc(&folder);
    }
    match Workspace::here().and_then(|workspace| perform(TaskArguments::parse().task, &workspace)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer::note(format_args!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn perform(task: XtaskCommand, workspace: &Workspace) -> Result<(), TaskFailure> {
    match task {
        XtaskCommand::Generate { check } => generate_documents(
            workspace.root(),
            if check { DocumentMode::Check } else { DocumentMode::Write },
        ),
        XtaskCommand::Api { check } => {
            api::check_api(workspace, if check { DocumentMode::Check } else { DocumentMode::Write })
        }
        XtaskCommand::Layers => check_layers(workspace),
        XtaskCommand::Licences => check_licences(workspace),
        XtaskCommand::Deny => deny::deny(workspace),
        XtaskCommand::Bench(flags) => bench::run_bench(workspace, &flags),
        XtaskCommand::Timings(flags) => bench::timings(workspace, &flags),
        XtaskCommand::Soak(flags) => soak::soak(workspace, &flags),
        XtaskCommand::ReadRows(flags) => read_rows::read_rows(&flags),
        XtaskCommand::WorkItems(flags) => work_items::work_items(&flags),
        XtaskCommand::MakeRows(flags) => make_rows::make_rows(&flags),
        XtaskCommand::RealModel(flags) => real_model::real_model(workspace, &flags),
    }
}
