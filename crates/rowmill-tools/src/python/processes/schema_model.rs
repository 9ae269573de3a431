//! Checks answers with the user's pydantic model, in one process that is reused.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::AnswerChecker;
use rowmill_types::AnswerVerdict;
use tokio::sync::Mutex;

use super::launch::{LaunchError, PythonLauncher};
use super::process::PythonProcess;
use super::wire::{AnswerKind, PythonAnswer, PythonRequest};

/// How often an answer is sent to a process before the answer is blamed for crashing it.
const TRIES: usize = 2;
/// How long the process may take to end by itself.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Which model checks answers, and how.
#[derive(Debug, Clone)]
pub struct SchemaModelCheckSettings {
    /// The Python program.
    pub interpreter: PathBuf,
    /// Its working folder, where modules are searched for first.
    pub folder: PathBuf,
    /// The model: `module.path:Class`.
    pub model: String,
    /// How long the check of one answer may take.
    pub timeout: Duration,
    /// The variables of the process; those of this process if absent.
    pub variables: Option<Vec<(OsString, OsString)>>,
}

/// Checks answers with a pydantic model: its validators run, and its defaults are filled in.
///
/// The process is started for the first answer and reused. Answers take turns in it. If it hangs or its check
/// is dropped, it is killed, and the next answer gets a new one.
#[derive(Debug)]
pub struct SchemaModelAnswerChecker {
    launcher: PythonLauncher,
    timeout: Duration,
    worker: Mutex<Option<PythonProcess>>,
}

impl SchemaModelAnswerChecker {
    /// A model whose process is not started yet.
    #[must_use]
    pub fn new(settings: &SchemaModelCheckSettings) -> Self {
        let launcher = PythonLauncher::for_schema_model(settings);
        Self { launcher, timeout: settings.timeout, worker: Mutex::default() }
    }

    /// Ends the process.
    pub async fn close(&self) {
        if let Some(worker) = self.worker.lock().await.take() {
            worker.finish(SHUTDOWN_TIMEOUT).await;
        }
        self.launcher.reap_killed().await;
    }

    async fn verdict(&self, answer: &str) -> AnswerVerdict {
        let mut held = self.worker.lock().await;
        let mut last = String::new();
        for _ in 0..TRIES {
            let mut worker = match held.take().and_then(PythonProcess::if_alive) {
                Some(worker) => worker,
                None => match self.start().await {
                    Ok(worker) => worker,
                    Err(message) => return AnswerVerdict::Unchecked(message),
                },
            };
            let asked = worker.request(PythonRequest::Call, 0, answer.as_bytes());
            match tokio::time::timeout(self.timeout, asked).await {
                Ok(Ok(answer)) => {
                    *held = Some(worker);
                    return read(answer);
                }
                Ok(Err(message)) => last = message,
                Err(_) => {
                    let seconds = self.timeout.as_secs_f64();
                    return AnswerVerdict::Unchecked(format!(
                        "the schema model took longer than {seconds} s"
                    ));
                }
            }
        }
        AnswerVerdict::Unchecked(last)
    }

    async fn start(&self) -> Result<PythonProcess, String> {
        let failed = |what: String| format!("cannot start Python for the schema model: {what}");
        match self.launcher.start().await {
            Ok((worker, answer)) if answer.kind == AnswerKind::None => Ok(worker),
            Ok((_, answer)) => Err(failed(answer.into_text())),
            Err(LaunchError::NotStarted(error)) => Err(failed(error.to_string())),
            Err(LaunchError::Failed(message)) => Err(failed(message)),
        }
    }
}

impl AnswerChecker for SchemaModelAnswerChecker {
    fn check<'a>(&'a self, answer: &'a str) -> BoxFuture<'a, AnswerVerdict> {
        Box::pin(self.verdict(answer))
    }
}

fn read(answer: PythonAnswer) -> AnswerVerdict {
    match answer.kind {
        AnswerKind::Text => AnswerVerdict::Valid(answer.into_text()),
        AnswerKind::Json => match serde_json::from_slice(&answer.body) {
            Ok(violations) => AnswerVerdict::Invalid(violations),
            Err(error) => AnswerVerdict::Unchecked(error.to_string()),
        },
        AnswerKind::None | AnswerKind::Bytes | AnswerKind::Error => {
            AnswerVerdict::Unchecked(format!("the schema model failed: {}", answer.into_text()))
        }
    }
}
