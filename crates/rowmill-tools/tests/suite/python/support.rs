//! A folder with Python files, and calls of their functions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_tools::{Entrypoint, PythonFunctionTool, PythonSettings, PythonToolHost};
use rowmill_types::{Problem, ToolOutput};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

/// The interpreter itself, not a launcher that searches for it at every start.
pub(crate) fn interpreter() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let script = "import sys; print(sys.executable)";
        let output = Command::new("python3").args(["-c", script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().into()
    };
    FOUND.get_or_init(find).clone()
}

/// An interpreter that has pydantic.
pub(crate) fn with_pydantic() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let output = Command::new(&python).args(["-c", "import pydantic"]).output();
    assert!(
        output.is_ok_and(|output| output.status.success()),
        "pydantic is missing in `.venv`: run `bash scripts/prepare-python` first"
    );
    python
}

pub(crate) struct Folder {
    pub(crate) path: TempDir,
    pub(crate) settings: PythonSettings,
}

/// A folder with `tools.py`, and settings that name these of its functions.
pub(crate) fn folder(code: &str, functions: &[&str]) -> Folder {
    let path = TempDir::new().unwrap();
    fs::write(path.path().join("tools.py"), code).unwrap();
    let mut settings = PythonSettings::new(interpreter(), path.path().into());
    settings.processes = 4;
    let mut folder = Folder { path, settings };
    folder.settings.functions = functions
        .iter()
        .map(|function| PythonFunctionTool {
            entrypoint: folder.entrypoint(&format!("tools.py:{function}")),
            idempotent: false,
            code_argument: None,
        })
        .collect();
    folder
}

impl Folder {
    pub(crate) fn entrypoint(&self, text: &str) -> Entrypoint {
        Entrypoint::parse(text, self.path.path(), "card.md").unwrap()
    }

    pub(crate) async fn start(&self) -> Host {
        let prefix = self.path.path().join("tools.py").display().to_string();
        Host { tools: self.try_start().await.unwrap(), prefix }
    }

    pub(crate) async fn try_start(&self) -> Result<PythonToolHost, Problem> {
        PythonToolHost::start(self.settings.clone()).await
    }
}

pub(crate) struct Host {
    pub(crate) tools: PythonToolHost,
    prefix: String,
}

impl Host {
    pub(crate) async fn call(
        &self,
        row: u64,
        function: &str,
        arguments: Value,
    ) -> Result<ToolOutput, ToolFailure> {
        let tool = format!("{}:{function}", self.prefix);
        let arguments = arguments.to_string();
        let request = ToolRequest {
            row,
            id: &rowmill_types::RowId::Number(0),
            key: "run/row/1",
            tool: &tool,
            arguments: &arguments,
            idempotent: false,
            timeout: None,
        };
        ToolHost::call(&self.tools, request).await
    }

    pub(crate) async fn text(&self, row: u64, function: &str, arguments: Value) -> String {
        let output = self.call(row, function, arguments).await.unwrap();
        assert!(!output.is_error, "{}", output.text);
        output.text
    }

    pub(crate) async fn error(&self, row: u64, function: &str, arguments: Value) -> String {
        let output = self.call(row, function, arguments).await.unwrap();
        assert!(output.is_error, "{}", output.text);
        output.text
    }

    pub(crate) async fn failure(&self, row: u64, function: &str, arguments: Value) -> ToolFailure {
        self.call(row, function, arguments).await.unwrap_err()
    }

    pub(crate) async fn close(&self) {
        self.tools.close().await;
    }
}

/// A socket that functions connect to in order to show that they run; the connection breaks when their
/// process is gone.
pub(crate) struct Meeting {
    listener: TcpListener,
    pub(crate) port: u16,
}

impl Meeting {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    pub(crate) async fn arrival(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

/// Waits until nobody holds the other end of a connection.
pub(crate) async fn gone(mut connection: TcpStream) {
    use tokio::io::AsyncReadExt as _;

    let mut rest = Vec::new();
    // A killed process may reset its connections, which means the same.
    drop(connection.read_to_end(&mut rest).await);
}
