//! Lists of jobs and files, page by page, and the statistics of jobs.

use rowmill_simulator::Simulator;
use serde_json::{Value, json};

use crate::support::jobs::{
    AZURE, GROQ, HOUR, MISTRAL, OPENAI, Shop, TOGETHER, held, id_of, rows, sorted, two_hours,
};
use crate::support::talk::ANTHROPIC;
use crate::support::{CHAT, Client, chat};

/// Creates jobs; returns their ids, newest first.
fn jobs(client: &mut Client, shop: Shop, count: usize) -> Vec<String> {
    let mut ids: Vec<String> =
        (0..count).map(|at| id_of(&shop.submit(client, &rows(&[&format!("prompt {at}")])))).collect();
    ids.reverse();
    ids
}

fn ids(page: &Value) -> Vec<String> {
    page.as_array().unwrap().iter().map(id_of).collect()
}

#[test]
fn openais_pages_follow_an_id() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    for shop in [OPENAI, AZURE, GROQ] {
        let all = jobs(&mut client, shop, 5);
        let mut page = |query: &str| {
            let reply = client.ask("GET", &format!("{}{query}", shop.jobs()), shop.headers);
            assert_eq!(reply.status, 200, "{}", reply.body);
            reply.json()
        };
        let first = page("?limit=2");
        assert_eq!((ids(&first["data"]), &first["has_more"]), (all[..2].to_vec(), &json!(true)));
        assert_eq!((&first["object"], &first["last_id"]), (&json!("list"), &json!(all[1])));
        let next = page(&format!("?after={}&limit=2", all[1]));
        assert_eq!(ids(&next["data"]), all[2..4]);
        let last = page(&format!("?after={}", all[3]));
        assert_eq!((ids(&last["data"]), &last["has_more"]), (all[4..].to_vec(), &json!(false)));
    }
    assert_eq!(client.ask("GET", "/v1/batches?limit=101", OPENAI.headers).status, 400);
    assert_eq!(client.ask("GET", "/v1/batches?after=none", OPENAI.headers).status, 400);
}

#[test]
fn together_lists_all_jobs_and_mistral_numbers_its_pages() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let all = jobs(&mut client, TOGETHER, 3);
    assert_eq!(ids(&client.ask("GET", "/together/v1/batches", TOGETHER.headers).json()), all);
    let all = jobs(&mut client, MISTRAL, 5);
    let mut page =
        |query: &str| client.ask("GET", &format!("{}?{query}", MISTRAL.jobs()), MISTRAL.headers).json();
    let second = page("page=1&page_size=2");
    assert_eq!((ids(&second["data"]), &second["total"]), (all[2..4].to_vec(), &json!(5)));
    assert_eq!(ids(&page("status=QUEUED")["data"]), all);
    assert_eq!(ids(&page("status=SUCCESS&status=FAILED")["data"]), Vec::<String>::new());
}

#[test]
fn anthropics_pages_go_both_ways_and_googles_have_tokens() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let params = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
    let body = json!({"requests": [{"custom_id": "a", "params": params}]}).to_string();
    let path = "/v1/messages/batches";
    let mut all: Vec<String> = (0..5).map(|_| id_of(&client.post(path, ANTHROPIC, &body).json())).collect();
    all.reverse();
    let mut page = |query: &str| client.ask("GET", &format!("{path}?{query}"), ANTHROPIC).json();
    let first = page("limit=2");
    assert_eq!((ids(&first["data"]), &first["has_more"]), (all[..2].to_vec(), &json!(true)));
    assert_eq!((&first["first_id"], &first["last_id"]), (&json!(all[0]), &json!(all[1])));
    let next = page(&format!("limit=9&after_id={}", all[1]));
    assert_eq!((ids(&next["data"]), &next["has_more"]), (all[2..].to_vec(), &json!(false)));
    let before = page(&format!("limit=2&before_id={}", all[3]));
    assert_eq!((ids(&before["data"]), &before["has_more"]), (all[1..3].to_vec(), &json!(true)));

    let key = "x-goog-api-key: k\r\n";
    let request = json!({"contents": [{"parts": [{"text": "x"}]}]});
    let body = json!({"batch": {"inputConfig": {"requests": {"requests": [{"request": request}]}}}});
    for _ in 0..3 {
        let reply = client.post("/v1beta/models/m:batchGenerateContent", key, &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    let first = client.ask("GET", "/v1beta/batches?pageSize=2", key).json();
    assert_eq!((first["operations"].as_array().unwrap().len(), &first["nextPageToken"]), (2, &json!("2")));
    let last = client.ask("GET", "/v1beta/batches?pageSize=2&pageToken=2", key).json();
    assert_eq!((last["operations"].as_array().unwrap().len(), &last["nextPageToken"]), (1, &Value::Null));
}

#[test]
fn files_are_listed_by_vendor_and_purpose_until_they_are_deleted() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    jobs(&mut client, OPENAI, 2);
    jobs(&mut client, TOGETHER, 1);
    simulator.finish_jobs();
    let mut list = |query: &str| client.ask("GET", &format!("/v1/files{query}"), OPENAI.headers).json();
    let all = list("");
    assert_eq!(
        sorted(all["data"].as_array().unwrap(), "/purpose"),
        ["batch", "batch", "batch_output", "batch_output"]
    );
    let inputs = list("?purpose=batch");
    let id = id_of(&inputs["data"][0]);
    assert_eq!(list("?limit=1")["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        client.ask("GET", &format!("/v1/files/{id}"), OPENAI.headers).json()["filename"],
        "rows.jsonl"
    );
    let deleted = client.ask("DELETE", &format!("/v1/files/{id}"), OPENAI.headers).json();
    assert_eq!(deleted["deleted"], true);
    assert_eq!(client.ask("GET", &format!("/v1/files/{id}/content"), OPENAI.headers).status, 404);
    let together = client.ask("GET", "/together/v1/files", TOGETHER.headers).json();
    assert_eq!(together["data"].as_array().unwrap().len(), 2);
    assert_eq!(simulator.stats().batches.deleted_files, 1);
}

fn stats_of(simulator: &Simulator) -> Value {
    Client::to(simulator).get("/stats").json()["batches"].clone()
}

#[test]
fn statistics_count_jobs_and_their_rows_apart_from_live_calls() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    OPENAI.submit(&mut client, &rows(&["a", "b", "c"]));
    simulator.advance_job_clock(HOUR);
    OPENAI.submit(&mut client, &rows(&["a"]));
    assert_eq!(client.post(CHAT, OPENAI.headers, &chat("live")).status, 200);
    let stats = stats_of(&simulator);
    assert_eq!(stats["jobs_by_state"], json!({"in_progress": 1, "validating": 1}));
    let counts = ["jobs", "rows", "distinct_rows", "rows_submitted_more_than_once", "answers", "uploads"];
    assert_eq!(counts.map(|name| stats[name].as_u64().unwrap()), [2, 4, 3, 1, 0, 2]);
    assert_eq!(stats["uploaded_bytes"], rows(&["a", "b", "c"]).len() + rows(&["a"]).len());
    simulator.finish_jobs();
    let stats = stats_of(&simulator);
    assert_eq!((&stats["answers"], &stats["repeated_answers"]), (&json!(4), &json!(1)));
    assert_eq!(stats["jobs_by_state"], json!({"completed": 2}));
    let live = simulator.stats();
    assert_eq!((live.requests, live.answers, live.distinct_prompts, live.input_tokens), (1, 1, 1, 1));
}

#[test]
fn a_row_counts_as_submitted_twice_by_its_id_or_by_its_text() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    OPENAI.submit(&mut client, &rows(&["a", "b"]));
    // The same id with another text, and another id with the same text.
    OPENAI.submit(&mut client, &rows(&["c", "d", "a"]));
    let stats = simulator.stats().batches;
    assert_eq!((stats.rows, stats.rows_submitted_more_than_once, stats.distinct_rows), (5, 3, 2));
}

#[test]
fn live_calls_have_the_prefixes_of_their_vendors_too() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    for shop in [AZURE, GROQ, TOGETHER, MISTRAL, Shop { base: "/openai/v1", ..AZURE }] {
        let path = format!("{}/chat/completions", shop.base);
        let reply = client.post(&path, shop.headers, &chat("Hi"));
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    }
    let azure = Shop { base: "/openai/v1", ..AZURE };
    let job = azure.submit(&mut client, &rows(&["a"]));
    assert_eq!(AZURE.job(&mut client, &id_of(&job))["id"], job["id"], "the header tells Azure from Groq");
    assert_eq!(client.ask("GET", &format!("/v1/batches/{}", id_of(&job)), OPENAI.headers).status, 404);
}
