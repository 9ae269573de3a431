//! Uploading, creating, reporting, cancelling and deleting: what providers are sent.

use rowmill_core::ports::{BatchApi, JobCounts, JobFile, JobState};
use rowmill_testkit::RecordedRequest;
use rowmill_types::{CallError, CallFailure, CallRetryClass};
use serde_json::json;

use super::{batch_api, ended, job_file, ok};
use crate::server::{answer, listen, serve};

/// The models in OpenAI's style, with the base URLs that their servers have.
const FILES: [(&str, &str); 6] = [
    ("openai.m", "/v1"),
    ("responses.m", "/v1"),
    ("azure.m", "/openai"),
    ("groq.m", "/openai/v1"),
    ("together.m", "/v1"),
    ("mistral.m", "/v1"),
];

fn text(request: &RecordedRequest) -> String {
    String::from_utf8(request.body.clone()).unwrap()
}

/// Uploads a file and creates its job.
async fn submit(api: &dyn BatchApi, job: &JobFile) -> Result<rowmill_core::ports::JobReport, CallError> {
    let uploaded = api.upload(job).await?;
    api.create(job, uploaded.as_deref()).await
}

#[tokio::test]
async fn a_file_is_uploaded_and_its_job_created_in_the_words_of_each_provider() {
    for (model, base) in FILES {
        let (listener, address) = listen().await;
        let folder = tempfile::tempdir().unwrap();
        let api = batch_api(model, &format!("{address}{base}"));
        let job = job_file(&*api, folder.path(), &["one", "two"]);
        let (jobs, new) = match model {
            "mistral.m" => ("/batch/jobs", r#"{"id":"b-1","status":"QUEUED"}"#),
            "together.m" => ("/batches", r#"{"job":{"id":"b-1","status":"VALIDATING"},"warning":"w"}"#),
            _ => ("/batches", r#"{"id":"b-1","status":"validating"}"#),
        };
        let uploaded = format!(r#"{{"id":"file-1","bytes":{}}}"#, job.bytes);
        let answers = [ok(&uploaded), ok(new)];
        let (log, report) = tokio::join!(serve(&listener, &answers), submit(&*api, &job));
        let report = report.unwrap();
        assert_eq!((report.id.as_str(), report.state), ("b-1", JobState::Validating), "{model}");
        assert_eq!(report.input_file.as_deref(), Some("file-1"), "{model}");
        let [upload, create] = log.requests.as_slice() else { panic!("{model}: {log:?}") };
        assert_eq!((upload.method.as_str(), upload.path.as_str()), ("POST", &*format!("{base}/files")));
        assert_eq!(text(upload), form(model, &std::fs::read_to_string(&job.path).unwrap()), "{model}");
        assert_eq!(
            upload.header("content-type"),
            Some("multipart/form-data; boundary=rowmill-run-1-job-2"),
            "{model}"
        );
        assert_eq!((create.method.as_str(), create.path.as_str()), ("POST", &*format!("{base}{jobs}")));
        assert_eq!(text(create), new_job(model), "{model}");
        for request in [upload, create] {
            let (key, bearer) = (request.header("api-key"), request.header("authorization"));
            match model {
                "azure.m" => assert_eq!((key, bearer), (Some("sk-secret"), None)),
                _ => assert_eq!((key, bearer), (None, Some("Bearer sk-secret")), "{model}"),
            }
            assert!(request.header("idempotency-key").is_none());
        }
    }
}

/// The body of an upload.
fn form(model: &str, file: &str) -> String {
    let field = |name: &str, value: &str| {
        format!("--rowmill-run-1-job-2\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let purpose = if model == "together.m" { "batch-api" } else { "batch" };
    let mut form = field("purpose", purpose);
    if model == "azure.m" {
        form += &field("expires_after[anchor]", "created_at");
        form += &field("expires_after[seconds]", "1209600");
    }
    form + "--rowmill-run-1-job-2\r\ncontent-disposition: form-data; name=\"file\"; \
            filename=\"run-1-job-2.jsonl\"\r\ncontent-type: application/jsonl\r\n\r\n"
        + file
        + "\r\n--rowmill-run-1-job-2--\r\n"
}

/// The body that creates a job.
fn new_job(model: &str) -> &'static str {
    match model {
        "responses.m" => {
            r#"{"input_file_id":"file-1","endpoint":"/v1/responses","completion_window":"24h","metadata":{"rowmill_job":"run-1-job-2"}}"#
        }
        "azure.m" => {
            r#"{"input_file_id":"file-1","endpoint":"/chat/completions","completion_window":"24h","metadata":{"rowmill_job":"run-1-job-2"}}"#
        }
        "together.m" => {
            r#"{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h"}"#
        }
        "mistral.m" => {
            r#"{"input_files":["file-1"],"endpoint":"/v1/chat/completions","model":"m","timeout_hours":24,"metadata":{"rowmill_job":"run-1-job-2"}}"#
        }
        _ => {
            r#"{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"rowmill_job":"run-1-job-2"}}"#
        }
    }
}

#[tokio::test]
async fn anthropic_gets_all_requests_with_the_job() {
    let (listener, address) = listen().await;
    let folder = tempfile::tempdir().unwrap();
    let api = batch_api("anthropic.m", &address);
    let job = job_file(&*api, folder.path(), &["one", "two\nlines", "three"]);
    let new = json!({
        "id": "msgbatch_1", "type": "message_batch", "processing_status": "in_progress",
        "request_counts": {"processing": 3, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
        "created_at": "2026-11-19T06:00:00Z", "expires_at": "2026-11-20T06:00:00Z", "results_url": null,
    });
    let answers = [ok(&new.to_string())];
    let (log, report) = tokio::join!(serve(&listener, &answers), submit(&*api, &job));
    let report = report.unwrap();
    assert_eq!((report.id.as_str(), report.state, &report.key), ("msgbatch_1", JobState::InProgress, &None));
    assert_eq!(report.counts, Some(JobCounts { total: 3, completed: 0, failed: 0 }));
    assert_eq!(report.expires_at.unwrap() - report.created_at.unwrap(), 86_400);
    let request = &log.requests[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages/batches"));
    assert_eq!(request.header("x-api-key"), Some("sk-secret"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let line = |id: &str, text: &str| {
        format!(
            r#"{{"custom_id":"{id}","params":{{"model":"m","max_tokens":4096,"messages":[{{"role":"user","content":"{text}"}}]}}}}"#
        )
    };
    let lines = [line("r-0", "one"), line("r-1", r"two\nlines"), line("r-2", "three")].join(",");
    assert_eq!(text(request), format!("{{\"requests\":[{lines}\n]}}"));
}

#[tokio::test]
async fn gemini_gets_a_file_and_an_operation() {
    let (listener, address) = listen().await;
    let folder = tempfile::tempdir().unwrap();
    let api = batch_api("google.models/m", &address);
    let job = job_file(&*api, folder.path(), &["one"]);
    let uploaded =
        json!({"file": {"name": "files/f1", "sizeBytes": job.bytes.to_string(), "state": "ACTIVE"}});
    let created =
        json!({"name": "batches/b1", "metadata": {"state": "BATCH_STATE_PENDING", "displayName": job.key}});
    let answers = [
        answer("200 OK", &format!("x-goog-upload-url: {address}/upload/here?id=7\r\n"), ""),
        answer("200 OK", "x-goog-upload-status: final\r\n", &uploaded.to_string()),
        ok(&created.to_string()),
    ];
    let (log, report) = tokio::join!(serve(&listener, &answers), submit(&*api, &job));
    let report = report.unwrap();
    assert_eq!((report.id.as_str(), report.state), ("batches/b1", JobState::Validating));
    assert_eq!(
        (report.key.as_deref(), report.input_file.as_deref()),
        (Some("run-1-job-2"), Some("files/f1"))
    );
    let [start, upload, create] = log.requests.as_slice() else { panic!("{log:?}") };
    assert_eq!(start.path, "/upload/v1beta/files");
    assert_eq!(text(start), r#"{"file":{"display_name":"run-1-job-2","mime_type":"application/jsonl"}}"#);
    for (name, value) in [
        ("x-goog-upload-protocol", "resumable"),
        ("x-goog-upload-command", "start"),
        ("x-goog-upload-header-content-length", job.bytes.to_string().as_str()),
        ("x-goog-upload-header-content-type", "application/jsonl"),
    ] {
        assert_eq!(start.header(name), Some(value), "{name}");
    }
    assert_eq!(upload.path, "/upload/here?id=7");
    assert_eq!(upload.header("x-goog-upload-command"), Some("upload, finalize"));
    assert_eq!(upload.header("x-goog-upload-offset"), Some("0"));
    assert_eq!(upload.body, std::fs::read(&job.path).unwrap());
    assert_eq!(create.path, "/v1beta/models/m:batchGenerateContent");
    assert_eq!(
        text(create),
        r#"{"batch":{"display_name":"run-1-job-2","input_config":{"file_name":"files/f1"}}}"#
    );
    assert!(log.requests.iter().all(|request| request.header("x-goog-api-key") == Some("sk-secret")));
}

#[tokio::test]
async fn a_file_that_did_not_arrive_whole_is_sent_again() {
    let (listener, address) = listen().await;
    let folder = tempfile::tempdir().unwrap();
    let api = batch_api("openai.m", &format!("{address}/v1"));
    let job = job_file(&*api, folder.path(), &["one"]);
    let answers = [ok(r#"{"id":"file-1","bytes":7}"#)];
    let (_, uploaded) = tokio::join!(serve(&listener, &answers), api.upload(&job));
    let error = uploaded.unwrap_err();
    assert!(matches!(error.retry_class(), CallRetryClass::Transient { .. }));
    assert_eq!(
        &*error.message,
        format!("the provider received 7 of the {} bytes of the job's file", job.bytes)
    );
    let longer = JobFile { bytes: job.bytes + 1, ..job };
    assert_eq!(api.upload(&longer).await.unwrap_err().failure, CallFailure::Internal, "it was changed");
}

#[tokio::test]
async fn refused_calls_are_errors_of_their_kind_without_the_key() {
    let (listener, address) = listen().await;
    let folder = tempfile::tempdir().unwrap();
    let api = batch_api("openai.m", &format!("{address}/v1"));
    let job = job_file(&*api, folder.path(), &["one"]);
    let error = |status: &str, code: &str| {
        answer(
            status,
            "retry-after: 7\r\n",
            &format!(r#"{{"error":{{"message":"sk-secret","code":"{code}"}}}}"#),
        )
    };
    for (status, code, failure) in [
        ("429 Too Many Requests", "rate_limit_exceeded", CallFailure::RateLimited),
        ("400 Bad Request", "billing_hard_limit_reached", CallFailure::QuotaExhausted),
        ("400 Bad Request", "invalid_file", CallFailure::Refused),
        ("401 Unauthorized", "invalid_api_key", CallFailure::Unauthorized),
        ("500 Internal Server Error", "", CallFailure::Server),
    ] {
        let answers = [error(status, code)];
        let (_, created) = tokio::join!(serve(&listener, &answers), api.create(&job, Some("file-1")));
        let error = created.unwrap_err();
        assert_eq!(error.failure, failure, "{status} {code}");
        assert!(!error.message.contains("sk-secret"), "{error}");
        assert_eq!(error.retry_after.map(|wait| wait.as_secs()), Some(7));
    }
    let answers = [answer("404 Not Found", "", r#"{"error":{"message":"No batch found with id 'b-1'."}}"#)];
    let (_, report) = tokio::join!(serve(&listener, &answers), api.report("b-1"));
    assert_eq!(
        report.unwrap_err().retry_class(),
        CallRetryClass::Permanent,
        "one job is gone, the address is right"
    );
    let answers = [answer("409 Conflict", "", r#"{"error":{"message":"Cannot cancel a completed batch"}}"#)];
    let (_, cancelled) = tokio::join!(serve(&listener, &answers), api.cancel("b-1"));
    assert_eq!(cancelled.unwrap_err().retry_class(), CallRetryClass::Permanent, "it has ended");
}

/// Cancels and deletes a job, and returns the calls.
async fn end(model: &str, base: &str, answers: usize) -> Vec<String> {
    let (listener, address) = listen().await;
    let api = batch_api(model, &format!("{address}{base}"));
    let id = if model == "google.m" { "batches/b1" } else { "b-1" };
    let (input, results) = match model {
        "anthropic.m" => (None, vec!["https://elsewhere.invalid/results"]),
        "google.m" => (Some("files/in"), vec!["files/out"]),
        _ => (Some("file-in"), vec!["file-out", "file-err"]),
    };
    let job = rowmill_core::ports::JobReport { input_file: input.map(str::to_owned), ..ended(id, &results) };
    let mut all = vec![ok("{}"); answers];
    if let Some(last) = all.last_mut() {
        *last = answer("404 Not Found", "", "{}");
    }
    let act = async {
        api.cancel(&job.id).await.unwrap();
        api.delete(&job).await.unwrap();
    };
    let (log, ()) = tokio::join!(serve(&listener, &all), act);
    let cancel = &log.requests[0];
    assert_eq!((cancel.header("content-length"), cancel.body.len()), (Some("0"), 0), "{model}");
    log.requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test]
async fn a_job_is_cancelled_and_deleted_with_all_that_the_provider_lets_go() {
    let files = |rest: &[&str]| -> Vec<String> {
        let all = ["DELETE /v1/files/file-in", "DELETE /v1/files/file-out", "DELETE /v1/files/file-err"];
        all.iter().chain(rest).map(|one| (*one).to_owned()).collect()
    };
    assert_eq!(
        end("openai.m", "/v1", 4).await,
        [vec!["POST /v1/batches/b-1/cancel".to_owned()], files(&[])].concat()
    );
    assert_eq!(
        end("mistral.m", "/v1", 5).await,
        [vec!["POST /v1/batch/jobs/b-1/cancel".to_owned()], files(&["DELETE /v1/batch/jobs/b-1"])].concat()
    );
    assert_eq!(
        end("anthropic.m", "", 2).await,
        ["POST /v1/messages/batches/b-1/cancel", "DELETE /v1/messages/batches/b-1"]
    );
    assert_eq!(
        end("google.m", "", 4).await,
        [
            "POST /v1beta/batches/b1:cancel",
            "DELETE /v1beta/files/in",
            "DELETE /v1beta/files/out",
            "DELETE /v1beta/batches/b1"
        ]
    );
}

#[tokio::test]
async fn an_answer_that_is_no_job_is_malformed() {
    for (model, base) in [("openai.m", "/v1"), ("anthropic.m", ""), ("google.m", "")] {
        let (listener, address) = listen().await;
        let api = batch_api(model, &format!("{address}{base}"));
        for body in ["", "[]", "7", "{}", r#"{"id":7,"name":{}}"#, "{\"id\":\"b"] {
            let answers = [ok(body)];
            let (_, report) = tokio::join!(serve(&listener, &answers), api.report("b-1"));
            assert_eq!(report.unwrap_err().failure, CallFailure::Malformed, "{model}: {body}");
        }
    }
}
