//! Builds, measures the scenarios of a suite, and prints and writes the results.

use std::fs;

use clap::ValueEnum;

use super::context::{BenchContext, BenchLength, ScenarioFn};
use super::document::Part;
use super::report::{print, suite_text};
use super::{agents, batch, budget, data, document, library, limits, machine, speed};
use crate::arguments::BenchFlags;
use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

/// What is measured together; each has its own part of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SuiteName {
    /// The speed and the cost of rowmill, compared with `wrk`.
    #[default]
    Speed,
    /// How well rowmill uses a provider's limits, and whether faults cost rows.
    Limits,
    /// The slowdown that a budget causes.
    Budget,
    /// How fast rows are read and selected, and with how much memory, compared with DuckDB.
    Data,
    /// The cost of a row that an agent works on, compared with Langroid and fast-agent.
    Agents,
    /// The cost of an item of a program, compared with Langroid.
    Library,
    /// The cost of rows in the batch lane, compared with Agent Actions, and the memory for a million of them.
    Batch,
}

impl SuiteName {
    /// All suites, in the order of the report.
    pub(super) const ALL: [Self; 7] =
        [Self::Speed, Self::Limits, Self::Budget, Self::Data, Self::Agents, Self::Library, Self::Batch];

    /// The name in the markers of its part.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Limits => "limits",
            Self::Budget => "budget",
            Self::Data => "data",
            Self::Agents => "agents",
            Self::Library => "library",
            Self::Batch => "batch",
        }
    }

    fn scenarios(self) -> &'static [(&'static str, ScenarioFn)] {
        match self {
            Self::Speed => speed::ALL,
            Self::Limits => limits::ALL,
            Self::Budget => budget::ALL,
            Self::Data => data::ALL,
            Self::Agents => agents::ALL,
            Self::Library => library::ALL,
            Self::Batch => batch::ALL,
        }
    }

    /// The head of its part: the title and a description of all its scenarios.
    fn head(self) -> &'static str {
        match self {
            Self::Speed => {
                "## Speed\n\n\
                 `cargo xtask bench speed` measures rowmill beside `wrk`, a load generator in C that only sends and\n\
                 receives. Client and server share the cores, and so does whatever else the machine does: ratios\n\
                 are steadier than times, and times than rates."
            }
            Self::Limits => {
                "## Limits and faults\n\n\
                 `cargo xtask bench limits` measures how much of a provider's limits rowmill uses, how often it is\n\
                 refused, and what becomes of rows whose calls fail. What is used and refused is counted by the\n\
                 simulator, not by rowmill."
            }
            Self::Budget => {
                "## Budget\n\n\
                 `cargo xtask bench budget` measures the same run with a budget and without. What was billed is counted\n\
                 by the simulator, not by rowmill."
            }
            Self::Data => {
                "## Data\n\n\
                 `cargo xtask bench data` reads and selects rows of generated files, beside DuckDB and a plain loop\n\
                 with `serde_json`. Files are in the page cache."
            }
            Self::Agents => {
                "## Agents\n\n\
                 `cargo xtask bench agents` has agents work on rows, beside two packages for agents in Python, which it\n\
                 installs from PyPI. All of them ask the same simulator, which answers from prepared bytes."
            }
            Self::Library => {
                "## Library\n\n\
                 `cargo xtask bench library` runs a batch of items from code, with a function that does nothing as the\n\
                 worker: what is left is what the library itself costs. Beside it Langroid, which it installs from PyPI,\n\
                 works on a part of the same items with a model that answers at once inside the process."
            }
            Self::Batch => {
                "## Batch lane\n\n\
                 `cargo xtask bench batch` sends rows through batch jobs (`--lane batch`), beside Agent Actions, which it\n\
                 installs from PyPI; that takes 5 GB of disk."
            }
        }
    }

    /// The reference that it compares with, if that is a program that must be installed.
    fn yardstick(self, workspace: &Workspace) -> Result<Option<String>, TaskFailure> {
        match self {
            Self::Speed => speed::yardstick().map(Some),
            Self::Limits | Self::Budget | Self::Agents | Self::Library | Self::Batch => Ok(None),
            Self::Data => data::yardstick(workspace.root()).map(Some),
        }
    }
}

/// Measures a suite.
pub(crate) fn run_bench(workspace: &Workspace, flags: &BenchFlags) -> Result<(), TaskFailure> {
    let suite = flags.suite;
    let yardstick = suite.yardstick(workspace)?;
    let built = workspace.build(&flags.profile, &[("rowmill-cli", "rowmill"), ("xtask", "xtask")])?;
    let folder = workspace.target()?.join("bench");
    fs::create_dir_all(&folder)?;
    allow_open_files()?;
    let facts = machine::facts(workspace, yardstick, &flags.profile);
    let length = if flags.quick { BenchLength::Quick } else { BenchLength::Full };
    let context = BenchContext {
        rowmill: built.join("rowmill"),
        xtask: built.join("xtask"),
        root: workspace.root().to_owned(),
        folder,
        length,
    };
    let mut sections = Vec::new();
    for (name, scenario) in suite.scenarios() {
        if flags.only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            printer::say(format_args!("\n{name}"));
            let section = scenario(&context)?;
            print(&section);
            sections.push(section);
        }
    }
    let text = suite_text(suite.head(), &facts, &sections);
    let part_name = Part::Suite(suite);
    if flags.quick || flags.only.is_some() {
        let path = context.folder.join("benchmarks.md");
        let text = document::replace_suite_part("", part_name, &text);
        fs::write(&path, text).map_err(TaskFailure::context("cannot write the report"))?;
        printer::say(format_args!("\nwrote {}", path.display()));
    } else {
        document::write(workspace, part_name, &text)?;
    }
    let missed =
        sections.iter().flat_map(|section| &section.verdicts).filter(|verdict| !verdict.reached).count();
    if flags.strict && missed > 0 {
        return Err(TaskFailure::new(format!("{missed} targets were missed")));
    }
    Ok(())
}

/// The simulator needs a file descriptor for every call in flight and inherits the limit.
fn allow_open_files() -> Result<(), TaskFailure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(TaskFailure::context("cannot raise the limit on open files"))
}
