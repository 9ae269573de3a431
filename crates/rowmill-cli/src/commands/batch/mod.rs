//! `rowmill batch`: follows, collects, cancels and repeats batch jobs.

mod actions;
mod list;
mod status;
mod target;

use rowmill::{ExitCode, Problem};

use crate::batch_flags::BatchCommand;
use crate::commands::run;

/// Runs the command.
pub(crate) fn run_batch_command(command: BatchCommand) -> Result<ExitCode, Problem> {
    match command {
        BatchCommand::Run(flags) => run::run_run_command(*flags),
        BatchCommand::Status(flags) => status::status(&flags),
        BatchCommand::Retrieve(flags) => actions::retrieve(&flags),
        BatchCommand::List(flags) => list::list(&flags),
        BatchCommand::Cancel(flags) => actions::cancel(&flags),
        BatchCommand::Retry(flags) => actions::retry(&flags),
    }
}
