//! A command of the user that gets something on its standard input.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::process_group::{ProcessGroup, ProcessReaper};

/// The shell that runs the command.
const SHELL: &str = "/bin/sh";

/// Why a command did not do what it was to do.
#[derive(Debug)]
pub enum CommandFailure {
    /// It could not be started.
    NotStarted(std::io::Error),
    /// It ended with this exit code; `None` if a signal ended it.
    Failed(Option<i32>),
    /// It had not ended after this time, and was ended.
    TimedOut(Duration),
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(error) => write!(out, "it could not be started: {error}"),
            Self::Failed(Some(code)) => write!(out, "it ended with exit code {code}"),
            Self::Failed(None) => out.write_str("it was ended by a signal"),
            Self::TimedOut(limit) => write!(out, "it had not ended after {} s", limit.as_secs_f64()),
        }
    }
}

impl std::error::Error for CommandFailure {}

/// Runs a command in a shell with `input` on its standard input, and waits until it has ended, but no longer than
/// `limit`. Nothing that it started goes on after it. Its standard output is discarded, and its standard error is that of
/// this process.
///
/// # Errors
///
/// It could not be started, did not succeed, or did not end in time.
pub async fn run_command_with_input(
    command: &str,
    input: &[u8],
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    limit: Duration,
) -> Result<(), CommandFailure> {
    let reaper = ProcessReaper::default();
    let mut process = Command::new(Path::new(SHELL));
    process.arg("-c").arg(command).env_clear().envs(environment);
    process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut group = ProcessGroup::start(&mut process, &reaper).map_err(CommandFailure::NotStarted)?;
    let stdin = group.child().and_then(|child| child.stdin.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A command need not read its input.
            drop(stdin.write_all(input).await);
        }
    };
    let ended = tokio::time::timeout(limit, async {
        let ((), status) = join(write, group.wait_for_end()).await;
        status
    });
    let ended = ended.await;
    group.kill_and_wait().await;
    reaper.reap_all().await;
    match ended {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(status) => Err(CommandFailure::Failed(status.and_then(|status| status.code()))),
        Err(_) => Err(CommandFailure::TimedOut(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    async fn run(command: &str, input: &[u8], limit: Duration) -> Result<(), String> {
        let path = [("PATH".into(), "/usr/bin:/bin".into())];
        run_command_with_input(command, input, path, limit).await.map_err(|failure| failure.to_string())
    }

    #[tokio::test]
    async fn a_command_gets_its_input_and_the_environment_that_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("input");
        run(&format!("cat > {0}; env | wc -l >> {0}", file.display()), b"hello\n", LONG).await.unwrap();
        let received = std::fs::read_to_string(file).unwrap();
        assert!(received.starts_with("hello\n") && received.lines().count() == 2, "{received}");
    }

    #[tokio::test]
    async fn a_command_need_not_read_its_input() {
        let much = vec![b'x'; 1 << 20];
        assert_eq!(run("true", &much, LONG).await, Ok(()));
        assert_eq!(run("exit 7", &much, LONG).await, Err("it ended with exit code 7".into()));
    }

    #[tokio::test]
    async fn a_command_that_goes_on_too_long_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ids");
        let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let limit = Duration::from_millis(500);
        assert_eq!(run(&command, b"", limit).await, Err("it had not ended after 0.5 s".into()));
        let child = std::fs::read_to_string(file).unwrap();
        let gone = async {
            // It was killed, so this is only a matter of scheduling.
            while goes_on(child.trim()) {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(LONG, gone).await.is_ok(), "the child goes on");
    }

    /// Whether a process exists and is not a zombie: whoever adopts it may be slow to take in that it has ended.
    fn goes_on(process: &str) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with(['Z', 'X'])
    }
}
