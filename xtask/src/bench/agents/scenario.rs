//! Rows with three tool turns each, by rowmill and by its competitors.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{self, CALL, Inputs, MCP_CALL, PROMPT};
use super::rival::{self, Rival};
use super::trial::{Contender, PARALLEL, Trial, head};
use crate::Failure;
use crate::bench::environment::{LEAST_PYTHON, interpreter};
use crate::bench::report::{Section, Table, Verdict};
use crate::bench::server::Server;
use crate::bench::stage::Stage;

/// How often rowmill is measured. A competitor takes much longer and is measured once.
const ROUNDS: usize = 3;
/// The calls of a row: three that are answered with a tool call, and one more.
const CALLS: u64 = 4;
const MODEL: &str = "generic.simulated";

/// The simulators that are called.
struct Servers {
    plain: Server,
    function: Server,
    mcp: Server,
}

/// A way in which rowmill works on rows.
struct Kind {
    name: &'static str,
    server: fn(&Servers) -> &Server,
    calls: u64,
    flags: &'static [&'static str],
}

const PLAIN: &str = "rowmill, no agent";
const STUBBED: &str = "rowmill, tool from a file (`--stub`)";
const FUNCTION: &str = "rowmill, Python function";
const KINDS: [Kind; 4] = [
    Kind { name: PLAIN, server: |servers| &servers.plain, calls: 1, flags: &[] },
    Kind {
        name: STUBBED,
        server: |servers| &servers.function,
        calls: CALLS,
        flags: &["--agent-card", "clerk.md", "--stub", "lookup=stub.jsonl"],
    },
    Kind {
        name: FUNCTION,
        server: |servers| &servers.function,
        calls: CALLS,
        flags: &["--agent-card", "clerk.md"],
    },
    Kind {
        name: "rowmill, MCP server (stdio, Python)",
        server: |servers| &servers.mcp,
        calls: CALLS,
        flags: &["--agent-card", "clerk-mcp.md"],
    },
];

/// A thousand agent rows, 64 at once, by all contenders; and more of them by rowmill alone.
pub(super) fn three_tool_turns(stage: &Stage) -> Result<Section, Failure> {
    let (few, fewer, many) = (stage.rows(1_000), stage.rows(200), stage.rows(20_000));
    let folder = files::write(stage, Inputs { few: PARALLEL + few, many: PARALLEL + many })?;
    let servers = Servers {
        plain: Server::start(&stage.rowmill, &["--instant"])?,
        function: Server::start(&stage.rowmill, &["--instant-turns", "3", "--tool", CALL])?,
        mcp: Server::start(&stage.rowmill, &["--instant-turns", "3", "--tool", MCP_CALL])?,
    };
    let (rivals, mut notes) = rival::all(&folder)?;
    let python = interpreter(LEAST_PYTHON).ok_or_else(|| Failure::new("there is no Python"))?;
    let ground = Ground { stage, folder: &folder, servers: &servers, path: path_with(&python)? };

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
    Ok(Section {
        title: "Three tool turns",
        about: "The model calls a trivial tool three times, then answers: four model calls for each row, 64 rows at \
                once. CPU is user and system time. That of the first 64 rows is taken off, with the start of \
                whatever has to start, and stands beside; the rows are those beyond. Processes that rowmill \
                starts for tools are counted with it, and told apart: for a Python function one for each of the \
                64 rows at once, for MCP a single server. Langroid and fast-agent call the function in their own \
                process; fast-agent reads the same card. rowmill: the median of three runs; others: one run of \
                fewer rows, because they take so long. Memory is that of the largest process.",
        commands,
        table: Some(Table { head: head(), rows: compared().chain(&many).map(Trial::line).collect() }),
        numbers: notes,
        verdicts,
    })
}

/// The working folder of contenders.
struct Ground<'a> {
    stage: &'a Stage,
    folder: &'a Path,
    servers: &'a Servers,
    /// The search path for programs: Python's own folder first.
    path: std::ffi::OsString,
}

impl<'a> Ground<'a> {
    fn rowmill(&'a self, input: &'a str, rows: u64) -> Vec<Contender<'a>> {
        let contender = |kind: &'a Kind| {
            let server = (kind.server)(self.servers);
            let command = move |limit: u64| {
                let mut command = self.stage.run(input, "results.jsonl", MODEL);
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
            Contender {
                name: kind.name.to_owned(),
                server,
                rows,
                calls: kind.calls,
                command: Box::new(command),
            }
        };
        KINDS.iter().map(contender).collect()
    }

    fn rival(&'a self, rival: &'a Rival, rows: u64) -> Contender<'a> {
        let server = &self.servers.function;
        let command = move |limit: u64| -> Command { rival.command(server, limit) };
        Contender { name: rival.name.clone(), server, rows, calls: CALLS, command: Box::new(command) }
    }
}

/// Measures the contenders in turn, so that other load on the machine affects all of them.
fn rounds(contenders: &[Contender<'_>]) -> Result<Vec<Trial>, Failure> {
    let mut trials = contenders.iter().map(Contender::start).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..ROUNDS {
        for (contender, trial) in contenders.iter().zip(&mut trials) {
            contender.measure(trial)?;
        }
    }
    Ok(trials)
}

fn once(contender: &Contender<'_>) -> Result<Trial, Failure> {
    let mut trial = contender.start()?;
    contender.measure(&mut trial)?;
    Ok(trial)
}

/// The cost of a row with a Python function, compared with the others.
fn verdicts(own: &[Trial], others: &[(&'static str, Trial)]) -> Vec<Verdict> {
    let Some(function) = own.iter().find(|trial| trial.name == FUNCTION) else { return Vec::new() };
    let verdict = |(target, other): &(&'static str, Trial)| {
        let times = other.cpu() / function.cpu();
        Verdict { target, measured: format!("1 to {times:.0}"), reached: times >= 20.0 }
    };
    others.iter().map(verdict).collect()
}

/// The cost of an agent's model call, compared with a row that consists of a single model call.
fn turn_verdict(trials: &[Trial]) -> Option<Verdict> {
    let of = |name: &str| trials.iter().find(|trial| trial.name == name);
    let (plain, stubbed) = (of(PLAIN)?.cpu(), of(STUBBED)?.cpu());
    let times = stubbed / CALLS as f64 / plain;
    Some(Verdict {
        target: "a model call of an agent with its tool call: at most 1.5 times the CPU of a plain row",
        measured: format!("{times:.2} times"),
        reached: times <= 1.5,
    })
}

fn path_with(python: &Path) -> Result<std::ffi::OsString, Failure> {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folder = python.parent().map(Path::to_owned);
    let folders: Vec<PathBuf> = folder.into_iter().chain(std::env::split_paths(&before)).collect();
    std::env::join_paths(folders).map_err(Failure::of("cannot name the folder of Python"))
}
