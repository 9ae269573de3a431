//! The life of a job at every vendor whose inputs are uploaded.

use rowmill_simulator::{Price, SimulatorScript, parse_flags};
use serde_json::{Value, json};

use crate::support::jobs::{
    AZURE, GROQ, HOUR, MISTRAL, OPENAI, Shop, TOGETHER, held, held_with, id_of, rows, sorted, two_hours,
};
use crate::support::{CHAT, Client, chat};

const PROMPTS: [&str; 3] = ["a", "b", "[[400]] c"];

/// What a job reports at its creation and after a minute, an hour, 115 minutes and two hours.
fn lived(shop: Shop, state: &str) -> (Vec<Value>, Vec<Value>) {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let job = shop.submit(&mut client, &rows(&PROMPTS));
    let id = id_of(&job);
    let mut seen = vec![job];
    for minutes in [1, 59, 55, 5] {
        simulator.advance_job_clock(HOUR / 60 * minutes);
        seen.push(shop.job(&mut client, &id));
    }
    let states = seen.iter().map(|job| job[state].clone()).collect();
    (seen, states)
}

fn openai_shaped(shop: Shop) -> Vec<Value> {
    let (seen, states) = lived(shop, "status");
    let expected = ["validating", "validating", "in_progress", "finalizing", "completed"];
    assert_eq!(states, expected);
    let last = &seen[4];
    assert_eq!(last["request_counts"], json!({"total": 3, "completed": 2, "failed": 1}), "{shop:?}");
    assert_eq!(last["metadata"], json!({"run": "1"}));
    let times: Vec<i64> = ["created_at", "in_progress_at", "finalizing_at", "completed_at"]
        .map(|name| last[name].as_i64().unwrap())
        .to_vec();
    assert_eq!([times[1] - times[0], times[2] - times[0], times[3] - times[0]], [360, 6_840, 7_200]);
    assert_eq!(seen[0]["in_progress_at"], Value::Null);
    assert!(last["failed_at"].is_null() && last["cancelled_at"].is_null() && last["expired_at"].is_null());
    seen
}

#[test]
fn openai_groq_and_azure_pass_all_states() {
    for shop in [OPENAI, GROQ] {
        let seen = openai_shaped(shop);
        assert_eq!(seen[2]["request_counts"], json!({"total": 3, "completed": 1, "failed": 0}));
        assert_eq!(seen[4]["expires_at"].as_i64().unwrap(), seen[4]["created_at"].as_i64().unwrap() + 86_400);
    }
    let seen = openai_shaped(AZURE);
    assert_eq!(seen[0]["request_counts"], Value::Null);
    assert_eq!(seen[2]["request_counts"], json!({"total": 3, "completed": null, "failed": null}));
    assert_eq!(seen[4]["expires_at"], Value::Null);
}

#[test]
fn together_wraps_the_answer_to_create_and_has_its_own_states() {
    let (seen, states) = lived(TOGETHER, "status");
    assert_eq!(states, ["VALIDATING", "VALIDATING", "IN_PROGRESS", "IN_PROGRESS", "COMPLETED"]);
    assert_eq!((&seen[2]["progress"], &seen[4]["progress"]), (&json!(33.0), &json!(100.0)));
    let last = &seen[4];
    assert!(last["output_file_id"].is_string() && last["error_file_id"].is_string(), "{last}");
    assert!(last["metadata"].is_null(), "it reports none");
}

#[test]
fn mistral_has_its_own_path_states_and_counts() {
    let (seen, states) = lived(MISTRAL, "status");
    assert_eq!(states, ["QUEUED", "QUEUED", "RUNNING", "RUNNING", "SUCCESS"]);
    let last = &seen[4];
    let counts = ["total_requests", "completed_requests", "succeeded_requests", "failed_requests"];
    assert_eq!(counts.map(|name| last[name].as_u64().unwrap()), [3, 3, 2, 1]);
    assert_eq!(last["metadata"], json!({"run": "1"}));
}

#[test]
fn results_are_in_two_files_in_the_shape_of_openai() {
    for shop in [OPENAI, AZURE, GROQ, TOGETHER, MISTRAL] {
        let simulator = held(two_hours());
        let mut client = Client::to(&simulator);
        let id = id_of(&shop.submit(&mut client, &rows(&PROMPTS)));
        simulator.finish_jobs();
        let job = shop.job(&mut client, &id);
        let names =
            if shop == MISTRAL { ["output_file", "error_file"] } else { ["output_file_id", "error_file_id"] };
        let output = shop.lines(&mut client, &job[names[0]]);
        assert_eq!(sorted(&output, "/custom_id"), ["r-0", "r-1"]);
        assert_eq!(sorted(&output, "/response/status_code"), ["200", "200"]);
        let texts = sorted(&output, "/response/body/choices/0/message/content");
        assert_eq!(texts, ["answer to: a", "answer to: b"]);
        assert_eq!(sorted(&output, "/error"), ["null", "null"]);
        let errors = shop.lines(&mut client, &job[names[1]]);
        assert_eq!(sorted(&errors, "/custom_id"), ["r-2"], "{shop:?}");
        assert_eq!(sorted(&errors, "/response/status_code"), ["400"]);
        assert!(errors[0]["response"]["body"]["error"]["message"].is_string(), "{}", errors[0]);
        assert_eq!(errors[0]["error"].is_null(), shop != MISTRAL);
    }
}

#[test]
fn the_responses_endpoint_has_batches_too() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let row = json!({
        "custom_id": "r", "method": "POST", "url": "/v1/responses", "body": {"model": "m", "input": "Hi"}
    });
    let file = id_of(&OPENAI.upload(&mut client, &row.to_string()).json());
    let body = json!({"input_file_id": file, "endpoint": "/v1/responses", "completion_window": "24h"});
    let job = client.post("/v1/batches", OPENAI.headers, &body.to_string()).json();
    simulator.finish_jobs();
    let job = OPENAI.job(&mut client, &id_of(&job));
    let output = OPENAI.lines(&mut client, &job["output_file_id"]);
    let text = output[0].pointer("/response/body/output/0/content/0/text");
    assert_eq!(text, Some(&json!("answer to: Hi")), "{}", output[0]);
}

#[test]
fn a_row_gets_the_text_and_the_usage_of_a_live_call_at_half_of_its_price() {
    let price: Price = parse_flags::parse_price("input=1,output=4").unwrap();
    let script = SimulatorScript::new().key("k").price(price);
    let simulator = held_with(script, two_hours());
    let mut client = Client::to(&simulator);
    let live = client.post(CHAT, OPENAI.headers, &chat("Tell me about otters.")).json();
    let id = id_of(&OPENAI.submit(&mut client, &rows(&["Tell me about otters."])));
    simulator.finish_jobs();
    let job = OPENAI.job(&mut client, &id);
    let line = OPENAI.lines(&mut client, &job["output_file_id"]).remove(0);
    let row = &line["response"]["body"];
    assert_eq!((&row["choices"], &row["usage"]), (&live["choices"], &live["usage"]));
    assert_eq!(job["usage"]["input_tokens"], live["usage"]["prompt_tokens"]);
    assert_eq!(job["usage"]["output_tokens"], live["usage"]["completion_tokens"]);
    let stats = simulator.stats();
    assert_eq!(stats.batches.cost_usd.unwrap().times(2), stats.cost_usd.unwrap());
    assert_eq!((stats.requests, stats.answers, stats.batches.answers), (1, 1, 1));
    assert_eq!(stats.batches.repeated_answers, 1, "the live call was the first");
}

#[test]
fn faults_with_a_count_go_on_from_job_to_job_and_to_live_calls() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    for _ in 0..2 {
        let id = id_of(&OPENAI.submit(&mut client, &rows(&["[[503x2]] a"])));
        simulator.finish_jobs();
        let job = OPENAI.job(&mut client, &id);
        assert!(job["output_file_id"].is_null());
        let errors = OPENAI.lines(&mut client, &job["error_file_id"]);
        assert_eq!(sorted(&errors, "/response/status_code"), ["503"]);
    }
    assert_eq!(client.post(CHAT, OPENAI.headers, &chat("[[503x2]] a")).status, 200);
}

#[test]
fn a_cancelled_job_keeps_the_rows_that_were_finished() {
    let prompts: Vec<String> = (0..100).map(|at| format!("prompt {at}")).collect();
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let id = id_of(&OPENAI.submit(&mut client, &rows(&prompts)));
    simulator.advance_job_clock(HOUR);
    let job = OPENAI.cancel(&mut client, &id).json();
    assert_eq!((&job["status"], &job["output_file_id"]), (&json!("cancelling"), &Value::Null));
    simulator.advance_job_clock(HOUR / 6);
    let job = OPENAI.job(&mut client, &id);
    assert_eq!(job["status"], "cancelled");
    let output = OPENAI.lines(&mut client, &job["output_file_id"]);
    let errors = OPENAI.lines(&mut client, &job["error_file_id"]);
    assert_eq!((output.len(), errors.len()), (50, 50));
    assert_eq!(sorted(&errors, "/error/code"), vec!["batch_cancelled"; 50]);
    assert_eq!(simulator.stats().batches.answers, 50, "only these are paid for");
    assert_eq!(OPENAI.cancel(&mut client, &id).status, 409);

    for (shop, during, after) in
        [(TOGETHER, "IN_PROGRESS", "CANCELLED"), (MISTRAL, "CANCELLATION_REQUESTED", "CANCELLED")]
    {
        let id = id_of(&shop.submit(&mut client, &rows(&["a"])));
        assert_eq!(shop.cancel(&mut client, &id).json()["status"], during);
        simulator.advance_job_clock(HOUR);
        assert_eq!(shop.job(&mut client, &id)["status"], after);
        assert_eq!(shop.cancel(&mut client, &id).status, 400);
    }
}

#[test]
fn requests_that_a_vendor_rejects_are_rejected_in_its_shape() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    assert_eq!(OPENAI.order(&mut client, "file-none").status, 404);
    assert_eq!(client.ask("GET", "/v1/batches/none", OPENAI.headers).status, 404);
    assert_eq!(client.ask("GET", "/v1/batches/none", "").status, 401);
    assert_eq!(TOGETHER.upload(&mut client, "").status, 200);
    assert_eq!(Shop { purpose: "batch", ..TOGETHER }.upload(&mut client, "").status, 400);
    let file = id_of(&OPENAI.upload(&mut client, &rows(&["a"])).json());
    for (field, value) in [
        ("endpoint", json!("/v1/embeddings")),
        ("completion_window", json!("1h")),
        ("metadata", json!({"number": 1})),
        ("input_file_id", json!(null)),
    ] {
        let mut body = json!({
            "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"
        });
        body[field] = value;
        let reply = client.post("/v1/batches", OPENAI.headers, &body.to_string());
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    }
    let reply = MISTRAL.order(&mut client, "none");
    assert_eq!((reply.status, &reply.json()["object"]), (404, &json!("error")));
}
