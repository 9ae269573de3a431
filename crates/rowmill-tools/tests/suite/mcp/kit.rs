//! Helpers of the tests.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_tools::{McpHost, McpServerSettings, McpSettings, McpTransport};
use rowmill_types::{Problem, ToolOutput};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// The environment of the tests' servers: what is needed to find Python and Node.
pub(crate) fn environment(name: &str) -> Option<String> {
    match name {
        "PATH" => Some(env!("PATH").to_owned()),
        "HOME" => Some("/nonexistent".to_owned()),
        _ => None,
    }
}

pub(crate) fn settings() -> McpSettings {
    McpSettings::new(32, &environment)
}

/// A server that is a process.
pub(crate) fn process(name: &str, words: &[&str]) -> McpServerSettings {
    let (command, args) = words.split_first().unwrap();
    let args = args.iter().map(|word| (*word).to_owned()).collect();
    let transport =
        McpTransport::Stdio { command: (*command).to_owned(), args, env: BTreeMap::new(), cwd: None };
    McpServerSettings::new(name, transport)
}

/// The test server, called `t`.
pub(crate) fn ours(flags: &[&str]) -> McpServerSettings {
    let words = rowmill_testkit::mcp_server();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(flags.iter().copied()).collect();
    process("t", &words)
}

pub(crate) async fn start(server: McpServerSettings) -> McpHost {
    McpHost::start(vec![server], settings()).await.unwrap()
}

/// The problem that a failed start reports, as a user sees it.
pub(crate) async fn problem(servers: Vec<McpServerSettings>) -> Problem {
    McpHost::start(servers, settings()).await.unwrap_err()
}

/// A call of a tool of the server `t`.
pub(crate) async fn call(
    mcp: &McpHost,
    row: u64,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolFailure> {
    let name = format!("t__{tool}");
    let idempotent = mcp.tools().iter().any(|offered| offered.host_name == name && offered.idempotent);
    let arguments = arguments.to_string();
    mcp.call(ToolRequest {
        row,
        id: &rowmill_types::RowId::Number(0),
        key: "key",
        tool: &name,
        arguments: &arguments,
        idempotent,
        timeout: None,
    })
    .await
}

/// The text of a successful call.
pub(crate) async fn text(mcp: &McpHost, row: u64, tool: &str, arguments: Value) -> String {
    let output = call(mcp, row, tool, arguments).await.unwrap();
    assert!(!output.is_error, "{output:?}");
    output.text
}

/// The events that the test server reports.
pub(crate) struct Events {
    listener: TcpListener,
    port: String,
}

impl Events {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        Self { listener, port }
    }

    /// The flags that make a server report events.
    pub(crate) fn flags(&self) -> [&str; 2] {
        ["--notify", &self.port]
    }

    pub(crate) async fn next(&self) -> String {
        let (mut connection, _) = self.listener.accept().await.unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).await.unwrap();
        text
    }

    /// The number of the process in the next event, as in `started 123` or `child 123`.
    pub(crate) async fn process(&self, what: &str) -> u32 {
        let event = self.next().await;
        let (word, number) = event.split_once(' ').unwrap();
        assert_eq!(word, what, "{event}");
        number.parse().unwrap()
    }
}

/// The test server over HTTP, in a process that the tests start.
pub(crate) struct Network {
    pub(crate) url: String,
    child: Child,
}

impl Network {
    pub(crate) async fn new(flags: &[&str]) -> Self {
        Self::at(0, flags).await
    }

    pub(crate) async fn at(port: u16, flags: &[&str]) -> Self {
        let words = rowmill_testkit::mcp_server();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("--http").arg(port.to_string()).args(flags);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).await.unwrap();
        Self { url: url.trim().to_owned(), child }
    }

    pub(crate) fn port(&self) -> u16 {
        let (_, rest) = self.url.rsplit_once(':').unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    pub(crate) fn server(&self) -> McpServerSettings {
        let transport = McpTransport::Http { url: self.url.clone(), headers: BTreeMap::new(), auth: None };
        McpServerSettings::new("t", transport)
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Whether a process exists and is not a zombie.
pub(crate) fn alive(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit(')').next().unwrap().trim_start();
    !state.starts_with(['Z', 'X'])
}

/// Waits until a process is gone. It was killed, so this is only a matter of scheduling.
pub(crate) async fn gone(process: u32) {
    let waiting = async {
        while alive(process) {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(20);
    assert!(tokio::time::timeout(limit, waiting).await.is_ok(), "process {process} is still there");
}

pub(crate) fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}
