//! `rowmill card check`: checks whether agent cards can be used, without running them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rowmill::{
    AgentOptions, CardCheck, CardCheckSpec, CardChecks, ConfigFile, ExitCode, InstructionVariableOptions,
    Problem, ProblemCode, WorkSpec, check_agent_cards,
};
use serde_json::{Value, json};

use crate::number_text::count_phrase;
use crate::printer;
use crate::process_environment::process_environment;
use crate::resolve::config_search_folder;
use crate::vocabulary::COMMAND_LINE_VOCABULARY;

/// Check agent cards.
#[derive(Debug, Args)]
pub(crate) struct CardFlags {
    #[command(subcommand)]
    command: CardCommand,
}

/// What can be done with cards.
#[derive(Debug, Subcommand)]
enum CardCommand {
    Check(CheckFlags),
}

/// Validate agent cards and report every problem.
///
/// Reads the cards and everything that they refer to: files, messages, variables, MCP servers of
/// the configuration, models, hooks, other agents. Calls no model, starts no server and runs no
/// function.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill card check cards\n  \
    rowmill card check clerk.md --var \"currentDate=$(date +%F)\"\n  \
    rowmill card check cards --agent clerk --json\n\n\
    Exits with code 1 if a card cannot be used.")]
struct CheckFlags {
    /// Cards: files, folders of cards, or URLs.
    #[arg(value_name = "CARD", required = true)]
    cards: Vec<String>,

    /// Check only this agent and the agents that it uses.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Model that each agent uses for rows, instead of the one in its card.
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,

    /// Set the instruction variable NAME, used as `{{NAME}}`; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    var: Vec<String>,

    /// Set an instruction variable to the contents of a file; repeatable.
    #[arg(long, value_name = "NAME=PATH")]
    var_file: Vec<String>,

    /// JSON file with one object of instruction variables; `--var` and `--var-file` override it.
    #[arg(long, value_name = "PATH")]
    vars_json: Option<PathBuf>,

    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run_card_command(flags: CardFlags) -> Result<ExitCode, Problem> {
    let CardCommand::Check(flags) = flags.command;
    let file = ConfigFile::find(&config_search_folder())?;
    let folder = file.path.as_deref().and_then(std::path::Path::parent);
    let agents = AgentOptions {
        cards: flags.cards,
        agent: flags.agent,
        model_given: flags.model.is_some(),
        config_folder: folder.unwrap_or(std::path::Path::new("")).to_owned(),
        servers: file.config.mcp.servers.clone(),
        ..AgentOptions::default()
    };
    let work = WorkSpec {
        model: flags.model.or(file.config.run.model.clone()).unwrap_or_default(),
        agents,
        aliases: file.config.alias_config(),
        providers: file.config.providers,
        ..WorkSpec::default()
    };
    let variables =
        InstructionVariableOptions { pairs: flags.var, files: flags.var_file, json: flags.vars_json };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error))?;
    let checks = runtime.block_on(check_agent_cards(&CardCheckSpec {
        work,
        variables,
        environment: process_environment().clone(),
    }))?;
    let text = if flags.json { as_json(&checks) } else { as_text(&checks) };
    printer::report(&text)?;
    Ok(if checks.is_ok() { ExitCode::Ok } else { ExitCode::Stopped })
}

fn as_text(checks: &CardChecks) -> String {
    let mut lines = Vec::new();
    for CardCheck { name, card_type, source, problem, notices } in &checks.cards {
        let state = if problem.is_some() { "problem" } else { "ok" };
        lines.push(format!("{state:<8}{name} ({card_type}, {source})"));
        lines.extend(problem.iter().map(|problem| indented(&printer::problem_text(problem))));
        lines.extend(notices.iter().map(|notice| indented(&format!("note: {notice}"))));
    }
    lines.extend(checks.problems.iter().map(printer::problem_text));
    let wrong = checks.cards.iter().filter(|card| card.problem.is_some()).count();
    let good = checks.cards.len() - wrong;
    lines.push(format!(
        "{} can be used, {}",
        count_phrase(good as u64, "card"),
        count_phrase((wrong + checks.problems.len()) as u64, "problem")
    ));
    lines.join("\n")
}

fn indented(text: &str) -> String {
    format!("  {}", text.replace('\n', "\n  "))
}

fn as_json(checks: &CardChecks) -> String {
    let problem = |problem: &Problem| {
        let problem = problem.clone().with_vocabulary(COMMAND_LINE_VOCABULARY);
        json!({
            "code": problem.code.code(),
            "message": problem.message,
            "cause": problem.cause,
            "help": problem.hint,
        })
    };
    let card = |card: &CardCheck| {
        json!({
            "name": card.name,
            "type": card.card_type,
            "source": card.source,
            "ok": card.problem.is_none(),
            "problem": card.problem.as_ref().map(problem),
            "notices": card.notices,
        })
    };
    let cards: Vec<Value> = checks.cards.iter().map(card).collect();
    let problems: Vec<Value> = checks.problems.iter().map(problem).collect();
    let whole = json!({ "ok": checks.is_ok(), "cards": cards, "problems": problems });
    // Plain data, so it always serializes to JSON.
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}
