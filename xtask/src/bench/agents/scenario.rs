//! Rows with three tool turns each, by rowmill and by its competitors.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{self, CALL, InputSizes, MCP_CALL, PROMPT};
use super::rival::{self, RivalAgent};
use super::trial::{BenchContender, ContenderTrial, PARALLEL, head};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::python_packages::{LEAST_PYTHON, interpreter};
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict};
use crate::bench::server::SimulatorProcess;

/// How often rowmill is measured. A competitor takes much longer and is measured once.
const ROUNDS: usize = 3;
/// The calls of a row: three that are answered with a tool call, and one more.
const CALLS: u64 = 4;
const MODEL: &str = "generic.simulated";

/// The simulators that are called.
struct ModelServers {
    plain: SimulatorProcess,
    function: SimulatorProcess,
    mcp: SimulatorProcess,
}

/// A way in which rowmill works on rows.
struct AgentVariant {
    name: &'static str,
    server: fn(&ModelServers) -> &SimulatorProcess,
    calls: u64,
    flags: &'static [&'static str],
}

const PLAIN: &str = "rowmill, no agent";
const STUBBED: &str = "rowmill, tool from a file (`--stub`)";
const FUNCTION: &str = "rowmill, Python function";
const KINDS: [AgentVariant; 4] = [
    AgentVariant { name: PLAIN, server: |servers| &servers.plain, calls: 1, flags: &[] },
    AgentVariant {
        name: STUBBED,
        server: |servers| &servers.function,
        calls: CALLS,
        flags: &["--agent-card", "clerk.md", "--stub", "lookup=stub.jsonl"],
    },
    AgentVariant {
        name: FUNCTION,
        server: |servers| &servers.function,
        calls: CALLS,
        flags: &["--agent-card", "clerk.md"],
    },
    AgentVariant {
        name: "rowmill, MCP server (stdio, Python)",
        server: |servers| &servers.mcp,
        calls: CALLS,
        flags: &["--agent-card", "clerk-mcp.md"],
    },
];

/// A thousand agent rows, 64 at once, by all contenders; and more of them by rowmill alone.
pub(super) fn three_tool_turns(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let (few, fewer, many) = (context.rows(1_000), context.rows(200), context.rows(20_000));
    let folder = files::write(context, InputSizes { few: PARALLEL + few, many: PARALLEL + many })?;
    let servers = ModelServers {
        plain: SimulatorProcess::start(&context.rowmill, &["--instant"])?,
        function: SimulatorProcess::start(&context.rowmill, &["--instant-turns", "3", "--tool", CALL])?,
        mcp: SimulatorProcess::start(&context.rowmill, &["--instant-turns", "3", "--tool", MCP_CALL])?,
    };
    let (rivals, mut notes) = rival::all(&folder)?;
    let python = interpreter(LEAST_PYTHON).ok_or_else(|| TaskFailure::new("there is no Python"))?;
    let ground = ContenderContext { context, folder: &folder, servers: &servers, path: path_with(&python)? };

    let few = rounds(&ground.rowmill("rows.jsonl", few))?;
    let mut others = Vec::new();
    for rival in &rivals {
        match once(&ground.rival(rival, fewer)) {
            Ok(trial) => others.push((rival.target, trial)),
            Err(failure) => notes.push(format!("{} was not measured: {failure}", rival.name)),
        }
    }
    let many = rounds(&ground.rowmill("many.jsonl", many))?;

    let compared = || few.iter().chain(others.iter().map(|(_, trial)| trial));
    notes.extend(
        compared().chain(&many).filter(|trial| trial.surplus > 0).map(|trial| {
            format!("{} asked {} times more often than its rows need", trial.name, trial.surplus)
        }),
    );
    let mut commands = vec![
        "rowmill simulate --instant".to_owned(),
        format!("rowmill simulate --instant-turns 3 --tool '{CALL}'"),
        format!("rowmill simulate --instant-turns 3 --tool '{MCP_CALL}'"),
    ];
    commands.extend(compared().map(|trial| trial.command.clone()));
    let mut verdicts = verdicts(&few, &others);
    verdicts.extend(turn_verdict(&many));
    Ok(ReportSection {
        title: "Three tool turns",
        about: "The model calls a trivial tool three times, then answers: four model calls for each row, 64 rows at \
                once. CPU is user and system time. That of the first 64 rows is taken off, with the start of \
                whatever has to start, and stands beside; the rows are those beyond. Processes that rowmill \
                starts for tools are counted with it, and listed apart: for a Python function one for each of the \
                64 rows at once, for MCP a single server. Langroid and fast-agent call the function in their own \
                process; fast-agent reads the same card. rowmill: the median of three runs; others: one run of \
                fewer rows, because they take so long. Memory is that of the largest process.",
        commands,
        table: Some(ReportTable {
            head: head(),
            rows: compared().chain(&many).map(ContenderTrial::line).collect(),
        }),
        numbers: notes,
        verdicts,
    })
}

/// The working folder of contenders.
struct ContenderContext<'a> {
    context: &'a BenchContext,
    folder: &'a Path,
    servers: &'a ModelServers,
    /// The search path for programs: Python's own folder first.
    path: std::ffi::OsString,
}

impl<'a> ContenderContext<'a> {
    fn rowmill(&'a self, input: &'a str, rows: u64) -> Vec<BenchContender<'a>> {
        let contender = |kind: &'a AgentVariant| {
            let server = (kind.server)(self.servers);
            let command = move |limit: u64| {
                let mut command = self.context.run(input, "results.jsonl", MODEL);
                command.current_dir(self.folder).args([
                    "--overwrite",
                    "-p",
                    PROMPT,
                    "--parallel",
                    &PARALLEL.to_string(),
                ]);
                command.args(kind.flags).args(["--limit", &limit.to_string()]);
                command.env("GENERIC_BASE_URL", server.base_url()).env("PATH", &self.path);
                command
            };
            BenchContender {
                name: kind.name.to_owned(),
                server,
                rows,
                calls: kind.calls,
                command: Box::new(command),
            }
        };
        KINDS.iter().map(contender).collect()
    }

    fn rival(&'a self, rival: &'a RivalAgent, rows: u64) -> BenchContender<'a> {
        let server = &self.servers.function;
        let command = move |limit: u64| -> Command { rival.command(server, limit) };
        BenchContender { name: rival.name.clone(), server, rows, calls: CALLS, command: Box::new(command) }
    }
}

/// Measures the contenders in turn, so that other load on the machine affects all of them.
fn rounds(contenders: &[BenchContender<'_>]) -> Result<Vec<ContenderTrial>, TaskFailure> {
    let mut trials = contenders.iter().map(BenchContender::start).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..ROUNDS {
        for (contender, trial) in contenders.iter().zip(&mut trials) {
            contender.measure(trial)?;
        }
    }
    Ok(trials)
}

fn once(contender: &BenchContender<'_>) -> Result<ContenderTrial, TaskFailure> {
    let mut trial = contender.start()?;
    contender.measure(&mut trial)?;
    Ok(trial)
}

/// The cost of a row with a Python function, compared with the others.
fn verdicts(own: &[ContenderTrial], others: &[(&'static str, ContenderTrial)]) -> Vec<TargetVerdict> {
    let Some(function) = own.iter().find(|trial| trial.name == FUNCTION) else { return Vec::new() };
    let verdict = |(target, other): &(&'static str, ContenderTrial)| {
        let times = other.cpu() / function.cpu();
        TargetVerdict { target, measured: format!("1 to {times:.0}"), reached: times >= 20.0 }
    };
    others.iter().map(verdict).collect()
}

/// The cost of an agent's model call, compared with a row that consists of a single model call.
fn turn_verdict(trials: &[ContenderTrial]) -> Option<TargetVerdict> {
    let of = |name: &str| trials.iter().find(|trial| trial.name == name);
    let (plain, stubbed) = (of(PLAIN)?.cpu(), of(STUBBED)?.cpu());
    let times = stubbed / CALLS as f64 / plain;
    Some(TargetVerdict {
        target: "a model call of an agent with its tool call: at most 1.5 times the CPU of a plain row",
        measured: format!("{times:.2} times"),
        reached: times <= 1.5,
    })
}

fn path_with(python: &Path) -> Result<std::ffi::OsString, TaskFailure> {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folder = python.parent().map(Path::to_owned);
    let folders: Vec<PathBuf> = folder.into_iter().chain(std::env::split_paths(&before)).collect();
    std::env::join_paths(folders).map_err(TaskFailure::context("cannot name the folder of Python"))
}
