//! One module per command.

mod cache;
mod export;
mod head;
mod models;
mod plan;
mod query;
mod results;
mod run;
mod simulate;

use std::process::ExitCode;

use clap::Parser;
use rowmill::Problem;

use crate::args::{Arguments, BatchCommand, Command, command};
use crate::printer;

pub(crate) use cache::CacheFlags;
pub(crate) use export::ExportFlags;
pub(crate) use head::HeadFlags;
pub(crate) use results::ResultsFlags;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(flags) | Command::Batch(crate::args::Batch { command: BatchCommand::Run(flags) }) => {
            run::run(*flags)
        }
        Command::Plan(flags) => plan::plan(*flags),
        Command::Head(flags) => head::head(flags),
        Command::Results(flags) => results::results(&flags),
        Command::Export(flags) => export::export(*flags),
        Command::Models(flags) => models::models(&flags),
        Command::Cache(flags) => cache::cache(flags),
        Command::Simulate(flags) => simulate::simulate(*flags),
        Command::Completions(flags) => {
            let mut script = Vec::new();
            clap_complete::generate(flags.shell, &mut command(), "rowmill", &mut script);
            printer::data(String::from_utf8_lossy(&script).trim_end());
            Ok(rowmill::ExitCode::Ok)
        }
        Command::Man => manual(),
        Command::ExtractText { media_type } => return extract_text(&media_type),
    };
    let code = outcome.unwrap_or_else(|problem| {
        printer::talk(&printer::problem_text(&problem));
        problem.exit()
    });
    ExitCode::from(code as u8)
}

fn manual() -> Result<rowmill::ExitCode, Problem> {
    let mut page = Vec::new();
    let mut whole = command().disable_help_subcommand(true);
    whole.build();
    clap_mangen::Man::new(whole.clone()).render(&mut page).map_err(internal)?;
    for section in whole.get_subcommands() {
        clap_mangen::Man::new(section.clone()).render(&mut page).map_err(internal)?;
    }
    printer::data(&String::from_utf8_lossy(&page));
    Ok(rowmill::ExitCode::Ok)
}

fn internal(error: std::io::Error) -> Problem {
    Problem::new(rowmill::ProblemCode::Internal, "the text could not be made").cause(error)
}

/// The other end of `--extract text`: a document in, its text out, and whatever goes wrong ends
/// this process and no other.
fn extract_text(media_type: &str) -> ExitCode {
    match rowmill::extract_main(media_type, &mut std::io::stdin().lock(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            printer::talk(&message);
            ExitCode::FAILURE
        }
    }
}
