//! What every scenario needs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::report::Section;
use crate::Failure;

/// A scenario takes a stage and tells what it measured.
pub(super) type Scenario = fn(&Stage) -> Result<Section, Failure>;

/// Where scenarios are measured.
#[derive(Debug)]
pub(super) struct Stage {
    /// The command to be measured, which is also the simulator.
    pub(super) rowmill: PathBuf,
    /// These tasks, built as the command is.
    pub(super) xtask: PathBuf,
    /// The folder of the workspace.
    pub(super) root: PathBuf,
    /// Where inputs and outputs are.
    pub(super) folder: PathBuf,
    pub(super) length: Length,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// What the report needs.
    Full,
    /// What a developer has time for.
    Quick,
}

impl Stage {
    /// Rows are divided by this.
    pub(super) fn divisor(&self) -> u64 {
        match self.length {
            Length::Full => 1,
            Length::Quick => 20,
        }
    }

    pub(super) fn rows(&self, full: u64) -> u64 {
        full / self.divisor()
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
        command.stderr(Stdio::null());
        command
    }
}
