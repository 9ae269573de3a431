//! `rowmill simulate`: a simulated provider on this machine, until it is stopped.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rowmill::{ExitCode, Problem, ProblemCode};
use rowmill_simulator::{SimulatedAnswerRules, Simulator, SimulatorScript};

use crate::printer;
use crate::signals::SignalListener;
use crate::simulate_flags::SimulateFlags;

/// The start of every line of a call log.
const LOG_LINE: &[u8] = b"{\"call\":";

/// Runs the command.
pub(crate) fn simulate(flags: SimulateFlags) -> Result<ExitCode, Problem> {
    let host = flags.host;
    if !host.is_loopback() {
        printer::talk(&format!(
            "warning: other machines can reach `{host}`; anyone on them can call this provider and read `/stats`"
        ));
    }
    let cannot = |error: std::io::Error| {
        Problem::new(ProblemCode::Usage, format!("the simulator cannot listen on `{host}`"))
            .cause(error)
            .hint("choose another `--port`, or leave it out to use a free one")
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error))?;
    runtime.block_on(async {
        // Signals are handled before the server's address is announced.
        let mut signals = SignalListener::listen()
            .map_err(|error| Problem::new(ProblemCode::Internal, "cannot listen for signals").cause(error))?;
        let simulator = Simulator::try_start(script(flags)?).map_err(cannot)?;
        printer::data(&format!("listening on {}", simulator.url()))?;
        signals.next().await;
        Ok(ExitCode::Ok)
    })
}

/// The script that the flags describe, with the files that they name.
fn script(flags: SimulateFlags) -> Result<SimulatorScript, Problem> {
    if let (Some(script), Some(log)) = (&flags.script, &flags.log_requests)
        && rowmill::same_file(script, log)
    {
        let message =
            format!("`--log-requests` must not point to the same file as `--script`: `{}`", log.display());
        return Err(Problem::new(ProblemCode::SamePath, message).hint("give each its own path"));
    }
    let rules = flags.script.as_deref().map(rules).transpose()?;
    let log = flags.log_requests.as_deref().map(create).transpose()?;
    let mut script = flags.script();
    if let Some(rules) = rules {
        script = script.rules(rules);
    }
    Ok(match log {
        Some(log) => script.log_calls(log),
        None => script,
    })
}

/// The rules in a file.
fn rules(path: &Path) -> Result<SimulatedAnswerRules, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(ProblemCode::TextUnreadable, format!("cannot read the script `{}`", path.display()))
            .cause(error)
            .hint("pass a file of rules with `--script`")
    })?;
    SimulatedAnswerRules::read(&path.display().to_string(), &text).map_err(|error| {
        Problem::new(ProblemCode::Usage, "invalid script")
            .cause(error)
            .hint("fix the rule; `docs/simulate.md` describes the rules")
    })
}

/// Creates the file for the call log. Only an earlier log is replaced, no other file.
fn create(path: &Path) -> Result<File, Problem> {
    let mut first = Vec::new();
    // A missing file, or one that is not a regular file, holds nothing that could be lost.
    if path.is_file()
        && let Ok(file) = File::open(path)
        && file.take(LOG_LINE.len() as u64).read_to_end(&mut first).is_ok()
        && !first.is_empty()
        && first != LOG_LINE
    {
        let message = format!("`{}`, given to `--log-requests`, is not a log of calls", path.display());
        return Err(
            Problem::new(ProblemCode::OutputExists, message).hint("choose another path, or move it away")
        );
    }
    File::create(path).map_err(|error| {
        Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", path.display()))
            .cause(error)
            .hint("pass a file in an existing folder with `--log-requests`")
    })
}
