//! The context that every scenario needs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::report::ReportSection;
use crate::TaskFailure;

/// A scenario takes the context and returns its measurements.
pub(super) type ScenarioFn = fn(&BenchContext) -> Result<ReportSection, TaskFailure>;

/// The context of scenarios.
#[derive(Debug)]
pub(super) struct BenchContext {
    /// The program that is measured, which is also the simulator.
    pub(super) rowmill: PathBuf,
    /// This program, built in the same way.
    pub(super) xtask: PathBuf,
    /// The folder of the workspace.
    pub(super) root: PathBuf,
    /// The folder of inputs and outputs.
    pub(super) folder: PathBuf,
    pub(super) length: BenchLength,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchLength {
    /// Everything that the report needs.
    Full,
    /// A short version for development.
    Quick,
}

impl BenchContext {
    /// The divisor for numbers of rows.
    pub(super) fn divisor(&self) -> u64 {
        match self.length {
            BenchLength::Full => 1,
            BenchLength::Quick => 20,
        }
    }

    pub(super) fn rows(&self, full: u64) -> u64 {
        full / self.divisor()
    }

    /// `rowmill run` on a file of the folder, without the user's environment.
    pub(super) fn run(&self, input: &str, output: &str, model: &str) -> Command {
        let mut command = Command::new(&self.rowmill);
        command.current_dir(&self.folder).arg("run");
        command.args(["-i", input, "-o", output, "-m", model]);
        command.args(["--no-progress", "--no-final-summary"]);
        for name in ["ROWMILL_MODEL", "ROWMILL_PARALLEL", "ROWMILL_RETRIES", "ROWMILL_TIMEOUT"] {
            command.env_remove(name);
        }
        command.stderr(Stdio::null());
        command
    }
}
