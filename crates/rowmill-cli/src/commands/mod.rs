//! One module per command.

mod batch;
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

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, FromArgMatches};
use rowmill::{Problem, StandardOutput};

use crate::args::{Command, CommandLine, clap_command};
use crate::other_tools::{add_head_tip, add_tip};
use crate::spec_file::{check_flags_beside_spec, names_spec};
use crate::{open_files, printer, vocabulary};

pub(crate) use cache::CacheFlags;
pub(crate) use card::CardFlags;
pub(crate) use export::ExportFlags;
pub(crate) use head::HeadFlags;
pub(crate) use mcp::McpFlags;
pub(crate) use results::ResultsFlags;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    crate::hide_memory::hide_memory();
    crate::panics::silence_foreign_code();
    let (given, arguments) = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => return wrong_arguments(error),
    };
    let code =
        check_flags_beside_spec(&clap_command(), &given).and_then(|()| open_files::check()).and_then(|()| {
            // A handler of signals needs open files, and tokio panics if it gets none.
            crate::signals::outlive_file_size_limit();
            carry_out(arguments.command)
        });
    ExitCode::from(code.unwrap_or_else(|problem| report_problem(&problem)) as u8)
}

/// Parses the command line; returns both the raw and the typed arguments. A spec is complete, so
/// environment variables that replace flags are ignored beside one.
fn arguments() -> Result<(ArgMatches, CommandLine), clap::Error> {
    let given = match without_variables(clap_command()).try_get_matches() {
        Ok(given) if names_spec(&given) => {
            vocabulary::use_spec_fields();
            given
        }
        _ => clap_command().try_get_matches()?,
    };
    let arguments =
        CommandLine::from_arg_matches(&given).map_err(|error| error.format(&mut clap_command()))?;
    Ok((given, arguments))
}

/// A command that takes its flags from the command line only.
fn without_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|flag| flag.env(None));
    command.mut_subcommands(without_variables)
}

/// Prints the problem that stopped a command, and returns the exit code.
fn report_problem(problem: &Problem) -> rowmill::ExitCode {
    printer::talk(&printer::problem_text(problem));
    problem.exit_code()
}

fn carry_out(command_line: Command) -> Result<rowmill::ExitCode, Problem> {
    match command_line {
        Command::Run(flags) => run::run_run_command(*flags),
        Command::Batch(flags) => batch::run_batch_command(flags.command),
        Command::Plan(flags) => plan::plan(*flags),
        Command::Head(flags) => head::head(flags),
        Command::Results(flags) => results::run_results_command(&flags),
        Command::Export(flags) => export::export(*flags),
        Command::Models(flags) => models::models(&flags),
        Command::Mcp(flags) => mcp::mcp(flags),
        Command::Cache(flags) => cache::cache(flags),
        Command::Card(flags) => card::run_card_command(flags),
        Command::Simulate(flags) => simulate::simulate(*flags),
        Command::Completions(flags) => {
            let mut script = Vec::new();
            clap_complete::generate(flags.shell, &mut clap_command(), "rowmill", &mut script);
            printer::data(String::from_utf8_lossy(&script).trim_end())?;
            Ok(rowmill::ExitCode::Ok)
        }
        Command::Man => manual(),
        Command::ExtractText { media_type } => Ok(extract_text(&media_type)),
    }
}

/// Prints a mistake in the command line; if a required argument is missing, with an example.
fn wrong_arguments(error: clap::Error) -> ExitCode {
    let given: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let command = given.first().cloned();
    let takes_rows = |name: &String| ["run", "plan", "batch"].contains(&name.as_str());
    let error = match &command {
        Some(name) if takes_rows(name) => add_tip(error, &given),
        Some(name) if name == "head" => add_head_tip(error),
        _ => error,
    };
    let error = with_usage(error, &given);
    let text = error.to_string();
    if let Cow::Owned(masked) = printer::shown(text.trim_end()) {
        printer::talk(&masked);
    } else if let (Err(problem), false) = (printer::reader(print(&error)), error.use_stderr()) {
        // Help and the version were requested; if the screen is gone, a mistake cannot be shown anyway.
        return ExitCode::from(report_problem(&problem) as u8);
    }
    let command = command.filter(|name| name == "run" || name == "plan");
    if let (Some(name), ErrorKind::MissingRequiredArgument) = (command, error.kind()) {
        printer::talk(&format!(
            "\nExample:\n  rowmill {name} -i rows.jsonl -o results.jsonl -m simulated --prompt 'Classify: {{{{text}}}}'"
        ));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(rowmill::ExitCode::Usage as u8))
}

/// Prints help, the version or a mistake, in colour if supported.
fn print(error: &clap::Error) -> std::io::Result<()> {
    if !error.use_stderr() {
        StandardOutput::open()?;
    }
    error.print()
}

/// Adds to an unknown flag the usage of the command that it was given to. By default, clap shows a
/// usage with the flag that it suggests, which may differ from the one in the tip.
fn with_usage(mut error: clap::Error, given: &[String]) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument {
        let mut whole = clap_command();
        whole.build();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage_of(&mut whole, given)));
    }
    error
}

/// The usage of the command that the words of a command line name.
fn usage_of(named: &mut clap::Command, given: &[String]) -> StyledStr {
    if let Some((first, rest)) = given.split_first()
        && let Some(below) = named.find_subcommand_mut(first)
    {
        return usage_of(below, rest);
    }
    named.render_usage()
}

fn manual() -> Result<rowmill::ExitCode, Problem> {
    let mut page = Vec::new();
    let mut whole = clap_command().disable_help_subcommand(true);
    whole.build();
    clap_mangen::Man::new(whole.clone()).render(&mut page).map_err(internal)?;
    for section in whole.get_subcommands() {
        clap_mangen::Man::new(section.clone()).render(&mut page).map_err(internal)?;
    }
    printer::data(&String::from_utf8_lossy(&page))?;
    Ok(rowmill::ExitCode::Ok)
}

fn internal(error: std::io::Error) -> Problem {
    Problem::new(rowmill::ProblemCode::Internal, "cannot generate the manual page").cause(error)
}

/// The child process of `--extract text`: reads a document and writes its text. A crash ends only this
/// process.
fn extract_text(media_type: &str) -> rowmill::ExitCode {
    match rowmill::run_extract_child(media_type, &mut std::io::stdin().lock(), &mut std::io::stdout().lock())
    {
        Ok(()) => rowmill::ExitCode::Ok,
        Err(message) => {
            printer::talk(&message);
            rowmill::ExitCode::Stopped
        }
    }
}
