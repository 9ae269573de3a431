//! The commands and their arguments.

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::batch_flags::BatchFlags;
use crate::commands::{CacheFlags, CardFlags, ExportFlags, HeadFlags, McpFlags, ResultsFlags};
use crate::flag_values::parse_positive;
use crate::flags::{CommonFlags, RunFlags};
use crate::output_flags::OutputFlags;
use crate::simulate_flags::SimulateFlags;

/// Run a model over every row of a dataset, and account for every row.
#[derive(Debug, Parser)]
#[command(name = "rowmill", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Start here:\n  rowmill head reviews.jsonl                    show the columns of a file\n  \
                  rowmill run -i reviews.jsonl -o - -m simulated --limit 3 --prompt 'Classify: {{review}}'\n  \
                  rowmill models                                list the providers and whether their keys are set\n  \
                  rowmill run --help                            show all flags, with examples"
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunFlags>),
    Plan(Box<PlanFlags>),
    Batch(BatchFlags),
    Head(HeadFlags),
    Results(ResultsFlags),
    Export(Box<ExportFlags>),
    Models(ModelsFlags),
    Mcp(McpFlags),
    Cache(CacheFlags),
    Card(CardFlags),
    Simulate(Box<SimulateFlags>),
    Completions(CompletionsFlags),
    /// Print the manual page, for `man -l -`.
    Man,
    /// Extract the text of the document on standard input; `--extract text` runs this for each one.
    #[command(hide = true)]
    ExtractText {
        /// Media type of the document, such as `application/pdf`.
        media_type: String,
    },
}

/// Estimate the cost and duration of a run without running it.
///
/// Takes the flags of `rowmill run`, reads every row that they select, counts tokens, and prints
/// rows, tokens, cost and time. Makes no calls unless `--sample-calls` is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rowmill plan -i reviews.jsonl -m 'openai.gpt-5.4-mini?max_tokens=200' --prompt 'Classify: {{review}}'\n  \
                  rowmill plan -i reviews.jsonl -m openai.gpt-5.4-mini --prompt 'Classify: {{review}}' --sample-calls 20 --cache .answers\n\n\
                  With --sample-calls some rows are sent to the model, to measure how long answers are; with\n\
                  --cache the run that follows does not pay for them again. If --output is the output of an\n\
                  earlier run with the same requests, the estimate is based on its answers instead."
)]
#[command(
    override_usage = "rowmill plan [OPTIONS] --input <INPUT>\n       rowmill plan [OPTIONS] --spec <FILE>"
)]
pub(crate) struct PlanFlags {
    #[command(flatten)]
    pub(crate) output: OutputFlags,

    /// Send this many rows to measure how long answers are.
    #[arg(long, value_name = "N", value_parser = parse_positive, allow_negative_numbers = true, help_heading = "Plan")]
    pub(crate) sample_calls: Option<u64>,

    /// Print the plan as JSON.
    #[arg(long, help_heading = "Plan")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: CommonFlags,
}

/// List providers and whether their keys are set, model prices, or details of one model.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill models\n  rowmill models --prices anthropic\n  \
                        rowmill models responses.gpt-5.4-mini\n  rowmill models --aliases\n  rowmill models --json")]
pub(crate) struct ModelsFlags {
    /// Show details of this model: API key, price, tokenizer, maximum answer length.
    #[arg(value_name = "MODEL", conflicts_with = "prices")]
    pub(crate) model: Option<String>,

    /// Show model prices, of one provider or of all.
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, default_missing_value = "")]
    pub(crate) prices: Option<String>,

    /// List model aliases, built in and from `rowmill.toml`, and the models that they stand for.
    #[arg(long, conflicts_with_all = ["model", "prices"])]
    pub(crate) aliases: bool,

    /// Print all details as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print shell completions.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rowmill completions bash > ~/.local/share/bash-completion/completions/rowmill\n  \
                        rowmill completions zsh > ~/.zfunc/_rowmill\n  \
                        rowmill completions fish > ~/.config/fish/completions/rowmill.fish"
)]
pub(crate) struct CompletionsFlags {
    /// Shell to print completions for.
    pub(crate) shell: Shell,
}

/// The whole command, for the reference, the manual page and completions.
#[must_use]
pub fn clap_command() -> clap::Command {
    CommandLine::command()
}
