//! Texts are loaded from files and from real sockets, or the reason is reported.

use std::path::Path;

use rowmill_data::{FetchSettings, Fetcher, load_text};
use rowmill_http::HttpClient;
use rowmill_types::{Problem, ProblemCode, Setting};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

async fn load(source: &str) -> Result<String, Problem> {
    let settings = FetchSettings::from_environment(&|_| None);
    let http = HttpClient::new(&|_| None);
    load_text(
        source,
        Setting::Template.into(),
        &Fetcher { settings: &settings, http: &http, on_event: &|_| {} },
    )
    .await
}

async fn refused(source: &str) -> String {
    let problem = load(source).await.unwrap_err();
    assert_eq!(problem.code, ProblemCode::TextUnreadable);
    assert!(problem.hint.is_some());
    problem.message.to_string()
}

fn file(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("text");
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// Loads from a server that returns one answer, and also returns the address's host.
async fn load_answer(head: &str, body: &[u8]) -> (String, Result<String, Problem>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let answer = [format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").as_bytes(), body].concat();
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(socket.read(&mut request).await.unwrap() > 0);
        // A client that has read enough may close the connection before the end.
        drop(socket.write_all(&answer).await);
        drop(socket.shutdown().await);
    };
    let source = format!("http://user:word@{host}/a.txt?key=secret");
    let ((), loaded) = tokio::join!(serve, load(&source));
    (host, loaded)
}

#[tokio::test]
async fn files_are_read_as_text_without_a_byte_order_mark() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "\u{feff}Héllo {{a}}\n".as_bytes());
    assert_eq!(load(&path).await.unwrap(), "Héllo {{a}}\n");
    assert_eq!(load(&format!("file://{path}")).await.unwrap(), "Héllo {{a}}\n");
}

#[tokio::test]
async fn what_cannot_be_read_from_a_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    assert_eq!(refused(&missing).await, format!("file not found for `template`: `{missing}`"));
    let here = folder.path().display().to_string();
    assert_eq!(refused(&here).await, format!("path for `template` is not a file: `{here}`"));
    let path = file(folder.path(), b"ab\xff");
    assert_eq!(refused(&path).await, format!("text for `template` is not valid UTF-8 at byte 3: `{path}`"));
    let path = file(folder.path(), &vec![b'x'; 16 * 1024 * 1024 + 1]);
    assert_eq!(refused(&path).await, format!("text for `template` is longer than 16 MiB: `{path}`"));
}

#[tokio::test]
async fn other_kinds_of_addresses_are_refused() {
    assert_eq!(refused("ftp://host/a").await, "text for `template` cannot be read from `ftp://`");
    assert!(refused("file://host/x").await.contains("invalid URL for `template`"));
    assert!(refused("http://").await.contains("invalid URL for `template`"));
}

#[tokio::test]
async fn an_address_gives_its_body() {
    let (_, loaded) = load_answer("200 OK\r\ncontent-length: 5", "h\u{e9}ll".as_bytes()).await;
    assert_eq!(loaded.unwrap(), "héll");
}

#[tokio::test]
async fn an_answer_that_is_no_success_is_reported_without_secrets() {
    let (host, loaded) = load_answer("404 Not Found\r\ncontent-length: 2", b"no").await;
    let problem = loaded.unwrap_err();
    let expected = format!("cannot get the text for `template`, status 404: `http://{host}/a.txt`");
    assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::TextUnreadable, expected.as_str()));
}

#[tokio::test]
async fn a_body_that_breaks_off_or_never_ends_is_refused() {
    let (_, loaded) = load_answer("200 OK\r\ncontent-length: 50", b"half").await;
    assert!(loaded.unwrap_err().message.contains("incomplete text"));
    let (_, loaded) = load_answer("200 OK", &vec![b'x'; 16 * 1024 * 1024 + 100_000]).await;
    assert!(loaded.unwrap_err().cause.unwrap().contains("larger than"));
}

#[tokio::test]
async fn an_address_where_nobody_answers_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    drop(listener);
    let problem = load(&format!("http://{host}/x")).await.unwrap_err();
    assert_eq!(problem.message, format!("no response for `template` from `http://{host}/x`"));
    assert!(problem.cause.is_some());
}
