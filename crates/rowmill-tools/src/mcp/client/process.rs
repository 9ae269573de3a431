//! The process of a server, and everything that it starts.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rowmill_types::Secret;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, test_kill_process_group, waitid,
};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::tail::OutputTail;
use crate::mcp::server::McpTransport;
use crate::process_group::with_remedy;
use crate::survivors::ProcessMark;

/// How long a server may take to end after its standard input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// How long it may take after it received the signal to terminate.
const LAST_GRACE: Duration = Duration::from_secs(1);
/// How long to wait until killed processes are gone.
const REAP_TIMEOUT: Duration = Duration::from_millis(300);
/// How long reading the rest of a server's output may take.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest interval between two checks of a process.
const LOOK: Duration = Duration::from_millis(20);

/// A process that leads its own group, so that everything it starts ends with it. Dropping it kills the
/// group.
///
/// The process is not reaped before its group has been killed: as long as it exists, at least as a zombie,
/// its number cannot be reused by another process.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    group: Option<Pid>,
    mark: Option<ProcessMark>,
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
        ready.process_group(0).kill_on_drop(true);
        let mark = ProcessMark::put_on(&mut ready);
        let mut child = ready.spawn().map_err(with_remedy)?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stderr, mut reading) = (OutputTail::default(), JoinSet::new());
        let (Some(stdin), Some(stdout), Some(printed)) = pipes else {
            return Err(io::Error::other("the server has no pipes"));
        };
        reading.spawn(keep_lines(printed, stderr.clone()));
        Ok((Self { child, group, mark: Some(mark), stderr, reading }, stdin, stdout))
    }

    /// Stops it: its standard input must already be closed. It gets a short time to end by itself, then a
    /// signal to terminate, and is then killed with everything that it started.
    pub(super) async fn end(&mut self) {
        self.wait_until(Instant::now() + GRACE).await;
        self.signal(Signal::TERM);
        self.wait_until(Instant::now() + LAST_GRACE).await;
        self.kill_and_reap().await;
    }

    /// Kills it with everything that it started, and waits until all of it is gone.
    pub(super) async fn kill_and_reap(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mark) = self.mark.take() {
            // Looking for what left the group takes a while, and others have calls to look after meanwhile.
            drop(tokio::task::spawn_blocking(move || mark.end_processes()).await);
        }
        // Why waiting failed does not matter: there is nothing left to wait for then.
        drop(self.child.wait().await);
        let Some(group) = self.group.take() else { return };
        let until = Instant::now() + REAP_TIMEOUT;
        while test_kill_process_group(group).is_ok() && Instant::now() < until {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// How it ended, if it has ended or is about to.
    pub(super) async fn exit_description(&self) -> Option<String> {
        let status = self.wait_until(Instant::now() + LAST_OUTPUT_TIMEOUT).await?;
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

    async fn wait_until(&self, until: Instant) -> Option<WaitIdStatus> {
        let mut pause = Duration::from_millis(1);
        loop {
            let status = self.status();
            if status.is_some() || self.group.is_none() || Instant::now() >= until {
                return status;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK);
        }
    }

    /// Its exit status, without reaping it.
    fn status(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.group?), options).ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only if nothing is left to signal.
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mark) = self.mark.take() {
            mark.end_processes();
        }
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
