//! Agent Actions, which does the same with batch jobs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::files::{self, ACTION, RivalModel, WORKFLOW};
use super::trial::{LaneTrial, MODEL, wait_for_answers};
use crate::TaskFailure;
use crate::bench::measure::{ProcessCost, command_text, measure_cost};
use crate::bench::python_packages::{LEAST_PYTHON, PythonPackage};
use crate::bench::server::SimulatorProcess;

const AGENT_ACTIONS: PythonPackage =
    PythonPackage { name: "agent-actions", version: "2.0.0", python: LEAST_PYTHON };
/// The vendor that it contains for trials: jobs are files, and answers are made inside its own process.
const OFFLINE: RivalModel = RivalModel { vendor: "agac-provider", name: "agac-model" };
/// The vendor whose client asks the simulator.
const OPENAI: RivalModel = RivalModel { vendor: "openai", name: MODEL };

/// Agent Actions in an environment of its own.
pub(super) struct AgentActions {
    /// Its command.
    program: PathBuf,
    /// The folder of its projects.
    folder: PathBuf,
}

impl AgentActions {
    /// Its name and version.
    pub(super) fn name() -> String {
        format!("Agent Actions {}", AGENT_ACTIONS.version)
    }

    /// Installs it if necessary.
    pub(super) fn install(folder: &Path) -> Result<Self, String> {
        let python = AGENT_ACTIONS.install(folder)?;
        Ok(Self { program: python.with_file_name("agac"), folder: folder.to_owned() })
    }

    /// Submits and collects rows with the vendor that it contains.
    pub(super) fn measure_offline(&self, rows: u64) -> Result<LaneTrial, TaskFailure> {
        let project = self.folder.join("project-offline");
        files::write_project(&project, OFFLINE, rows)?;
        let run = || {
            let mut run = self.command(&project, &["run", "-a", WORKFLOW]);
            // Its jobs are complete at once.
            run.env("AGAC_BATCH_COMPLETE_AFTER_SECONDS", "0");
            run
        };
        let (submit, _) = measure_cost(&mut run())?;
        let (collect, _) = measure_cost(&mut run())?;
        let name = format!("{}, its own offline vendor", Self::name());
        self.trial((name, project.as_path()), (rows, command_text(&run())), (submit, collect))
    }

    /// Submits and collects rows with the simulator as the vendor.
    pub(super) fn measure_simulator(&self, rowmill: &Path, rows: u64) -> Result<LaneTrial, TaskFailure> {
        let project = self.folder.join("project-openai");
        files::write_project(&project, OPENAI, rows)?;
        let server = SimulatorProcess::start::<&str>(rowmill, &[])?;
        let run = || {
            let mut run = self.command(&project, &["run", "-a", WORKFLOW]);
            run.env("OPENAI_BASE_URL", server.base_url());
            run
        };
        let (submit, _) = measure_cost(&mut run())?;
        wait_for_answers(&server, rows)?;
        let (collect, _) = measure_cost(&mut run())?;
        let name = format!("{}, the simulator", Self::name());
        self.trial((name, project.as_path()), (rows, command_text(&run())), (submit, collect))
    }

    /// The measurements, if all rows have ended well.
    fn trial(
        &self,
        (name, project): (String, &Path),
        (rows, command): (u64, String),
        (submit, collect): (ProcessCost, ProcessCost),
    ) -> Result<LaneTrial, TaskFailure> {
        let (_, records) =
            measure_cost(&mut self.command(project, &["records", "-w", WORKFLOW, "-a", ACTION]))?;
        let processed =
            records.lines().filter(|line| line.contains("\"_state\": \"processed\"")).count() as u64;
        if processed != rows {
            return Err(TaskFailure::new(format!("{name} has processed {processed} of {rows} rows")));
        }
        Ok(LaneTrial { name, rows, submit, collect, commands: [command.clone(), command] })
    }

    fn command(&self, project: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(project).stderr(Stdio::null());
        // Files and settings that it would use outside of its project are redirected into it.
        command.env("HOME", "home").env("DO_NOT_TRACK", "1").env("OPENAI_API_KEY", "x");
        command
    }
}
