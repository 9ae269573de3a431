//! Python functions as a tool host, and as hooks.

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{HookCall, HookKind, HookRunner, ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_core::redact::{Redactor, is_secret_name};
use rowmill_types::{Problem, Secret, ToolOutput, ToolSpec};
use serde_json::Value;

use super::launch::PythonLauncher;
use super::pool::ProcessPool;
use super::problems;
use super::wire::{self, AnswerKind, LoadReport, PythonAnswer, PythonRequest};
use crate::bytes_output::output_from_bytes;
use crate::python::settings::{Entrypoint, PythonSettings};

/// How many kinds of hooks there are.
const HOOK_KINDS: usize = 5;

/// A Python function, ready to be offered.
#[derive(Debug, Clone)]
pub struct PythonTool {
    /// Where it is. Its text is the name that the host knows the tool by.
    pub entrypoint: Entrypoint,
    /// How it is described to models, under the function's own name.
    pub spec: ToolSpec,
    /// Whether it may run twice.
    pub idempotent: bool,
}

/// Calls Python functions.
///
/// A row gets its own process with its first call and keeps it until it is released, so that the state of
/// modules is separate for rows that are worked on at the same time. Later rows reuse the processes of rows
/// that have ended.
#[derive(Debug)]
pub struct PythonToolHost {
    tools: Vec<PythonTool>,
    numbers: HashMap<String, usize>,
    hooks: HashMap<String, [Option<usize>; HOOK_KINDS]>,
    /// The values that modules put into the environment of their process under the name of a secret.
    secrets: Vec<Secret>,
    redactor: Redactor,
    pool: ProcessPool,
}

impl PythonToolHost {
    /// Starts the first process, which imports everything and so finds all mistakes.
    ///
    /// # Errors
    ///
    /// There is no Python, or one of the functions cannot be used.
    pub async fn start(settings: PythonSettings) -> Result<Self, Problem> {
        let launcher = PythonLauncher::new(&settings).map_err(|error| problems::internal(&error))?;
        let (worker, loaded) =
            launcher.launch().await.map_err(|error| problems::of_launch(&settings, error))?;
        let LoadReport { tools: loaded, mistakes, variables } = loaded;
        let own = variables.into_iter().filter(|(name, _)| is_secret_name(name));
        let own: Vec<Secret> = own.map(|(_, value)| Secret::new(value)).collect();
        let redactor = Redactor::new(settings.secrets.iter().chain(&own))?;
        if let Some(problem) = problems::of_mistakes(&settings, &mistakes) {
            drop(worker);
            launcher.reap_killed().await;
            return Err(redacted(&redactor, problem));
        }
        let tools: Vec<_> = settings
            .functions
            .into_iter()
            .zip(loaded)
            .filter_map(|(function, loaded)| {
                let loaded = loaded?;
                let spec = ToolSpec {
                    name: offered(&loaded.name),
                    description: loaded.description,
                    schema: loaded.schema,
                };
                Some(PythonTool { entrypoint: function.entrypoint, spec, idempotent: function.idempotent })
            })
            .collect();
        let numbers = tools.iter().enumerate().map(|(number, tool)| (tool.entrypoint.to_string(), number));
        let mut hooks: HashMap<String, [Option<usize>; HOOK_KINDS]> = HashMap::new();
        for (number, hook) in settings.hooks.into_iter().enumerate() {
            hooks.entry(hook.agent).or_default()[place(hook.kind)] = Some(number);
        }
        let numbers = numbers.collect();
        let pool = ProcessPool::new(launcher, worker, settings.processes, settings.timeout);
        Ok(Self { tools, numbers, hooks, secrets: own, redactor, pool })
    }

    /// The tools, in the order of the settings.
    #[must_use]
    pub fn tools(&self) -> &[PythonTool] {
        &self.tools
    }

    /// The values that the modules put into their environment under the name of a secret, for example from a
    /// `.env` file.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Whether an agent has a hook of this kind, so that calling it has an effect.
    #[must_use]
    pub fn has_hook(&self, agent: &str, kind: HookKind) -> bool {
        self.hook(agent, kind).is_some()
    }

    fn hook(&self, agent: &str, kind: HookKind) -> Option<usize> {
        self.hooks.get(agent).and_then(|hooks| hooks[place(kind)])
    }

    fn redact(&self, text: String) -> String {
        self.redactor.redact(&text).into_owned()
    }

    async fn call_tool(&self, request: ToolRequest<'_>) -> Result<ToolOutput, ToolFailure> {
        let Some(number) = self.numbers.get(request.tool) else {
            let message = format!("there is no function `{}`", request.tool);
            return Err(ToolFailure { message, may_have_run: false });
        };
        let arguments = request.arguments.as_bytes();
        let asked =
            self.pool.ask(request.row, (PythonRequest::Call, *number), arguments, request.timeout).await;
        let answer =
            asked.map_err(|failure| ToolFailure { message: self.redact(failure.message), ..failure })?;
        Ok(match answer.kind {
            AnswerKind::None => ToolOutput::default(),
            AnswerKind::Text | AnswerKind::Json => ToolOutput::from_text(answer.into_text()),
            AnswerKind::Bytes => output_from_bytes(answer.body, "result"),
            AnswerKind::Error => ToolOutput::error(self.redact(answer.into_text())),
        })
    }

    async fn call_hook(&self, call: HookCall<'_>) -> Result<Option<Value>, String> {
        let Some(number) = self.hook(call.agent, call.kind) else { return Ok(None) };
        let facts = wire::facts(&call).map_err(|error| error.to_string())?;
        let asked = self.pool.ask(call.row, (PythonRequest::Hook, number), &facts, None).await;
        let answer: PythonAnswer = asked.map_err(|failure| self.redact(failure.message))?;
        match answer.kind {
            AnswerKind::None => Ok(None),
            AnswerKind::Text => Ok(Some(Value::String(answer.into_text()))),
            AnswerKind::Json => {
                serde_json::from_slice(&answer.body).map(Some).map_err(|error| error.to_string())
            }
            AnswerKind::Bytes | AnswerKind::Error => Err(self.redact(answer.into_text())),
        }
    }
}

impl ToolHost for PythonToolHost {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        Box::pin(async move {
            if self.numbers.contains_key(request.tool) {
                let ready = self.pool.ready(request.row).await;
                ready.map_err(|failure| ToolFailure { message: self.redact(failure.message), ..failure })?;
            }
            Ok(ToolPermit::default())
        })
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.call_tool(request))
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.release(row))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.close())
    }
}

impl HookRunner for PythonToolHost {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(self.call_hook(call))
    }
}

/// The index of a kind among the hooks of an agent.
fn place(kind: HookKind) -> usize {
    match kind {
        HookKind::BeforeModel => 0,
        HookKind::AfterModel => 1,
        HookKind::BeforeTool => 2,
        HookKind::AfterTool => 3,
        HookKind::AfterTurn => 4,
    }
}

/// A name that providers accept: Python allows more letters than they do.
fn offered(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' };
    name.chars().take(64).map(plain).collect()
}

fn redacted(redactor: &Redactor, mut problem: Problem) -> Problem {
    problem.message = problem.message.map_text(|text| redactor.redact(text).into_owned());
    problem.cause = problem.cause.map(|cause| cause.map_text(|text| redactor.redact(text).into_owned()));
    problem
}
