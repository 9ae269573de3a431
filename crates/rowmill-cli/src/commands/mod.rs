//! One module per command.

mod cache;
mod card;
mod export;
mod head;
mod mcp;
mod models;
mod plan;
mod query;
mod results;
mod run;
mod simulate;

use std::borrow::Cow;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use rowmill::Problem;

use crate::args::{Arguments, BatchCommand, Command, command};
use crate::other_tools::with_tip;
use crate::{open_files, printer};

pub(crate) use cache::CacheFlags;
pub(crate) use card::CardFlags;
pub(crate) use export::ExportFlags;
pub(crate) use head::HeadFlags;
pub(crate) use mcp::McpFlags;
pub(crate) use results::ResultsFlags;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    crate::private::hide_memory();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return wrong_arguments(error),
    };
    let code = open_files::check().and_then(|()| carry_out(arguments.command)).unwrap_or_else(|problem| {
        printer::talk(&printer::problem_text(&problem));
        problem.exit()
    });
    ExitCode::from(code as u8)
}

fn carry_out(command_line: Command) -> Result<rowmill::ExitCode, Problem> {
    match command_line {
        Command::Run(flags) | Command::Batch(crate::args::Batch { command: BatchCommand::Run(flags) }) => {
            run::run(*flags)
        }
        Command::Plan(flags) => plan::plan(*flags),
        Command::Head(flags) => head::head(flags),
        Command::Results(flags) => results::results(&flags),
        Command::Export(flags) => export::export(*flags),
        Command::Models(flags) => models::models(&flags),
        Command::Mcp(flags) => mcp::mcp(flags),
        Command::Cache(flags) => cache::cache(flags),
        Command::Card(flags) => card::card(flags),
        Command::Simulate(flags) => simulate::simulate(*flags),
        Command::Completions(flags) => {
            let mut script = Vec::new();
            clap_complete::generate(flags.shell, &mut command(), "rowmill", &mut script);
            printer::data(String::from_utf8_lossy(&script).trim_end());
            Ok(rowmill::ExitCode::Ok)
        }
        Command::Man => manual(),
        Command::ExtractText { media_type } => Ok(extract_text(&media_type)),
    }
}

/// Says what is wrong with a command line; to whoever left out what a run needs, with an example.
fn wrong_arguments(error: clap::Error) -> ExitCode {
    let command = std::env::args().nth(1);
    let takes_rows = |name: &String| ["run", "plan", "batch"].contains(&name.as_str());
    let error = if command.as_ref().is_some_and(takes_rows) { with_tip(error) } else { error };
    let text = error.to_string();
    match printer::shown(text.trim_end()) {
        // A screen that is gone cannot be told anything.
        Cow::Borrowed(_) => drop(error.print()),
        Cow::Owned(masked) => printer::talk(&masked),
    }
    let command = command.filter(|name| name == "run" || name == "plan");
    if let (Some(name), ErrorKind::MissingRequiredArgument) = (command, error.kind()) {
        printer::talk(&format!(
            "\nExample:\n  rowmill {name} -i rows.jsonl -o results.jsonl -m simulated --prompt 'Classify: {{{{text}}}}'"
        ));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(rowmill::ExitCode::Usage as u8))
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
fn extract_text(media_type: &str) -> rowmill::ExitCode {
    match rowmill::extract_main(media_type, &mut std::io::stdin().lock(), &mut std::io::stdout().lock()) {
        Ok(()) => rowmill::ExitCode::Ok,
        Err(message) => {
            printer::talk(&message);
            rowmill::ExitCode::Stopped
        }
    }
}
