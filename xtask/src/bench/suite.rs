//! Builds, measures all scenarios, tells and writes what came of it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::report::{Section, document};
use super::{machine, scenarios, wrk};
use crate::arguments::BenchFlags;
use crate::workspace::Workspace;
use crate::{Failure, talk};

/// What every scenario needs.
#[derive(Debug)]
pub(super) struct Stage {
    /// The command to be measured, which is also the simulator.
    pub(super) rowmill: PathBuf,
    /// Where inputs and outputs are.
    pub(super) folder: PathBuf,
    /// Rows are divided by this.
    pub(super) divisor: u64,
}

impl Stage {
    pub(super) fn rows(&self, full: u64) -> u64 {
        full / self.divisor
    }

    /// `rowmill run` on a file of the folder, with nothing of the user's environment.
    pub(super) fn run(&self, input: &str, output: &str, model: &str) -> Command {
        let mut command = Command::new(&self.rowmill);
        command.current_dir(&self.folder).arg("run");
        command.args(["-i", input, "-o", output, "-m", model]);
        command.args(["--no-progress", "--no-final-summary"]);
        for name in ["ROWMILL_MODEL", "ROWMILL_PARALLEL", "ROWMILL_RETRIES", "ROWMILL_TIMEOUT"] {
            command.env_remove(name);
        }
        command.stderr(std::process::Stdio::null());
        command
    }
}

/// Measures everything.
pub(crate) fn bench(workspace: &Workspace, flags: &BenchFlags) -> Result<(), Failure> {
    let wrk = wrk::version()?;
    let built = workspace.build(&flags.profile, &[("rowmill-cli", "rowmill")])?;
    let folder = workspace.target()?.join("bench");
    fs::create_dir_all(&folder)?;
    allow_open_files()?;
    let facts = machine::facts(workspace, wrk, &flags.profile);
    let stage = Stage { rowmill: built.join("rowmill"), folder, divisor: if flags.quick { 20 } else { 1 } };
    let mut sections = Vec::new();
    for (name, scenario) in scenarios::ALL {
        if flags.only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            talk::say(format_args!("\n{name}"));
            let section = scenario(&stage)?;
            tell(&section);
            sections.push(section);
        }
    }
    let is_whole = !flags.quick && flags.only.is_none();
    let path = if is_whole {
        workspace.root().join("docs/benchmarks.md")
    } else {
        stage.folder.join("benchmarks.md")
    };
    fs::write(&path, document(&facts, &sections)).map_err(Failure::of("cannot write the report"))?;
    talk::say(format_args!("\nwrote {}", path.display()));
    let missed =
        sections.iter().flat_map(|section| &section.verdicts).filter(|verdict| !verdict.reached).count();
    if flags.strict && missed > 0 {
        return Err(Failure::new(format!("{missed} targets were missed")));
    }
    Ok(())
}

fn tell(section: &Section) {
    for line in &section.numbers {
        talk::say(format_args!("  {line}"));
    }
    for verdict in &section.verdicts {
        talk::say(format_args!("  {} {}: {}", verdict.word(), verdict.target, verdict.measured));
    }
}

/// The simulator needs a file descriptor for every call in flight and inherits the limit.
fn allow_open_files() -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(Failure::of("cannot raise the limit on open files"))
}
