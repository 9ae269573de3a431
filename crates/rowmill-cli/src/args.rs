//! The commands and their arguments.

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::flags::RunFlags;
use crate::simulate_flags::SimulateFlags;

/// Run a model over every row of a dataset, and account for every row.
#[derive(Debug, Parser)]
#[command(name = "rowmill", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunFlags>),
    Batch(Batch),
    Models(ModelsFlags),
    Simulate(Box<SimulateFlags>),
    Completions(CompletionsFlags),
    /// Print the manual page, for `man -l -`.
    Man,
}

/// Run batches; `rowmill batch run` is the same as `rowmill run`.
#[derive(Debug, Args)]
pub(crate) struct Batch {
    #[command(subcommand)]
    pub(crate) command: BatchCommand,
}

/// What can be done with batches.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    Run(Box<RunFlags>),
}

/// List providers: which key each needs and whether it is set; as JSON also which settings it takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill models\n  rowmill models --json")]
pub(crate) struct ModelsFlags {
    /// Print JSON, with everything that is known of each provider.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rowmill completions bash > ~/.local/share/bash-completion/completions/rowmill\n  \
                        rowmill completions zsh > ~/.zfunc/_rowmill\n  \
                        rowmill completions fish > ~/.config/fish/completions/rowmill.fish"
)]
pub(crate) struct CompletionsFlags {
    /// The shell.
    pub(crate) shell: Shell,
}

/// The whole command, for the reference, the manual page and completions.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}
