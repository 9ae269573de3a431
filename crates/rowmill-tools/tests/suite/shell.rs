//! Commands run in their own process groups and leave nothing behind.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rowmill_core::ports::{ToolHost, ToolRequest};
use rowmill_tools::ShellHost;
use rowmill_types::{ProblemCode, ToolOutput};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

fn environment(name: &str) -> Option<String> {
    match name {
        "PATH" => Some("/usr/local/bin:/usr/bin:/bin".to_owned()),
        "HOME" => Some("/nowhere".to_owned()),
        "PLANTED_API_KEY" => Some("sk-planted".to_owned()),
        _ => None,
    }
}

fn shell(folder: &Path) -> ShellHost {
    ShellHost::new(folder.into(), Duration::from_secs(60), &environment).unwrap()
}

fn request(arguments: &str) -> ToolRequest<'_> {
    ToolRequest {
        row: 1,
        id: &rowmill_types::RowId::Number(1),
        key: "k",
        tool: "execute",
        arguments,
        idempotent: false,
        timeout: None,
    }
}

async fn run(shell: &ShellHost, arguments: Value) -> ToolOutput {
    shell.call(request(&arguments.to_string())).await.unwrap()
}

#[tokio::test]
async fn a_command_gives_its_exit_code_and_both_streams() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("here.txt"), "grün\n").unwrap();
    let shell = shell(folder.path());
    let cases = [
        ("cat here.txt", "exit code: 0\n--- stdout\ngrün", false),
        ("echo out; echo err >&2; exit 3", "exit code: 3\n--- stdout\nout\n--- stderr\nerr", true),
        ("true", "exit code: 0", false),
        ("kill -9 $$", "ended by signal: 9 (SIGKILL)", true),
        ("cat", "exit code: 0", false),
        ("echo \"$HOME ${PLANTED_API_KEY-none}\"", "exit code: 0\n--- stdout\n/nowhere none", false),
    ];
    for (command, text, is_error) in cases {
        let output = run(&shell, json!({"command": command})).await;
        assert_eq!((output.text.as_str(), output.is_error), (text, is_error), "{command}");
    }
    assert!(run(&shell, json!({"cmd": "x"})).await.text.starts_with("wrong arguments: "));
    shell.close().await;
}

#[tokio::test]
async fn a_long_output_loses_its_middle_and_says_so() {
    let folder = TempDir::new().unwrap();
    let shell = shell(folder.path());
    let command = "echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last";
    let text = run(&shell, json!({"command": command})).await.text;
    assert!(text.len() < 66_000, "{}", text.len());
    assert!(text.contains("--- stdout\nfirst\nxxx") && text.ends_with("xxx\nlast"));
    assert!(text.contains(&format!("\n[{} bytes left out here]\n", 1_000_012 - 65_536)));
}

/// A command that reports that it runs, with a child that would hold the connection.
fn hanging(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo running; sleep 1000 & wait")
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_with_everything_that_it_started() {
    let folder = TempDir::new().unwrap();
    let shell = ShellHost::new(folder.path().into(), Duration::from_secs(2), &environment).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let command = hanging(listener.local_addr().unwrap().port());
    let call = run(&shell, json!({"command": command, "timeout_seconds": 1000}));
    let (output, connection) = tokio::join!(call, listener.accept());
    assert!(output.is_error);
    assert_eq!(output.text, "stopped after 2 s: it took too long\n--- stdout\nrunning");
    drop(connection.unwrap().0.read_to_end(&mut Vec::new()).await);
}

#[tokio::test]
async fn a_command_that_is_given_up_or_outlives_the_run_is_ended() {
    let folder = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let arguments = json!({"command": hanging(listener.local_addr().unwrap().port())}).to_string();
    for is_dropped in [true, false] {
        let shell = shell(folder.path());
        let mut call = shell.call(request(&arguments));
        let mut connection = tokio::select! {
            _ = &mut call => panic!("it hangs"),
            arrived = listener.accept() => arrived.unwrap().0,
        };
        if is_dropped {
            drop(call);
        } else {
            shell.close().await;
        }
        drop(connection.read_to_end(&mut Vec::new()).await);
    }
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let folder = TempDir::new().unwrap();
    let shell = shell(folder.path());
    let output = run(&shell, json!({"command": "sleep 1000 & echo done"})).await;
    assert_eq!(output.text, "exit code: 0\n--- stdout\ndone");
}

/// A command that starts another one in its own session, and ends once that one reports.
fn starts_a_session(how: &str, command: &str) -> String {
    format!(
        "mkfifo there; {how} setsid bash -c '{command}; echo > there; exec sleep 1000' & cat there; echo $!"
    )
}

#[tokio::test]
async fn a_process_in_a_session_of_its_own_ends_with_the_call() {
    let folder = TempDir::new().unwrap();
    let shell = ShellHost::new(folder.path().into(), Duration::from_secs(20), &environment).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let call = run(&shell, json!({"command": starts_a_session("", &connect)}));
    let (output, connection) = tokio::join!(call, listener.accept());
    assert!(output.text.starts_with("exit code: 0\n"), "{}", output.text);
    let mut connection = connection.unwrap().0;
    let (mut rest, patience) = (Vec::new(), Duration::from_secs(20));
    let gone = tokio::time::timeout(patience, connection.read_to_end(&mut rest)).await;
    assert!(gone.is_ok(), "it goes on after the call");
}

#[tokio::test]
async fn a_call_ends_although_a_process_that_hides_where_it_came_from_holds_its_pipe() {
    let folder = TempDir::new().unwrap();
    let shell = ShellHost::new(folder.path().into(), Duration::from_secs(20), &environment).unwrap();
    let hidden = starts_a_session("env -i PATH=$PATH", "true");
    let output = run(&shell, json!({"command": hidden})).await;
    let process = output.text.lines().last().and_then(|line| line.parse().ok());
    let is_there = process.and_then(Pid::from_raw).map(|process| kill_process(process, Signal::KILL));
    assert!(output.text.starts_with("exit code: 0\n"), "{}", output.text);
    assert!(matches!(is_there, Some(Ok(()))), "it went on: {}", output.text);
}

#[test]
fn a_missing_folder_is_a_problem() {
    let problem = ShellHost::new("/no/such/folder".into(), Duration::from_secs(1), &environment).unwrap_err();
    assert_eq!(problem.code, ProblemCode::ShellUnusable);
    assert_eq!(problem.message, "the working folder for shell commands does not exist: `/no/such/folder`");
}
