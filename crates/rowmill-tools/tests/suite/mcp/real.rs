//! Reference servers from npm and PyPI, which `scripts/prepare-mcp` installs.

use std::path::PathBuf;
use std::process::Stdio;

use futures_util::future::join_all;
use rowmill_core::ports::ToolHost;
use rowmill_tools::{McpServerSettings, McpTransport, NameFilter};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::mcp::kit::{call, process, start, text};

/// A program that the script installed.
fn installed(program: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = [".mcp/node_modules/.bin", ".mcp/venv/bin"].map(|folder| root.join(folder).join(program));
    let found = places.iter().find(|place| place.exists());
    assert!(found.is_some(), "`{program}` is missing: run `bash scripts/prepare-mcp` first");
    found.unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_everything_server_is_driven_over_stdio() {
    let mut server = process("t", &[&installed("mcp-server-everything")]);
    server.resources = NameFilter::Everything;
    server.prompts = NameFilter::Everything;
    everything(server).await;
}

#[tokio::test]
async fn the_everything_server_is_driven_over_http() {
    let (_child, url) = listening().await;
    let mut server = process("t", &["unused"]);
    server.transport = McpTransport::Http { url, headers: Default::default(), auth: None };
    server.resources = NameFilter::Everything;
    server.prompts = NameFilter::Everything;
    everything(server).await;
}

async fn everything(server: McpServerSettings) {
    let mcp = start(server).await;
    assert!(mcp.instructions("t").is_some());
    let answers = join_all((0..100).map(|row| text(&mcp, row, "get-sum", json!({"a": row, "b": 2})))).await;
    for (row, answer) in answers.iter().enumerate() {
        assert!(answer.contains(&format!(" {}", row + 2)), "{row}: {answer}");
    }
    assert_eq!(text(&mcp, 1, "echo", json!({"message": "hi"})).await, "Echo: hi");
    let image = call(&mcp, 1, "get-tiny-image", json!({})).await.unwrap();
    assert_eq!(image.attachments[0].media_type, "image/png");
    let resource = text(&mcp, 1, "read_resource", json!({"uri": "demo://resource/dynamic/text/1"})).await;
    assert!(resource.contains("Resource 1"), "{resource}");
    assert!(!text(&mcp, 1, "get_prompt", json!({"name": "simple-prompt"})).await.is_empty());
    mcp.close().await;
}

/// The everything server on a free port.
async fn listening() -> (Child, String) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(installed("mcp-server-everything"));
    command.arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("listening on port") {
            break;
        }
    }
    // The pipe stays open; otherwise the server would crash at its next output.
    child.stderr = Some(lines.into_inner().into_inner());
    (child, format!("http://127.0.0.1:{port}/mcp"))
}

#[tokio::test]
async fn the_filesystem_server_writes_and_reads() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mcp = start(process("t", &[&installed("mcp-server-filesystem"), root.to_str().unwrap()])).await;
    let read = mcp.tools().iter().find(|tool| tool.tool == "read_text_file").unwrap();
    let write = mcp.tools().iter().find(|tool| tool.tool == "write_file").unwrap();
    assert!(read.idempotent, "the server says that it only reads");
    assert_eq!(write.spec.name, "t__write_file");
    let file = |row: u64| root.join(format!("{row}.txt")).to_str().unwrap().to_owned();
    let rows = (0..32).map(|row| {
        let (mcp, file) = (&mcp, file(row));
        async move {
            text(mcp, row, "write_file", json!({"path": file, "content": format!("row {row}")})).await;
            text(mcp, row, "read_text_file", json!({"path": file})).await
        }
    });
    for (row, read) in join_all(rows).await.into_iter().enumerate() {
        assert_eq!(read, format!("row {row}"));
    }
    let outside = call(&mcp, 1, "read_text_file", json!({"path": "/etc/passwd"})).await.unwrap();
    assert!(outside.is_error && outside.text.contains("Access denied"), "{outside:?}");
    mcp.close().await;
}

#[tokio::test]
async fn the_time_server_from_pypi_answers() {
    let mcp = start(process("t", &[&installed("mcp-server-time"), "--local-timezone", "UTC"])).await;
    let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    assert!(text(&mcp, 1, "convert_time", arguments).await.contains("21:00"));
    mcp.close().await;
}

#[tokio::test]
async fn each_row_has_its_own_sqlite_server() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("rows.db");
    let mut server =
        process("t", &[&installed("mcp-server-sqlite"), "--db-path", database.to_str().unwrap()]);
    server.per_row = true;
    let mcp = start(server).await;
    text(&mcp, 1, "create_table", json!({"query": "CREATE TABLE rows (number INTEGER)"})).await;
    text(&mcp, 1, "write_query", json!({"query": "INSERT INTO rows VALUES (5)"})).await;
    mcp.release_row(1).await;
    let sum = text(&mcp, 2, "read_query", json!({"query": "SELECT sum(number) AS sum FROM rows"})).await;
    assert!(sum.contains('5'), "{sum}");
    mcp.close().await;
}
