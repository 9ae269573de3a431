//! Lists of jobs, page by page.

use serde_json::{Value, json};

use super::{batch_api, ok};
use crate::server::{listen, serve};

/// Lists jobs since the second 100; returns the calls and the ids with their keys.
async fn listed(model: &str, base: &str, pages: &[Value]) -> (Vec<String>, Vec<(String, Option<String>)>) {
    let (listener, address) = listen().await;
    let api = batch_api(model, &format!("{address}{base}"));
    let answers: Vec<Vec<u8>> = pages.iter().map(|page| ok(&page.to_string())).collect();
    let (log, jobs) = tokio::join!(serve(&listener, &answers), api.list(100));
    let calls = log.requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    (calls, jobs.unwrap().into_iter().map(|job| (job.id, job.key)).collect())
}

fn job(id: &str, created: i64) -> Value {
    json!({"id": id, "status": "completed", "created_at": created, "metadata": {"rowmill_job": format!("key-{id}")}})
}

fn with_key(id: &str) -> (String, Option<String>) {
    (id.to_owned(), Some(format!("key-{id}")))
}

#[tokio::test]
async fn pages_are_read_until_they_are_older() {
    let pages = [
        json!({"data": [job("c", 300), job("b", 200)], "has_more": true}),
        json!({"data": [job("a", 100), job("z", 99)], "has_more": true}),
        json!({"data": [job("y", 98), job("x", 97)], "has_more": true}),
    ];
    let (calls, jobs) = listed("openai.m", "/v1", &pages).await;
    assert_eq!(
        calls,
        [
            "GET /v1/batches?limit=100",
            "GET /v1/batches?limit=100&after=b",
            "GET /v1/batches?limit=100&after=z"
        ]
    );
    assert_eq!(jobs, [with_key("c"), with_key("b"), with_key("a")]);
}

#[tokio::test]
async fn a_server_without_pages_is_asked_once_more_at_most() {
    let page = json!({"data": [job("a", 200), job("b", 300)], "has_more": true});
    let (calls, jobs) = listed("groq.m", "/v1", &[page.clone(), page]).await;
    assert_eq!(calls.len(), 2);
    assert_eq!(jobs, [with_key("b"), with_key("a")], "the newest first");
    let (calls, jobs) = listed("openai.m", "/v1", &[json!({"data": []})]).await;
    assert_eq!((calls.len(), jobs.len()), (1, 0));
}

#[tokio::test]
async fn each_provider_has_pages_of_its_own() {
    let (calls, jobs) = listed("together.m", "/v1", &[json!([job("a", 200), job("b", 50)])]).await;
    assert_eq!(calls, ["GET /v1/batches"]);
    assert_eq!(jobs.len(), 1);
    let full: Vec<Value> = (0..100).map(|number| job(&format!("j{number}"), 500 - number)).collect();
    let (calls, jobs) =
        listed("mistral.m", "/v1", &[json!({"data": full}), json!({"data": [job("a", 200)]})]).await;
    assert_eq!(calls, ["GET /v1/batch/jobs?page=0&page_size=100", "GET /v1/batch/jobs?page=1&page_size=100"]);
    assert_eq!(jobs.len(), 101);
    let message = |id: &str, at: &str| json!({"id": id, "processing_status": "ended", "created_at": at});
    let pages = [
        json!({"data": [message("m2", "2026-11-19T06:00:00Z")], "has_more": true, "last_id": "m2"}),
        json!({"data": [message("m1", "2026-11-18T06:00:00.5+01:00")], "has_more": false}),
    ];
    let (calls, jobs) = listed("anthropic.m", "", &pages).await;
    assert_eq!(
        calls,
        ["GET /v1/messages/batches?limit=100", "GET /v1/messages/batches?limit=100&after_id=m2"]
    );
    assert_eq!(jobs, [("m2".to_owned(), None), ("m1".to_owned(), None)]);
    let operation = |name: &str| json!({"name": name, "metadata": {"displayName": format!("key-{name}"), "createTime": "2026-11-19T06:00:00Z"}});
    let pages = [
        json!({"operations": [operation("batches/2")], "nextPageToken": "t/1"}),
        json!({"nextPageToken": "t2"}),
        json!({"operations": [operation("batches/1")]}),
    ];
    let (calls, jobs) = listed("google.m", "", &pages).await;
    assert_eq!(
        calls,
        [
            "GET /v1beta/batches?pageSize=100",
            "GET /v1beta/batches?pageSize=100&pageToken=t%2F1",
            "GET /v1beta/batches?pageSize=100&pageToken=t2"
        ]
    );
    assert_eq!(jobs, [with_key("batches/2"), with_key("batches/1")]);
}
