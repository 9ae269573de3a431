//! Python agents that do the same work.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::files::PROMPT;
use super::trial::PARALLEL;
use crate::TaskFailure;
use crate::bench::python_packages::{LANGROID, PythonPackage, prepare_tokenizers};
use crate::bench::server::SimulatorProcess;
use crate::workspace::Workspace;

const FAST_AGENT: PythonPackage = PythonPackage { name: "fast-agent-mcp", version: "0.10.46", python: 12 };

/// Creates the command that works on this many rows.
type RivalCommandFn = fn(&RivalAgent, &SimulatorProcess, u64) -> Command;

/// A competitor that can be measured.
pub(super) struct RivalAgent {
    pub(super) name: String,
    /// The target for rowmill compared with it.
    pub(super) target: &'static str,
    /// The Python interpreter of its environment.
    python: PathBuf,
    command: RivalCommandFn,
    folder: PathBuf,
}

/// The competitors that could be installed, and why others could not.
pub(super) fn all(folder: &Path) -> Result<(Vec<RivalAgent>, Vec<String>), TaskFailure> {
    let workspace = Workspace::here()?;
    let ready = prepare_tokenizers(&workspace, &folder.join("tokenizers"));
    let (mut rivals, mut missing) = (Vec::new(), Vec::new());
    let known: [(&str, &'static str, &PythonPackage, RivalCommandFn); 2] = [
        (
            "Langroid",
            "CPU per row with a Python function, at most a twentieth of Langroid's",
            &LANGROID,
            langroid,
        ),
        (
            "fast-agent",
            "CPU per row with a Python function, at most a twentieth of fast-agent's",
            &FAST_AGENT,
            fast_agent,
        ),
    ];
    for (title, target, package, command) in known {
        let name = format!("{title} {}", package.version);
        match ready.clone().and_then(|()| package.install(folder)) {
            Ok(python) => {
                rivals.push(RivalAgent { name, target, python, command, folder: folder.to_owned() })
            }
            Err(why) => missing.push(format!("{name} was not measured: {why}")),
        }
    }
    Ok((rivals, missing))
}

impl RivalAgent {
    /// The command that works on this many rows.
    pub(super) fn command(&self, server: &SimulatorProcess, rows: u64) -> Command {
        let mut command = (self.command)(self, server, rows);
        command.current_dir(&self.folder).stderr(Stdio::null());
        // Files and settings that they would use outside of the folder are redirected into it.
        command.env("HOME", "home").env("TIKTOKEN_CACHE_DIR", "tokenizers");
        command.env("DO_NOT_TRACK", "1");
        command
    }
}

fn langroid(rival: &RivalAgent, server: &SimulatorProcess, rows: u64) -> Command {
    let mut command = Command::new(&rival.python);
    command.args(["langroid_rows.py", &server.base_url(), "rows.jsonl", &rows.to_string()]);
    command.arg(PARALLEL.to_string());
    command
}

fn fast_agent(rival: &RivalAgent, server: &SimulatorProcess, rows: u64) -> Command {
    let mut command = Command::new(rival.python.with_file_name("fast-agent"));
    command.args(["batch", "run", "-i", "rows.jsonl", "-o", "fast-agent.jsonl", "-m", "generic.simulated"]);
    command.args(["--agent-card", "clerk.md", "-p", PROMPT, "--limit", &rows.to_string()]);
    command.args(["--parallel", &PARALLEL.to_string(), "--overwrite", "--no-progress", "--no-final-summary"]);
    command.env("GENERIC_BASE_URL", server.base_url()).env("GENERIC_API_KEY", "x");
    command
}
