//! One Python process.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::wire::{self, PythonAnswer, PythonRequest};
use crate::process_group::ProcessGroup;

/// How much of a process's standard error is kept for messages.
const TAIL_BYTES: usize = 2048;
/// How long to wait for the last output of a dead process; it is available at once, unless a process that
/// left the group holds the pipe.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A Python process that has imported the functions. Dropping it kills it and what it started.
#[derive(Debug)]
pub(super) struct PythonProcess {
    group: ProcessGroup,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: ChildStderr,
    tail: ErrorTail,
}

impl PythonProcess {
    /// Takes over a process with three pipes.
    pub(super) fn new(mut group: ProcessGroup) -> io::Result<Self> {
        let pipes = group.child().and_then(|child| {
            let streams = (child.stdin.take()?, child.stdout.take()?, child.stderr.take()?);
            Some(streams)
        });
        let (input, output, errors) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { group, input, output: BufReader::new(output), errors, tail: ErrorTail::default() })
    }

    /// The process, unless it has ended while it was idle.
    pub(super) fn if_alive(mut self) -> Option<Self> {
        (!self.group.has_exited()).then_some(self)
    }

    /// Sends a request and waits. After an error, or if the future was dropped, the process can no longer be
    /// used.
    ///
    /// The functions' output is read at the same time, because a full pipe would block them.
    pub(super) async fn request(
        &mut self,
        ask: PythonRequest,
        index: usize,
        body: &[u8],
    ) -> Result<PythonAnswer, String> {
        let Self { group, input, output, errors, tail } = self;
        let talk = async {
            wire::send(input, ask, index, body).await?;
            wire::receive(output).await
        };
        let answer = tokio::select! {
            biased;
            answer = talk => answer,
            () = tail.follow(errors) => Err(io::ErrorKind::UnexpectedEof.into()),
            _ = group.wait_for_end() => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.died(&error).await),
        }
    }

    /// Ends the process after its `on_shutdown` hooks, or without them if they take too long.
    pub(super) async fn finish(mut self, timeout: Duration) {
        let shutdown = async {
            if self.request(PythonRequest::Shutdown, 0, b"").await.is_ok() {
                self.group.wait_for_end().await;
            }
        };
        // Whether it ended by itself or not, it is killed now.
        drop(tokio::time::timeout(timeout, shutdown).await);
        self.group.kill_and_wait().await;
    }

    /// How the process ended, with its last output.
    async fn died(&mut self, error: &io::Error) -> String {
        if !matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe) {
            return format!("unexpected output of the Python process: {error}");
        }
        let Self { group, errors, tail, .. } = self;
        let words = async { tokio::join!(group.wait_for_end(), tail.read_out(errors)).0 };
        let status = match tokio::time::timeout(LAST_OUTPUT_TIMEOUT, words).await {
            Ok(Some(status)) => status.to_string(),
            Ok(None) | Err(_) => "unknown exit status".to_owned(),
        };
        match tail.text() {
            words if words.is_empty() => format!("the Python process exited ({status})"),
            words => format!("the Python process exited ({status}); its last output: {words}"),
        }
    }
}

/// The end of a process's standard error.
#[derive(Debug, Default)]
struct ErrorTail(VecDeque<u8>);

impl ErrorTail {
    /// Keeps reading, and never ends: a closed pipe says nothing about the process.
    async fn follow(&mut self, errors: &mut ChildStderr) {
        self.read_out(errors).await;
        std::future::pending::<()>().await;
    }

    /// Reads until the pipe is closed.
    async fn read_out(&mut self, errors: &mut ChildStderr) {
        let mut buffer = [0; TAIL_BYTES];
        while let Ok(count @ 1..) = errors.read(&mut buffer).await {
            self.0.extend(buffer.iter().take(count));
            let over = self.0.len().saturating_sub(TAIL_BYTES);
            self.0.drain(..over);
        }
    }

    /// Its last lines.
    fn text(&self) -> String {
        let (front, back) = self.0.as_slices();
        let text = String::from_utf8_lossy(&[front, back].concat()).into_owned();
        let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines.get(lines.len().saturating_sub(4)..).unwrap_or_default().join(" / ")
    }
}
