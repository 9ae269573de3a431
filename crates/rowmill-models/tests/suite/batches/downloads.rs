//! Results are complete or not there.

use std::path::Path;

use rowmill_core::ports::JobReport;
use rowmill_types::{CallError, CallFailure, CallRetryClass};

use super::{batch_api, ended, ok};
use crate::server::{CUT, answer, listen, serve};

/// What is left in a folder: names and contents.
fn content(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| (name(&entry), std::fs::read_to_string(entry.path()).unwrap())).collect()
}

/// Downloads a job's results; returns the calls, the result, and what is in the folder.
async fn download(
    model: &str,
    job: JobReport,
    answers: &[Vec<u8>],
) -> (Vec<String>, Result<(), CallError>, Vec<(String, String)>) {
    let (listener, address) = listen().await;
    let base = if matches!(model, "anthropic.m" | "google.m") { "" } else { "/v1" };
    let api = batch_api(model, &format!("{address}{base}"));
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("results.jsonl");
    let (log, result) = tokio::join!(serve(&listener, answers), api.download(&job, &to));
    let calls = log.requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    (calls, result, content(folder.path()))
}

#[tokio::test]
async fn results_and_errors_are_lines_of_one_file() {
    let job = ended("b-1", &["file-out", "file-err"]);
    let (calls, result, left) =
        download("openai.m", job, &[ok("{\"a\":1}\n{\"b\":2}"), ok("{\"c\":3}\n")]).await;
    result.unwrap();
    assert_eq!(calls, ["GET /v1/files/file-out/content", "GET /v1/files/file-err/content"]);
    let lines = "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n";
    assert_eq!(left, [("results.jsonl".to_owned(), lines.to_owned())]);
}

#[tokio::test]
async fn each_provider_has_its_results_elsewhere() {
    let url = "https://elsewhere.invalid/v1/messages/batches/b-1/results";
    let (calls, result, _) = download("anthropic.m", ended("b-1", &[url]), &[ok("{}\n")]).await;
    result.unwrap();
    assert_eq!(calls, ["GET /v1/messages/batches/b-1/results"], "where our key is for");
    let (calls, result, _) = download("google.m", ended("batches/b1", &["files/f1"]), &[ok("{}\n")]).await;
    result.unwrap();
    assert_eq!(calls, ["GET /download/v1beta/files/f1:download?alt=media"]);
}

#[tokio::test]
async fn no_results_are_an_empty_file() {
    for (model, files, answers) in [
        ("openai.m", &[][..], vec![]),
        ("azure.m", &["file-err"][..], vec![ok("")]),
        ("anthropic.m", &[][..], vec![]),
    ] {
        let (_, result, left) = download(model, ended("b-1", files), &answers).await;
        result.unwrap();
        assert_eq!(left, [("results.jsonl".to_owned(), String::new())], "{model}");
    }
}

#[tokio::test]
async fn a_cut_download_is_an_error_and_leaves_nothing() {
    let cut = |head: &str, body: &str| [head.as_bytes(), body.as_bytes(), CUT].concat();
    for (answers, failure) in [
        (
            vec![cut("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "{\"a\":1}\n")],
            CallFailure::ConnectionBroken,
        ),
        (
            vec![
                ok("{\"a\":1}\n"),
                cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "8\r\n{\"a\":1}\n\r\n"),
            ],
            CallFailure::ConnectionBroken,
        ),
        (vec![cut("HTTP/1.1 200 OK\r\n\r\n", "{\"a\":1}\n{\"b\"")], CallFailure::ConnectionBroken),
        (vec![answer("500 Internal Server Error", "", "{}")], CallFailure::Server),
    ] {
        let files = ["file-out", "file-err"];
        let job = ended("b-1", &files[..answers.len()]);
        let (_, result, left) = download("openai.m", job, &answers).await;
        let error = result.unwrap_err();
        assert_eq!(error.failure, failure, "{error}");
        assert!(matches!(error.retry_class(), CallRetryClass::Transient { .. }));
        assert_eq!(left, [], "{error}");
    }
    let gone = [answer("404 Not Found", "", r#"{"error":{"message":"No such File object: file-out"}}"#)];
    let (_, result, _) = download("openai.m", ended("b-1", &["file-out"]), &gone).await;
    assert_eq!(result.unwrap_err().retry_class(), CallRetryClass::Permanent);
}

#[tokio::test]
async fn an_earlier_file_is_replaced_only_by_a_complete_one() {
    let (listener, address) = listen().await;
    let api = batch_api("openai.m", &format!("{address}/v1"));
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("results.jsonl");
    std::fs::write(&to, "earlier").unwrap();
    let broken = [[&b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"[..], CUT].concat()];
    let job = ended("b-1", &["file-out"]);
    let (_, result) = tokio::join!(serve(&listener, &broken), api.download(&job, &to));
    result.unwrap_err();
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "earlier");
    let answers = [ok("{}\n")];
    let (_, result) = tokio::join!(serve(&listener, &answers), api.download(&job, &to));
    result.unwrap();
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "{}\n");
}
