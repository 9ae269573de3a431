//! Runs that are too long for every change: a test with many more rounds.

use clap::{Args, ValueEnum};

use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

/// Repeat a randomized test with many more rounds than `cargo test`.
#[derive(Debug, Args)]
pub(crate) struct SoakFlags {
    /// What to repeat.
    #[arg(value_enum)]
    pub(crate) what: SoakName,
    /// How many runs, or queries.
    #[arg(long, visible_alias = "queries", value_name = "N", default_value_t = 1_000)]
    pub(crate) runs: u64,
    /// How often the runs are killed, for `resume` and `batch`.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) kills: u64,
    /// The seed of the first run; each further run has the next.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// A test that can be repeated.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SoakName {
    /// Runs with faults and kills, none of which may exceed its budget.
    Budget,
    /// Runs whose rows share answers, killed repeatedly; only calls in flight may be paid for twice.
    Resume,
    /// Runs in the batch lane, killed at random moments; no row may be submitted twice, and no job forgotten.
    Batch,
    /// Long prompts, more than fit into the memory that rows may hold.
    Memory,
    /// Random queries, which must return the same rows as DuckDB.
    Sql,
}

impl SoakName {
    /// The package, its test binary and the test in it.
    fn test(self) -> [&'static str; 3] {
        match self {
            Self::Budget => {
                ["rowmill-cli", "suite", "money::no_fuzzed_run_with_faults_and_kills_passes_its_budget"]
            }
            Self::Resume => [
                "rowmill-cli",
                "suite",
                "kill::no_kill_makes_a_run_with_shared_answers_pay_twice_for_more_than_was_in_flight",
            ],
            Self::Batch => [
                "rowmill-cli",
                "suite",
                "batch_random_kills::no_random_kills_make_a_run_submit_a_row_twice_or_forget_a_job",
            ],
            Self::Memory => [
                "rowmill-cli",
                "suite",
                "limits::five_hundred_prompts_of_a_megabyte_stay_within_a_bound_on_memory",
            ],
            Self::Sql => [
                "rowmill-data",
                "suite",
                "sql::random::queries_made_at_random_give_what_duckdb_gives_or_are_refused",
            ],
        }
    }

    /// The number of rounds, in words.
    fn rounds(self, flags: &SoakFlags) -> String {
        match self {
            Self::Budget => format!("{} runs", flags.runs),
            Self::Resume | Self::Batch => format!("two runs with {} kills each", flags.kills),
            Self::Memory => "one run".to_owned(),
            Self::Sql => format!("{} queries", flags.runs),
        }
    }
}

/// Repeats a test.
pub(crate) fn soak(workspace: &Workspace, flags: &SoakFlags) -> Result<(), TaskFailure> {
    let [package, binary, test] = flags.what.test();
    let mut command = workspace.cargo();
    command.args([
        "test",
        "--package",
        package,
        "--test",
        binary,
        "--",
        "--exact",
        test,
        "--nocapture",
        "--include-ignored",
    ]);
    command.env("ROWMILL_SOAK_RUNS", flags.runs.to_string());
    command.env("ROWMILL_SOAK_SEED", flags.seed.to_string());
    command.env("ROWMILL_SOAK_KILLS", flags.kills.to_string());
    let status = command.status().map_err(TaskFailure::context("cannot start cargo"))?;
    if !status.success() {
        return Err(TaskFailure::new(format!("`{test}` failed; the output above names the seed")));
    }
    printer::say(format_args!("{}, none of which failed", flags.what.rounds(flags)));
    Ok(())
}
