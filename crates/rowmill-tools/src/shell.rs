//! The shell as a tool.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_types::{Problem, ProblemCode, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::inherited_variables::inherited_variables;
use crate::process_group::{ProcessGroup, ProcessReaper};
use crate::unknown_tool::unknown_tool_failure;

/// The name of the tool.
const TOOL: &str = "execute";
/// The environment variables that commands inherit, besides those that every process gets.
const ENVIRONMENT: &[&str] = &["VIRTUAL_ENV"];
/// How much of the start, and how much of the end, of a long output is kept.
const KEPT: usize = 32 << 10;
/// How long to wait for the last output of a shell that has ended; it is available at once, unless another
/// process holds the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs commands, each in its own process group, which ends with the call.
#[derive(Debug)]
pub struct ShellHost {
    program: PathBuf,
    folder: PathBuf,
    timeout: Duration,
    environment: Vec<(&'static str, String)>,
    reaper: ProcessReaper,
}

impl ShellHost {
    /// A shell that works in `folder`. A command may run for `timeout`, or less if the model says so. It
    /// inherits only environment variables that are not secret.
    ///
    /// # Errors
    ///
    /// The folder is missing.
    pub fn new(
        folder: PathBuf,
        timeout: Duration,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Problem> {
        if !folder.is_dir() {
            let message =
                format!("the working folder for shell commands does not exist: `{}`", folder.display());
            return Err(Problem::new(ProblemCode::ShellUnusable, message)
                .hint("create it, or set another one with `cwd` in the card"));
        }
        let path = environment("PATH").unwrap_or_default();
        let bash = std::env::split_paths(&path).map(|folder| folder.join("bash")).find(|file| file.is_file());
        let environment = inherited_variables(ENVIRONMENT, environment).collect();
        let program = bash.unwrap_or_else(|| Path::new("/bin/sh").to_owned());
        Ok(Self { program, folder, timeout, environment, reaper: ProcessReaper::default() })
    }

    /// The description of the tool for models.
    #[must_use]
    pub fn spec(&self) -> ToolSpec {
        let seconds = self.timeout.as_secs().max(1);
        let timeout = format!("The longest that it may take; {seconds} unless given, and at most that.");
        let description = "Runs a command in a shell and gives its exit code and its output. Every call \
                           starts in the same folder with a new shell; nothing that it starts goes on after it.";
        ToolSpec {
            name: TOOL.to_owned(),
            description: Some(description.to_owned()),
            schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command line."},
                    "timeout_seconds": {"type": "integer", "minimum": 1, "description": timeout},
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        }
    }

    async fn execute(&self, arguments: &str, most: Duration) -> Result<ToolOutput, ToolFailure> {
        let ShellArguments { command, timeout_seconds } = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(ToolOutput::error(format!("wrong arguments: {error}"))),
        };
        let timeout = timeout_seconds.map_or(most, Duration::from_secs).min(most);
        let unasked = |error: std::io::Error| ToolFailure {
            message: format!("`{}` could not be started: {error}", self.program.display()),
            may_have_run: false,
        };
        let mut process = Command::new(&self.program);
        process.arg("-c").arg(command).current_dir(&self.folder);
        process.env_clear().envs(self.environment.iter().map(|(name, value)| (*name, value)));
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::start(&mut process, &self.reaper).map_err(unasked)?;
        let pipes = group.child().map(|child| (child.stdout.take(), child.stderr.take()));
        let (stdout, stderr) = pipes.unwrap_or_default();
        let (mut out, mut err) = (OutputExcerpt::default(), OutputExcerpt::default());
        let work = async {
            let streams = pin!(async { tokio::join!(out.read(stdout), err.read(stderr)) });
            match select(pin!(group.wait_for_end()), streams).await {
                Either::Left((status, streams)) => {
                    // Everything that the shell started has ended with it, so the pipes are closed, unless
                    // they are held by a process that removed its mark.
                    drop(tokio::time::timeout(LAST_WORDS, streams).await);
                    status
                }
                Either::Right((_, ended)) => ended.await,
            }
        };
        let ended = tokio::time::timeout(timeout, work).await;
        group.kill_and_wait().await;
        let status = match ended {
            Ok(status) => CommandEnd::By(status),
            Err(_) => CommandEnd::Stopped(timeout),
        };
        Ok(output(status, &out, &err))
    }
}

impl ToolHost for ShellHost {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        if request.tool != TOOL {
            return Box::pin(std::future::ready(Err(unknown_tool_failure(request.tool))));
        }
        Box::pin(self.execute(request.arguments, request.timeout.unwrap_or(self.timeout)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.reaper.reap_all())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArguments {
    command: String,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

enum CommandEnd {
    By(Option<ExitStatus>),
    Stopped(Duration),
}

fn output(ended: CommandEnd, out: &OutputExcerpt, err: &OutputExcerpt) -> ToolOutput {
    let (mut text, is_error) = match ended {
        CommandEnd::By(Some(status)) => match status.code() {
            Some(code) => (format!("exit code: {code}"), code != 0),
            None => (format!("ended by {status}"), true),
        },
        CommandEnd::By(None) => ("it is not known how it ended".to_owned(), true),
        CommandEnd::Stopped(after) => {
            (format!("stopped after {} s: it took too long", after.as_secs_f64()), true)
        }
    };
    for (name, stream) in [("stdout", out), ("stderr", err)] {
        if stream.total > 0 {
            text.push_str(&format!("\n--- {name}\n{}", stream.text().trim_end_matches('\n')));
        }
    }
    ToolOutput { text, is_error, ..ToolOutput::default() }
}

/// A stream whose start and end are kept.
#[derive(Default)]
struct OutputExcerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: usize,
}

impl OutputExcerpt {
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let chunk = buffer.get(..count).unwrap_or_default();
            let (first, rest) = chunk.split_at(count.min(KEPT - self.head.len()));
            self.head.extend_from_slice(first);
            self.tail.extend(rest);
            let over = self.tail.len().saturating_sub(KEPT);
            self.tail.drain(..over);
            self.total += count;
        }
    }

    /// The text, without characters that the cut went through.
    fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        let left_out = self.total - self.head.len() - self.tail.len();
        if left_out == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let tail = [front, back].concat();
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        let (head, tail) = (head.trim_end_matches('\u{FFFD}'), tail.trim_start_matches('\u{FFFD}'));
        format!("{head}\n[{left_out} bytes left out here]\n{tail}")
    }
}
