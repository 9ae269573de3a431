//! The process of a server.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rowmill_types::Secret;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use super::tail::OutputTail;
use crate::mcp::server::McpTransport;
use crate::process_group::{ProcessGroup, ProcessReaper};

/// How long a server may take to end after its standard input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// How long it may take after it received the signal to terminate.
const LAST_GRACE: Duration = Duration::from_secs(1);
/// How long reading the rest of a server's output may take.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// The process of a server. Dropping it kills it, and everything that it started.
#[derive(Debug)]
pub(super) struct ServerProcess {
    group: ProcessGroup,
    stderr: OutputTail,
    /// The task that reads the server's standard error.
    reading: JoinSet<()>,
}

impl ServerProcess {
    /// Starts it with the variables in `inherited` and its own, and no others.
    pub(super) fn start(
        transport: &McpTransport,
        inherited: &BTreeMap<String, String>,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let McpTransport::Stdio { command, args, env, cwd } = transport else {
            return Err(io::Error::other("the server is no process"));
        };
        let mut ready = Command::new(command);
        ready.args(args).env_clear().envs(inherited);
        ready.envs(env.iter().map(|(name, value)| (name, Secret::reveal(value))));
        if let Some(folder) = cwd {
            ready.current_dir(folder);
        }
        ready.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ProcessGroup::start(&mut ready, &ProcessReaper::default())?;
        let pipes = group.child().map(|child| (child.stdin.take(), child.stdout.take(), child.stderr.take()));
        let Some((Some(stdin), Some(stdout), Some(printed))) = pipes else {
            return Err(io::Error::other("the server has no pipes"));
        };
        let (stderr, mut reading) = (OutputTail::default(), JoinSet::new());
        reading.spawn(keep_lines(printed, stderr.clone()));
        Ok((Self { group, stderr, reading }, stdin, stdout))
    }

    /// Stops it: its standard input must already be closed. It gets a short time to end by itself, then a
    /// signal to terminate, and is then killed with everything that it started.
    pub(super) async fn end(&mut self) {
        self.group.end_within(GRACE).await;
        self.group.terminate();
        self.group.end_within(LAST_GRACE).await;
        self.kill_and_reap().await;
    }

    /// Kills it with everything that it started, and waits until all of it is gone.
    pub(super) async fn kill_and_reap(&mut self) {
        self.group.kill_and_wait_for_all().await;
    }

    /// How it ended, if it has ended or is about to.
    pub(super) async fn exit_description(&self) -> Option<String> {
        let status = self.group.end_within(LAST_OUTPUT_TIMEOUT).await?;
        Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was terminated by signal {signal}"),
            (None, None) => "it exited".to_owned(),
        })
    }

    /// Its last output on standard error, including what is still in the pipe.
    pub(super) async fn last_output(&mut self) -> Option<String> {
        let rest = async { while self.reading.join_next().await.is_some() {} };
        // Whatever was read by then is shown; a grandchild may hold the pipe open.
        drop(tokio::time::timeout(LAST_OUTPUT_TIMEOUT, rest).await);
        self.stderr.text()
    }
}

async fn keep_lines(printed: impl AsyncRead + Unpin, tail: OutputTail) {
    let mut reader = BufReader::new(printed);
    let mut line = Vec::new();
    loop {
        let Ok(available) = reader.fill_buf().await else { return };
        if available.is_empty() {
            tail.push(&line);
            return;
        }
        let newline = memchr::memchr(b'\n', available);
        let part = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
        // No more of a line is kept than the tail shows.
        line.extend_from_slice(
            part.get(..part.len().min(1024_usize.saturating_sub(line.len()))).unwrap_or(part),
        );
        let length = part.len() + usize::from(newline.is_some());
        reader.consume(length);
        if newline.is_some() {
            tail.push(&line);
            line.clear();
        }
    }
}
