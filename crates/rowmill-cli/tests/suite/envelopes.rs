//! The output of a run: envelopes, errors, telemetry, summary, progress, and when they are written.

use crate::support;

use crate::support::{KEY, Place, each, finish, keys, row_numbers, scripted, simulated};
use rowmill_testkit::SimulatorScript;
use serde_json::{Value, json};

#[test]
fn an_envelope_is_one_compact_line_with_its_fields_in_order() {
    let (_simulator, place) = simulated();
    place.write(
        "rows.jsonl",
        "{\"k\": \"a\", \"t\": \"é \\\"q\\\"\"}\n{ \"k\" : 2, \"t\" : \"[[400]]\" }\n{\"k\":\"c\"}\n",
    );
    place.run_rows(&["-m", "openai.m", "-p", "{{t}}", "--id-field", "k", "--include-input"]).code(3);
    let lines = [
        r#"{"id":"a","row_number":1,"ok":true,"result":"answer to: é \"q\"","error":null,"input":{"k":"a","t":"é \"q\""}}"#,
        r#"{"id":"2","row_number":2,"ok":false,"result":null,"error":{"type":"BadRequest","message":"The request was refused.","status":400,"code":"invalid_request_error","attempts":1},"input":{"k":2,"t":"[[400]]"}}"#,
        r#"{"id":"c","row_number":3,"ok":false,"result":null,"error":{"type":"MissingTemplateField","message":"Missing template field: t"},"input":{"k":"c"}}"#,
    ];
    assert_eq!(place.read("out.jsonl"), lines.map(|line| format!("{line}\n")).concat());
}

#[test]
fn without_an_id_field_the_row_number_is_the_id_and_there_is_no_input() {
    let place = Place::new();
    place.write("rows.jsonl", "\n{\"t\":1}\n");
    place.run_rows(&["-m", "passthrough", "-p", "x"]).ok();
    let line = r#"{"id":2,"row_number":2,"ok":true,"result":"x","error":null}"#;
    assert_eq!(place.read("out.jsonl"), format!("{line}\n"));
}

#[test]
fn failures_keep_status_code_attempts_and_the_text_that_came() {
    for (marker, kind, status, attempts, raw_text) in [
        ("[[500]]", "ServerError", json!(500), 2, Value::Null),
        ("[[529]]", "ServerError", json!(529), 2, Value::Null),
        ("[[reset]]", "ConnectionError", Value::Null, 2, Value::Null),
        ("[[truncate]]", "ConnectionError", Value::Null, 2, Value::Null),
        ("[[garbage]]", "InvalidResponse", json!(200), 2, Value::Null),
        ("[[400]]", "BadRequest", json!(400), 1, Value::Null),
        ("[[empty]]", "EmptyAnswer", Value::Null, 1, Value::Null),
        ("[[refusal]]", "Refusal", Value::Null, 1, json!("I'm sorry, but I can't help with that.")),
        ("[[length]]", "OutputTruncated", Value::Null, 1, json!("answer to:")),
        ("[[filter]]", "ContentFilter", Value::Null, 1, Value::Null),
    ] {
        let (_simulator, place) = simulated();
        // A second row without an error shows that the provider is available.
        place.write("rows.jsonl", format!("{{\"t\":\"ok\"}}\n{{\"t\":\"{marker}\"}}\n"));
        let flags = ["-m", "openai.m", "-p", "{{t}}", "--retries", "1", "--retry-wait", "1ms"];
        place.run_rows(&[&flags[..], &["--parallel", "1"]].concat()).code(3);
        let envelopes = place.json("out.jsonl");
        let error = &envelopes[1]["error"];
        assert_eq!((&envelopes[1]["ok"], &envelopes[1]["result"]), (&json!(false), &Value::Null), "{marker}");
        let found = [&error["type"], &error["attempts"]];
        assert_eq!(found, [&json!(kind), &json!(attempts)], "{marker}: {error}");
        assert_eq!(error.get("status").cloned().unwrap_or_default(), status, "{marker}: {error}");
        let raw = error.get("raw_text").cloned().unwrap_or_default();
        assert!(
            raw == raw_text
                || raw.as_str().is_some_and(|text| text.starts_with(raw_text.as_str().unwrap_or("?"))),
            "{marker}: {error}"
        );
    }
}

#[test]
fn envelopes_are_in_input_order_though_the_first_row_ends_last() {
    let (simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"[[drip]]\"}\n{\"t\":\"b\"}\n{\"t\":\"c\"}\n{\"t\":\"[[400]]\"}\n");
    let flags = ["--telemetry-output", "times.jsonl", "--error-output", "bad.jsonl", "--parallel", "4"];
    let child = place.start_rows(&[&["-m", "openai.m"], &flags[..]].concat());
    let arrived = place.wait_for_lines("times.jsonl", 3);
    // The other rows wait for the first one, but they are on disk already.
    assert_eq!((place.read("out.jsonl"), place.read("bad.jsonl")), (String::new(), String::new()));
    let ledger = place.read(".out.jsonl.rowmill/ledger-1.jsonl");
    assert_eq!(ledger.matches("\"event\":\"row_ended\"").count(), 3);
    assert!(!arrived.contains("\"row_number\":1,"));
    simulator.release_bytes(1 << 20);
    finish(child).code(3);
    assert_eq!(row_numbers(&place.json("out.jsonl")), [1, 2, 3, 4]);
    assert_eq!(row_numbers(&place.json("bad.jsonl")), [4]);
    assert_eq!(row_numbers(&place.json("times.jsonl")).last(), Some(&1));
}

#[test]
fn many_rows_at_once_leave_one_envelope_each_in_order() {
    let script = SimulatorScript::new().key(KEY).jitter(std::time::Duration::from_millis(3)).keep_requests(0);
    let (simulator, place) = scripted(script);
    place.write_rows(600);
    place.run_rows(&["-m", "openai.m", "-p", "{{n}}", "--parallel", "200"]).ok();
    let envelopes = place.json("out.jsonl");
    assert_eq!(row_numbers(&envelopes), (1..=600).collect::<Vec<u64>>());
    let results: Vec<Value> = (1..=600).map(|n| json!(format!("answer to: {n}"))).collect();
    assert_eq!(each(&envelopes, "/result"), results);
    assert_eq!((simulator.stats().answers, simulator.stats().repeated_answers), (600, 0));
}

#[test]
fn finished_rows_are_on_disk_while_the_run_goes_on() {
    let (simulator, place) = scripted(SimulatorScript::new().hold_after(3));
    place.write_rows(5);
    let child = place.start_rows(&["-m", "openai.m", "--parallel", "1"]);
    simulator.wait_until_blocking(|stats| stats.requests == 4);
    // No call is sent before the rows that ended are in the ledger.
    let ledger = place.read(".out.jsonl.rowmill/ledger-1.jsonl");
    assert_eq!(ledger.matches("\"event\":\"row_ended\"").count(), 3);
    let output = place.wait_for_lines("out.jsonl", 3);
    assert_eq!(row_numbers(&support::json_lines(&output)), [1, 2, 3]);
    simulator.release();
    finish(child).ok();
    assert_eq!(place.json("out.jsonl").len(), 5);
    assert_eq!(place.names("."), ["out.jsonl", "rows.jsonl", "tmp"]);
}

#[test]
fn telemetry_tells_times_and_tokens_of_every_row_failed_ones_included() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"12345678\"}\n{\"t\":\"[[503x1]][[length]]\"}\n{}\n");
    let flags = ["-m", "openai.m", "-p", "{{t}}", "--retry-wait", "1ms", "--parallel", "1"];
    place.run_rows(&[&flags[..], &["--telemetry-output", "times.jsonl"]].concat()).code(3);
    let mut lines = place.json("times.jsonl");
    lines.sort_by_key(|line| line["row_number"].as_u64());
    assert_eq!(keys(&lines[0]), ["id", "row_number", "ok", "timing", "usage"]);
    assert_eq!(keys(&lines[0]["timing"]), ["start_time", "end_time", "duration_ms", "time_to_response_ms"]);
    assert_eq!(keys(&lines[0]["usage"]), ["schema", "turn", "provider_attempts"]);
    assert_eq!(
        lines[0]["usage"]["turn"],
        json!({"input_tokens": 2, "cached_tokens": 0, "cache_write_tokens": 0, "output_tokens": 5, "reasoning_tokens": 0})
    );
    let attempt = &lines[0]["usage"]["provider_attempts"][0];
    let names = ["ok", "model", "service_tier", "time_to_response_ms", "tokens", "raw_usage"];
    assert_eq!((keys(attempt), &attempt["model"]), (names.to_vec(), &json!("m")));

    let failed = &lines[1];
    assert_eq!((&failed["ok"], failed["timing"]["duration_ms"].as_f64() > Some(0.0)), (&json!(false), true));
    let attempts = &failed["usage"]["provider_attempts"];
    assert_eq!(attempts.as_array().map(Vec::len), Some(2));
    let first = [&attempts[0]["ok"], &attempts[0]["error"], &attempts[0]["status"]];
    assert_eq!(first, [&json!(false), &json!("ServerError"), &json!(503)]);
    assert!(failed["usage"]["turn"]["output_tokens"].as_u64() > Some(0), "{failed}");

    assert_eq!((&lines[2]["ok"], &lines[2]["usage"]), (&json!(false), &json!({})));
    assert!(lines[2]["timing"]["duration_ms"].is_number());
}

#[test]
fn the_error_file_holds_the_failed_envelopes_and_is_there_even_when_empty() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"a\"}\n{\"t\":\"[[400]]\"}\nbroken\n");
    place.write("bad.jsonl", "stale\n");
    let errors = ["-m", "openai.m", "--error-output", "bad.jsonl"];
    place
        .run_rows(&errors)
        .code(1)
        .says("error[RM1301]: `bad.jsonl`, given to `--error-output`, has content");
    place.run_rows(&[&errors[..], &["--overwrite"]].concat()).code(3);
    let output = place.read("out.jsonl");
    let failed: Vec<&str> = output.lines().filter(|line| line.contains("\"ok\":false")).collect();
    assert_eq!(place.read("bad.jsonl").lines().collect::<Vec<_>>(), failed);
    place.write_rows(1);
    place.run_rows(&["-m", "openai.m", "--error-output", "bad.jsonl", "--overwrite"]).ok();
    assert_eq!(place.read("bad.jsonl"), "");
}

#[test]
fn the_summary_has_its_fields_in_order_on_standard_output_and_in_its_file() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"a\"}\n{\"t\":\"[[429x1]]\"}\n{\"t\":\"[[400]]\"}\n{\"t\":\"d\"}\n");
    place.write("i.md", "Be {{x}}.");
    let flags = ["-m", "openai/m?temp=0", "--instruction", "i.md", "--var", "x=y", "--limit", "3"];
    let files = ["--summary-output", "sum.json", "--retry-wait", "1ms", "--parallel", "2"];
    let ended = place.run_rows(&[&flags[..], &files].concat()).code(3);
    assert_eq!(place.read("sum.json"), ended.stdout);
    assert!(ended.stdout.starts_with("{\n  \"run\": \""));
    let summary = ended.summary();
    let names = "run model input output schema schema_model instruction variables template output_mode parallel \
                 started_at completed_at status outcome_unknown_rows spent_usd input_rows selected_rows processed_rows \
                 skipped_rows failed_rows failures calls duration_ms timing_ms usage cost reused cache";
    assert_eq!(keys(&summary), names.split_whitespace().collect::<Vec<_>>());
    for (name, value) in [
        ("model", json!("openai.m?temperature=0")),
        ("input", json!("rows.jsonl")),
        ("output", json!("out.jsonl")),
        ("schema", Value::Null),
        ("instruction", json!("i.md")),
        ("variables", json!(["x"])),
        ("template", json!("<default>")),
        ("output_mode", json!("text")),
        ("parallel", json!(2)),
        ("status", json!("finished")),
        ("selected_rows", json!(3)),
        ("processed_rows", json!(3)),
        ("skipped_rows", json!(0)),
        ("failed_rows", json!(1)),
        ("failures", json!({"BadRequest": 1})),
        ("calls", json!({"made": 4, "failed": {"RateLimited": 1, "BadRequest": 1}, "outcome_unknown": 0})),
    ] {
        assert_eq!(summary[name], value, "{name}");
    }
    assert_eq!(keys(&summary["timing_ms"]), ["duration", "ttft", "time_to_response"]);
    assert_eq!(keys(&summary["timing_ms"]["duration"]), ["count", "min", "mean", "median", "max"]);
    assert_eq!(
        (&summary["timing_ms"]["duration"]["count"], &summary["timing_ms"]["ttft"]),
        (&json!(3), &json!({"count": 0}))
    );
    assert_eq!(
        (&summary["usage"]["rows_with_usage"], &summary["usage"]["usage_coverage_percent"]),
        (&json!(2), &json!(66.67))
    );
    assert_eq!(summary["cache"]["rows_with_cache_activity"], json!(0));
}

#[test]
fn on_standard_output_there_are_only_envelopes_and_talk_is_on_standard_error() {
    let place = Place::new();
    place.write_rows(2);
    let ended = place.run(&["-i", "rows.jsonl", "-o", "-", "-m", "passthrough", "-p", "{{n}}"]).ok();
    assert_eq!(row_numbers(&ended.lines()), [1, 2]);
    assert!(ended.stderr.starts_with("2 rows: 2 ok in "), "{}", ended.stderr);
    assert_eq!(
        (place.names("."), place.names("tmp")),
        (vec!["rows.jsonl".to_owned(), "tmp".to_owned()], vec![])
    );
}

#[test]
fn the_summary_for_people_names_what_failed_and_what_to_do_next() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"a\"}\n{\"t\":\"[[503x1]]\"}\n{\"t\":\"[[400]]\"}\n");
    let ended = place.run_rows(&["-m", "openai.m", "-p", "{{t}}", "--retry-wait", "1ms"]).code(3);
    let ended = ended.says("3 rows: 2 ok, 1 failed in ").says("tokens: ").says("failed: 1 BadRequest\n");
    let ended = ended
        .says("output: out.jsonl\n")
        .says("next:   run the same command with `--resume` to retry the failed rows\n");
    let repeated = "retries: 2 of 4 calls failed and were retried or given up: 1 ServerError, 1 BadRequest\n";
    let example = "        BadRequest: row 3: The request was refused.\n";
    let ended = ended.says(repeated).says(example);
    let last = "next:   run the same command with `--resume` to retry the failed rows\n";
    assert!(ended.stderr.ends_with(last), "{}", ended.stderr);
}

#[test]
fn a_run_without_a_terminal_is_silent_but_for_its_summary_and_the_lines_asked_for() {
    let place = Place::new();
    place.write_rows(10);
    let run = |more: &[&str]| {
        let flags = ["-m", "passthrough", "-p", "{{n}}", "--overwrite", "--no-final-summary"];
        place.run_rows(&[&flags[..], more].concat()).ok().stderr
    };
    let summary_lines = run(&[]).lines().count();
    let lines: Vec<String> = run(&["--progress-every", "4"]).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), summary_lines + 2);
    // The line starts with the finished share once it is known.
    let tells = |line: &str, rows: &str| format!(" {line}").contains(rows);
    assert!(tells(&lines[0], " 4 rows, ") && tells(&lines[1], " 8 rows, "), "{lines:?}");
    for quiet in [&["--no-progress"][..], &["--progress-every", "1", "--no-progress"]] {
        assert_eq!(run(quiet).lines().count(), summary_lines);
    }
}
