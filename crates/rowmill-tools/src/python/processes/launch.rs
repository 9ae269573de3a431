//! Starts Python processes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::process::PythonProcess;
use super::schema_model::SchemaModelCheckSettings;
use super::wire::{self, AnswerKind, LoadReport, MODEL_PROGRAM, PROGRAM, PythonAnswer, PythonRequest};
use crate::process_group::{ProcessGroup, ProcessReaper};
use crate::python::settings::{PythonSettings, START_TIMEOUT};

/// Why a process could not be started.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// The interpreter could not be started.
    NotStarted(io::Error),
    /// It did not return an answer.
    Failed(String),
}

/// How processes are started; the same for all of them.
#[derive(Debug)]
pub(super) struct PythonLauncher {
    interpreter: PathBuf,
    folder: PathBuf,
    program: &'static str,
    plan: Vec<u8>,
    variables: Option<Vec<(OsString, OsString)>>,
    without: Vec<String>,
    timeout: Duration,
    reaper: ProcessReaper,
}

impl PythonLauncher {
    /// Starts processes that import what the settings name.
    pub(super) fn new(settings: &PythonSettings) -> Result<Self, serde_json::Error> {
        Ok(Self {
            interpreter: settings.interpreter.clone(),
            folder: settings.folder.clone(),
            program: PROGRAM,
            plan: wire::plan(settings)?,
            variables: settings.variables.clone(),
            without: settings.without.clone(),
            timeout: settings.start_timeout,
            reaper: ProcessReaper::default(),
        })
    }

    /// Starts processes that check answers with a model.
    pub(super) fn for_schema_model(settings: &SchemaModelCheckSettings) -> Self {
        Self {
            interpreter: settings.interpreter.clone(),
            folder: settings.folder.clone(),
            program: MODEL_PROGRAM,
            plan: serde_json::json!({ "model": settings.model }).to_string().into_bytes(),
            variables: settings.variables.clone(),
            without: Vec::new(),
            timeout: START_TIMEOUT,
            reaper: ProcessReaper::default(),
        }
    }

    /// Starts a process and waits until it has imported all functions.
    pub(super) async fn launch(&self) -> Result<(PythonProcess, LoadReport), LaunchError> {
        let (worker, answer) = self.start().await?;
        Ok((worker, loaded(answer).map_err(LaunchError::Failed)?))
    }

    /// Starts a process and waits for its first answer, which it sends once it has imported everything.
    pub(super) async fn start(&self) -> Result<(PythonProcess, PythonAnswer), LaunchError> {
        let mut command = Command::new(&self.interpreter);
        command.args(["-X", "utf8", "-c", self.program]).current_dir(&self.folder);
        if let Some(variables) = &self.variables {
            command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        }
        for name in &self.without {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let group = ProcessGroup::start(&mut command, &self.reaper).map_err(LaunchError::NotStarted)?;
        let mut worker = PythonProcess::new(group).map_err(LaunchError::NotStarted)?;
        let asked =
            tokio::time::timeout(self.timeout, worker.request(PythonRequest::Load, 0, &self.plan)).await;
        let answer = match asked {
            Ok(answer) => answer.map_err(LaunchError::Failed)?,
            Err(_) => {
                let message = format!("its imports took longer than {} s", self.timeout.as_secs_f64());
                return Err(LaunchError::Failed(message));
            }
        };
        Ok((worker, answer))
    }

    /// Waits for processes that were killed.
    pub(super) async fn reap_killed(&self) {
        self.reaper.reap_all().await;
    }
}

fn loaded(answer: PythonAnswer) -> Result<LoadReport, String> {
    if answer.kind != AnswerKind::Json {
        return Err(answer.into_text());
    }
    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
}
