//! The protocol with a Python process: a line of JSON with the kind and the length, followed by that many
//! bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use rowmill_core::ports::{HookCall, HookKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::python::settings::{
    Entrypoint, ProcessMoment, PythonFunctionTool, PythonLifecycleHook, PythonSettings,
};

/// The program of processes that call functions.
pub(super) const PROGRAM: &str = concat!(
    include_str!("../program/pipe.py"),
    include_str!("../program/docstrings.py"),
    include_str!("../program/types.py"),
    include_str!("../program/function.py"),
    include_str!("../program/worker.py"),
);

/// The program of processes that check answers with a model.
pub(super) const MODEL_PROGRAM: &str =
    concat!(include_str!("../program/pipe.py"), include_str!("../program/schema_model.py"));

/// An upper bound of the bytes in an answer.
const MOST_ANSWER: usize = 65 << 20;
/// An upper bound of the bytes in the line before an answer.
const MOST_HEAD: u64 = 4096;

/// The kind of a request.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PythonRequest {
    /// Import the functions.
    Load,
    /// Call a tool, by its number.
    Call,
    /// Call a hook, by its number.
    Hook,
    /// Call the last hooks and end.
    Shutdown,
}

/// The line before a request.
#[derive(Serialize)]
struct RequestHead {
    #[serde(rename = "do")]
    ask: PythonRequest,
    index: usize,
    size: usize,
}

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnswerKind {
    /// Nothing was returned.
    None,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
    /// JSON text.
    Json,
    /// The function failed; the text is the error.
    Error,
}

#[derive(Deserialize)]
struct AnswerHead {
    kind: AnswerKind,
    size: usize,
}

/// An answer.
#[derive(Debug)]
pub(super) struct PythonAnswer {
    pub(super) kind: AnswerKind,
    pub(super) body: Vec<u8>,
}

impl PythonAnswer {
    /// The body as text. The program sends UTF-8 for every kind except bytes.
    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.body)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Sends a request.
pub(super) async fn send(
    pipe: &mut (impl AsyncWrite + Unpin),
    ask: PythonRequest,
    index: usize,
    body: &[u8],
) -> io::Result<()> {
    let mut head = serde_json::to_vec(&RequestHead { ask, index, size: body.len() })?;
    head.push(b'\n');
    pipe.write_all(&head).await?;
    pipe.write_all(body).await?;
    pipe.flush().await
}

/// Waits for an answer.
pub(super) async fn receive(pipe: &mut (impl AsyncBufRead + Unpin)) -> io::Result<PythonAnswer> {
    let mut line = Vec::new();
    (&mut *pipe).take(MOST_HEAD).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let head: AnswerHead = serde_json::from_slice(&line)?;
    if head.size > MOST_ANSWER {
        return Err(io::Error::other("the answer is too long"));
    }
    let mut body = vec![0; head.size];
    pipe.read_exact(&mut body).await?;
    Ok(PythonAnswer { kind: head.kind, body })
}

#[derive(Serialize)]
struct LoadPlan<'a> {
    functions: Vec<PlannedFunction<'a>>,
    hooks: Vec<PlannedFunction<'a>>,
    lifecycle: Vec<PlannedFunction<'a>>,
}

#[derive(Serialize)]
struct PlannedFunction<'a> {
    file: Cow<'a, str>,
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<&'a str>,
}

impl<'a> PlannedFunction<'a> {
    fn of(entrypoint: &'a Entrypoint) -> Self {
        let file = entrypoint.file.to_string_lossy();
        Self { file, function: &entrypoint.function, code: None, agent: None, when: None }
    }
}

/// The body of the first request: what a process imports.
pub(super) fn plan(settings: &PythonSettings) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&LoadPlan {
        functions: settings.functions.iter().map(function).collect(),
        hooks: settings.hooks.iter().map(|hook| PlannedFunction::of(&hook.entrypoint)).collect(),
        lifecycle: settings.lifecycle.iter().map(moment).collect(),
    })
}

fn function(tool: &PythonFunctionTool) -> PlannedFunction<'_> {
    PlannedFunction { code: tool.code_argument.as_deref(), ..PlannedFunction::of(&tool.entrypoint) }
}

fn moment(hook: &PythonLifecycleHook) -> PlannedFunction<'_> {
    let when = match hook.moment {
        ProcessMoment::Start => "on_start",
        ProcessMoment::Shutdown => "on_shutdown",
    };
    PlannedFunction { agent: Some(&hook.agent), when: Some(when), ..PlannedFunction::of(&hook.entrypoint) }
}

/// The content of the first answer.
#[derive(Debug, Deserialize)]
pub(super) struct LoadReport {
    /// A tool for each function; `None` if it has a mistake.
    pub(super) tools: Vec<Option<LoadedTool>>,
    /// The mistakes.
    pub(super) mistakes: Vec<FunctionMistake>,
    /// Variables that the modules set in their process.
    pub(super) variables: BTreeMap<String, String>,
}

/// A function, as Python sees it.
#[derive(Debug, Deserialize)]
pub(super) struct LoadedTool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) schema: serde_json::Value,
}

/// The kind of function that a mistake is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MistakeKind {
    Function,
    Hook,
    Lifecycle,
}

/// A mistake in a function.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionMistake {
    pub(super) kind: MistakeKind,
    /// Its index among the functions of its kind, in the order of the settings.
    pub(super) index: usize,
    /// The mistake, in one line.
    #[serde(rename = "what")]
    pub(super) message: String,
    /// The traceback locations of an exception; may be empty.
    #[serde(rename = "where")]
    pub(super) places: String,
}

/// The facts that a hook receives.
#[derive(Serialize)]
struct HookFacts<'a> {
    hook_type: &'static str,
    agent_name: &'a str,
    row_number: u64,
    turn: u32,
    text: Option<&'a str>,
    tool_name: Option<&'a Value>,
    arguments: Option<&'a Value>,
    result: Option<&'a Value>,
    is_error: bool,
}

/// The body of a request for a hook.
pub(super) fn facts(call: &HookCall<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let part = |name: &str| call.about.get(name);
    serde_json::to_vec(&HookFacts {
        hook_type: hook_name(call.kind),
        agent_name: call.agent,
        row_number: call.row,
        turn: call.turn,
        text: call.about.as_str(),
        tool_name: part("name"),
        arguments: part("arguments"),
        result: part("result"),
        is_error: part("is_error").and_then(Value::as_bool).unwrap_or_default(),
    })
}

/// The name of a hook, as cards spell it.
pub(super) fn hook_name(kind: HookKind) -> &'static str {
    match kind {
        HookKind::BeforeModel => "before_llm_call",
        HookKind::AfterModel => "after_llm_call",
        HookKind::BeforeTool => "before_tool_call",
        HookKind::AfterTool => "after_tool_call",
        HookKind::AfterTurn => "after_turn_complete",
    }
}
