//! Every kind of damage that the settings of the batch APIs do.

use rowmill_simulator::{OutageKind, SimulatedBatches, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::support::jobs::{
    AZURE, CHAT_ENDPOINT, GROQ, HOUR, MISTRAL, OPENAI, Shop, TOGETHER, held, held_with, id_of, row, rows,
    sorted, two_hours,
};
use crate::support::talk::ANTHROPIC;
use crate::support::{Client, End};

fn prompts(count: usize) -> String {
    let prompts: Vec<String> = (0..count).map(|at| format!("prompt {at}")).collect();
    rows(&prompts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A finished job with these rows.
fn finished(simulator: &Simulator, client: &mut Client, shop: Shop, content: &str) -> Value {
    let id = id_of(&shop.submit(client, content));
    simulator.finish_jobs();
    shop.job(client, &id)
}

#[test]
fn a_file_with_mistakes_fails_with_their_codes_and_lines() {
    let simulator = held_with(SimulatorScript::new().key("k").model("m"), two_hours());
    let mut client = Client::to(&simulator);
    let good = row("a", "x").to_string();
    let changed = |pointer: &str, value: Value| {
        let mut row = row("b", "x");
        *row.pointer_mut(pointer).unwrap() = value;
        row.to_string()
    };
    let mut streamed = row("b", "x");
    streamed["body"]["stream"] = json!(true);
    for (second, code) in [
        ("{broken".to_owned(), "invalid_json_line"),
        ("[1]".to_owned(), "missing_required_parameter"),
        (good.clone(), "duplicate_custom_id"),
        (changed("/url", json!("/v1/responses")), "url_mismatch"),
        (changed("/method", json!("GET")), "invalid_method"),
        (changed("/body/model", json!("other")), "model_not_found"),
        (changed("/custom_id", Value::Null), "missing_required_parameter"),
        (row("b", "[[batch:too_blue]]").to_string(), "too_blue"),
        (streamed.to_string(), "invalid_request"),
    ] {
        let job = finished(&simulator, &mut client, OPENAI, &format!("{good}\n\n{second}\n"));
        assert_eq!(job["status"], "failed", "{code}");
        let error = &job["errors"]["data"][0];
        assert_eq!((&error["code"], &error["line"]), (&json!(code), &json!(2)), "{job}");
        assert!(
            job["failed_at"].is_i64() && job["output_file_id"].is_null() && job["in_progress_at"].is_null()
        );
    }
    let job = finished(&simulator, &mut client, AZURE, &format!("\u{feff}{good}"));
    assert_eq!(job["errors"]["data"][0]["code"], "invalid_json_line", "a byte order mark breaks a file");
    let job = finished(&simulator, &mut client, GROQ, "\n");
    assert_eq!(job["errors"]["data"][0]["code"], "empty_file");
    assert_eq!(simulator.stats().batches.rows, 0);
}

#[test]
fn rows_of_two_models_do_not_fit_in_one_job() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let mut other = row("b", "x");
    other["body"]["model"] = json!("other");
    let content = format!("{}\n{other}", row("a", "x"));
    let job = finished(&simulator, &mut client, OPENAI, &content);
    assert_eq!(job["errors"]["data"][0]["code"], "model_mismatch");
    let job = finished(&simulator, &mut client, TOGETHER, &content);
    assert_eq!(job["status"], "FAILED");
    assert!(job["error"].as_str().unwrap().contains("line 2, model_mismatch"), "{job}");
    let job = finished(&simulator, &mut client, MISTRAL, &content);
    assert_eq!((&job["status"], &job["errors"][0]["count"]), (&json!("FAILED"), &json!(1)));
}

#[test]
fn a_setting_makes_every_file_invalid() {
    let simulator = held(two_hours().validation_error("input_modified", 7));
    let mut client = Client::to(&simulator);
    let job = finished(&simulator, &mut client, AZURE, &prompts(1));
    let error = &job["errors"]["data"][0];
    assert_eq!((&error["code"], &error["line"]), (&json!("input_modified"), &json!(7)));
}

#[test]
fn waiting_tokens_are_limited_until_a_job_ends() {
    let simulator = held(two_hours().queued_tokens(30));
    let mut client = Client::to(&simulator);
    for shop in [OPENAI, AZURE] {
        // Eight rows of two tokens.
        let first = id_of(&shop.submit(&mut client, &prompts(8)));
        let second = id_of(&shop.submit(&mut client, &prompts(8)));
        simulator.advance_job_clock(HOUR);
        assert_eq!(shop.job(&mut client, &first)["status"], "in_progress");
        let job = shop.job(&mut client, &second);
        let code = &job["errors"]["data"][0]["code"];
        assert_eq!((&job["status"], code), (&json!("failed"), &json!("token_limit_exceeded")));
        simulator.advance_job_clock(HOUR);
        let third = id_of(&shop.submit(&mut client, &prompts(8)));
        simulator.finish_jobs();
        assert_eq!(shop.job(&mut client, &third)["status"], "completed");
    }
    let file = id_of(&MISTRAL.upload(&mut client, &prompts(20)).json());
    assert_eq!(MISTRAL.order(&mut client, &file).status, 429);
    let params =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x".repeat(200)}]});
    let body = json!({"requests": [{"custom_id": "a", "params": params}]}).to_string();
    let reply = client.post("/v1/messages/batches", ANTHROPIC, &body);
    assert_eq!((reply.status, &reply.json()["error"]["type"]), (429, &json!("rate_limit_error")));
    let request = json!({"contents": [{"parts": [{"text": "x".repeat(200)}]}]});
    let body = json!({"batch": {"inputConfig": {"requests": {"requests": [{"request": request}]}}}});
    let reply =
        client.post("/v1beta/models/m:batchGenerateContent", "x-goog-api-key: k\r\n", &body.to_string());
    assert_eq!((reply.status, &reply.json()["error"]["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
}

#[test]
fn a_job_that_expires_keeps_the_rows_that_were_finished_and_azures_do_not_expire() {
    let simulator = held(two_hours().window(HOUR));
    let mut client = Client::to(&simulator);
    let content = prompts(40);
    let jobs = [OPENAI, GROQ, TOGETHER, MISTRAL, AZURE]
        .map(|shop| (shop, id_of(&shop.submit(&mut client, &content))));
    simulator.advance_job_clock(3 * HOUR);
    for (shop, id) in jobs {
        let job = shop.job(&mut client, &id);
        let (state, output, errors) = match shop {
            TOGETHER => ("EXPIRED", "output_file_id", "error_file_id"),
            MISTRAL => ("TIMEOUT_EXCEEDED", "output_file", "error_file"),
            AZURE => ("completed", "output_file_id", "error_file_id"),
            _ => ("expired", "output_file_id", "error_file_id"),
        };
        assert_eq!(job["status"], state);
        let done = shop.lines(&mut client, &job[output]);
        assert_eq!(done.len(), if shop == AZURE { 40 } else { 20 });
        if shop == MISTRAL {
            assert!(job[errors].is_null());
        } else {
            let left = shop.lines(&mut client, &job[errors]);
            assert_eq!(sorted(&left, "/error/code"), vec!["batch_expired"; 40 - done.len()]);
        }
    }
}

#[test]
fn a_share_of_the_rows_is_in_neither_file_and_the_order_is_another() {
    let simulator = held(two_hours().missing_rows(0.2));
    let mut client = Client::to(&simulator);
    let job = finished(&simulator, &mut client, OPENAI, &prompts(200));
    let output = OPENAI.lines(&mut client, &job["output_file_id"]);
    let missing = 200 - output.len();
    assert!((20..60).contains(&missing), "{missing}");
    assert!(job["error_file_id"].is_null());
    let counts = &job["request_counts"];
    assert_eq!((&counts["total"], &counts["completed"]), (&json!(200), &json!(output.len())));
    let in_order: Vec<String> =
        output.iter().map(|line| line["custom_id"].as_str().unwrap().to_owned()).collect();
    assert_ne!(in_order, sorted(&output, "/custom_id"));
    assert!(!in_order.is_sorted_by_key(|id| id.trim_start_matches("r-").parse::<u32>().unwrap()));

    let same = held(two_hours().missing_rows(0.2));
    let mut client = Client::to(&same);
    let job = finished(&same, &mut client, OPENAI, &prompts(200));
    let again = OPENAI.lines(&mut client, &job["output_file_id"]);
    assert_eq!(again, output, "the same seed does the same");
}

#[test]
fn markers_in_rows_lose_them_or_leave_them_unfinished() {
    let simulator = held(two_hours().window(HOUR));
    let mut client = Client::to(&simulator);
    let content = rows(&["a [[batch:missing]]", "b [[batch:unfinished]]", "c", "d"]);
    let id = id_of(&OPENAI.submit(&mut client, &content));
    simulator.advance_job_clock(HOUR);
    let job = OPENAI.job(&mut client, &id);
    let errors = OPENAI.lines(&mut client, &job["error_file_id"]);
    assert!(sorted(&errors, "/custom_id").contains(&"r-1".to_owned()));
    let job = finished(&simulator, &mut client, GROQ, &content);
    let output = GROQ.lines(&mut client, &job["output_file_id"]);
    assert_eq!(sorted(&output, "/custom_id"), ["r-1", "r-2", "r-3"]);
}

#[test]
fn an_error_file_can_have_zero_bytes() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let job = finished(&simulator, &mut client, OPENAI, &prompts(1));
    assert!(job["error_file_id"].is_null());
    let job = finished(&simulator, &mut client, AZURE, &prompts(1));
    assert!(AZURE.lines(&mut client, &job["error_file_id"]).is_empty());
    let path = format!("/azure/openai/v1/files/{}", job["error_file_id"].as_str().unwrap());
    assert_eq!(client.ask("GET", &path, AZURE.headers).json()["bytes"], 0);

    let simulator = held(two_hours().empty_error_files());
    let mut client = Client::to(&simulator);
    let job = finished(&simulator, &mut client, OPENAI, &prompts(1));
    assert!(OPENAI.lines(&mut client, &job["error_file_id"]).is_empty());
}

#[test]
fn the_answer_to_create_can_be_lost_or_an_error_although_the_job_exists() {
    let simulator = held(two_hours().lose_first_create_responses(1).fail_first_create_responses(1, 502));
    let mut client = Client::to(&simulator);
    let file = id_of(&OPENAI.upload(&mut client, &prompts(1)).json());
    let reply = OPENAI.order(&mut client, &file);
    assert_eq!((reply.status, reply.end), (0, End::Short));
    let mut client = Client::to(&simulator);
    assert_eq!(OPENAI.order(&mut client, &file).status, 502);
    assert_eq!(OPENAI.order(&mut client, &file).status, 200);
    let listed = client.ask("GET", "/v1/batches", OPENAI.headers).json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 3);
    assert_eq!(listed["data"][2]["metadata"], json!({"run": "1"}), "by which the lost one is found");
    let stats = simulator.stats().batches;
    assert_eq!(
        (stats.jobs, stats.rows, stats.distinct_rows, stats.rows_submitted_more_than_once),
        (3, 3, 1, 2)
    );
}

#[test]
fn downloads_are_cut_and_slow_and_then_whole() {
    let simulator = held(two_hours().cut_first_downloads(1).slow_first_downloads(1));
    let mut client = Client::to(&simulator);
    let job = finished(&simulator, &mut client, OPENAI, &prompts(50));
    let path = format!("/v1/files/{}/content", job["output_file_id"].as_str().unwrap());
    let cut = client.ask("GET", &path, OPENAI.headers);
    assert_eq!((cut.status, cut.end), (200, End::Short));
    let mut client = Client::to(&simulator);
    client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{}\r\n", OPENAI.headers).as_bytes());
    simulator.release_bytes(63);
    let started = simulator.wait_until_blocking(|stats| stats.batches.result_downloads == 2);
    assert_eq!(started.batches.result_downloads, 2);
    simulator.release_bytes(1);
    let slow = client.receive();
    let whole = client.ask("GET", &path, OPENAI.headers);
    assert_eq!((slow.end, whole.end), (End::Whole, End::Whole));
    assert_eq!(slow.body, whole.body);
    assert!(whole.body.starts_with(&cut.body) && cut.body.len() == whole.body.len() / 2);
}

#[test]
fn uploads_are_cut_and_leave_nothing() {
    let simulator = held(two_hours().cut_first_uploads(1));
    let mut client = Client::to(&simulator);
    let reply = OPENAI.upload(&mut client, &prompts(50));
    assert_eq!((reply.status, reply.end), (0, End::Reset));
    let mut client = Client::to(&simulator);
    assert_eq!(OPENAI.upload(&mut client, &prompts(50)).status, 200);
    assert_eq!(simulator.stats().batches.uploads, 1);
}

#[test]
fn rows_and_bytes_of_a_job_are_limited() {
    let simulator = held(two_hours().max_rows(2).max_bytes(1_000));
    let mut client = Client::to(&simulator);
    let job = finished(&simulator, &mut client, OPENAI, &prompts(3));
    assert_eq!(job["errors"]["data"][0]["code"], "too_many_tasks");
    assert_eq!(OPENAI.upload(&mut client, &prompts(50)).status, 413);
    let row = |id: &str, text: &str| {
        let params = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]});
        json!({"custom_id": id, "params": params})
    };
    let many = json!({"requests": [row("a", "x"), row("b", "x"), row("c", "x")]});
    let large = json!({"requests": [row("a", &"x".repeat(2_000))]});
    for (body, status) in [(many, 400), (large, 413)] {
        let reply = client.post("/v1/messages/batches", ANTHROPIC, &body.to_string());
        assert_eq!(reply.status, status, "{}", reply.body);
    }
}

#[test]
fn a_row_can_have_any_fault_of_a_live_call() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let content =
        rows(&["[[429]]", "[[reset]]", "[[garbage]]", "[[empty]]", "[[length]] long", "[[drip]] d"]);
    let job = finished(&simulator, &mut client, OPENAI, &content);
    let output = OPENAI.lines(&mut client, &job["output_file_id"]);
    assert_eq!(sorted(&output, "/custom_id"), ["r-2", "r-3", "r-4", "r-5"]);
    let of = |id: &str| output.iter().find(|line| line["custom_id"] == id).unwrap();
    assert!(of("r-2")["response"]["body"].as_str().unwrap().contains("<html>"));
    assert_eq!(of("r-4").pointer("/response/body/choices/0/finish_reason"), Some(&json!("length")));
    let errors = OPENAI.lines(&mut client, &job["error_file_id"]);
    assert_eq!(sorted(&errors, "/response/status_code"), ["429", "null"]);
    assert_eq!(sorted(&errors, "/error/code"), ["null", "request_timeout"]);
}

#[test]
fn a_request_in_a_row_that_is_wrong_is_the_error_of_that_row() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let mut wrong = row("b", "x");
    wrong["body"]["messages"] = json!([]);
    let job = finished(&simulator, &mut client, OPENAI, &format!("{}\n{wrong}", row("a", "x")));
    assert_eq!(job["request_counts"], json!({"total": 2, "completed": 1, "failed": 1}));
    let errors = OPENAI.lines(&mut client, &job["error_file_id"]);
    assert_eq!(sorted(&errors, "/response/status_code"), ["400"]);
}

#[test]
fn an_outage_concerns_jobs_too() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let id = id_of(&OPENAI.submit(&mut client, &prompts(1)));
    simulator.begin_outage(OutageKind::Status(529));
    assert_eq!(client.ask("GET", &format!("/v1/batches/{id}"), OPENAI.headers).status, 529);
    simulator.end_outage();
    assert_eq!(OPENAI.job(&mut client, &id)["status"], "validating");
}

#[test]
fn jobs_end_by_themselves_at_the_scale_of_their_time() {
    let batches = SimulatedBatches::new().duration(2 * HOUR).time_scale(1e6);
    let simulator = Simulator::start_blocking(SimulatorScript::new().batches(batches));
    let mut client = Client::to(&simulator);
    let id = id_of(&OPENAI.submit(&mut client, &prompts(3)));
    simulator.wait_until_blocking(|stats| stats.batches.answers == 3);
    simulator.advance_job_clock(HOUR);
    let job = OPENAI.job(&mut client, &id);
    assert_eq!(job["status"], "completed");
    let lasted = job["completed_at"].as_i64().unwrap() - job["created_at"].as_i64().unwrap();
    assert!((7_199..=7_201).contains(&lasted), "{lasted}");
    assert_eq!(job["endpoint"], CHAT_ENDPOINT);
}
