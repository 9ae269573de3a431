//! Faults between rowmill and a provider, seen from outside: temporary faults are retried, permanent
//! ones fail their row and no other, and none is mistaken for a result.

use std::time::Duration;

use crate::faults_support::{Home, PROTOCOLS, assert_all_ok, attempts};
use crate::support::simulated;
use rowmill_testkit::{FaultTrigger, SimulatedFault, Simulator, SimulatorScript};
use serde_json::Value;

/// Every temporary fault: its marker, the error type if it persists, and its status.
const PASSING: [(&str, &str, Option<u16>); 10] = [
    ("408", "ServerError", Some(408)),
    ("409", "ServerError", Some(409)),
    ("500", "ServerError", Some(500)),
    ("503", "ServerError", Some(503)),
    ("529", "ServerError", Some(529)),
    ("reset", "ConnectionError", None),
    ("midway", "ConnectionError", None),
    ("truncate", "ConnectionError", None),
    ("garbage", "InvalidResponse", Some(200)),
    ("hang", "Timeout", None),
];

/// Answers that are complete but not results: marker, error type, whether there is a text to keep.
const NO_RESULTS: [(&str, &str, bool); 4] = [
    ("refusal", "Refusal", true),
    ("empty", "EmptyAnswer", false),
    ("length", "OutputTruncated", true),
    ("filter", "ContentFilter", false),
];

fn error_of(envelope: &Value) -> (&str, Option<u64>, Option<u64>) {
    let error = &envelope["error"];
    (error["type"].as_str().unwrap_or_default(), error["status"].as_u64(), error["attempts"].as_u64())
}

#[test]
fn a_passing_fault_is_tried_again_until_the_row_is_ok_and_every_try_is_reported() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(PASSING.map(|(marker, ..)| format!("say [[{marker}x2]]")));
    home.run()
        .on(&simulator)
        .args(&["--timeout", "200ms", "--max-outage", "0", "--telemetry-output", "telemetry.jsonl"])
        .ends_with(0);
    assert_all_ok(&home.envelopes(), PASSING.len());
    let telemetry = home.json_lines("telemetry.jsonl");
    assert_eq!(telemetry.len(), PASSING.len());
    for line in telemetry {
        let (marker, kind, status) = PASSING[line["row_number"].as_u64().unwrap() as usize - 1];
        assert_eq!(attempts(&line), 3, "{marker}: {line}");
        let calls = &line["usage"]["provider_attempts"];
        assert_eq!(
            [calls[0]["ok"].as_bool(), calls[2]["ok"].as_bool()],
            [Some(false), Some(true)],
            "{marker}: {line}"
        );
        assert_eq!(calls[0]["error"], kind, "{marker}");
        assert_eq!(calls[0]["status"].as_u64(), status.map(u64::from), "{marker}");
    }
}

#[test]
fn a_fault_that_lasts_fails_its_row_with_type_status_and_attempts() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(PASSING.map(|(marker, ..)| format!("say [[{marker}]]")));
    home.run()
        .on(&simulator)
        .args(&["--timeout", "200ms", "--max-outage", "0"])
        .args(&["--retries", "1", "--telemetry-output", "telemetry.jsonl"])
        .ends_with(3);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), PASSING.len());
    for (envelope, (marker, kind, status)) in envelopes.iter().zip(PASSING) {
        assert_eq!((&envelope["ok"], &envelope["result"]), (&Value::Bool(false), &Value::Null), "{marker}");
        assert_eq!(error_of(envelope), (kind, status.map(u64::from), Some(2)), "{marker}: {envelope}");
        assert!(!envelope["error"]["message"].as_str().unwrap().is_empty(), "{marker}");
    }
    // Rows that failed keep their timing and their attempts.
    for line in home.json_lines("telemetry.jsonl") {
        assert_eq!(attempts(&line), 2, "{line}");
        assert!(line["timing"]["duration_ms"].as_f64().unwrap() > 0.0, "{line}");
    }
    assert_eq!(simulator.stats().requests, 2 * PASSING.len() as u64);
}

#[test]
fn a_wait_that_the_provider_asks_for_is_kept() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["say [[429x1,retry-after=1]]", "say [[503x1,retry-after-ms=300]]"]);
    home.run().on(&simulator).args(&["--telemetry-output", "telemetry.jsonl"]).ends_with(0);
    for line in home.json_lines("telemetry.jsonl") {
        let least = [1000.0, 300.0][line["row_number"].as_u64().unwrap() as usize - 1];
        assert!(line["timing"]["duration_ms"].as_f64().unwrap() >= least, "{line}");
        assert_eq!(attempts(&line), 2);
    }
}

#[test]
fn a_request_that_the_provider_refuses_is_not_sent_again() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[400]]", "b [[422]]", "c"]);
    home.run().on(&simulator).ends_with(3);
    let envelopes = home.envelopes();
    assert_eq!(error_of(&envelopes[0]), ("BadRequest", Some(400), Some(1)));
    assert_eq!(error_of(&envelopes[1]), ("BadRequest", Some(422), Some(1)));
    assert_eq!(envelopes[2]["ok"], true);
    assert_eq!(simulator.stats().requests, 3);
}

#[test]
fn an_answer_that_is_no_result_fails_with_a_type_of_its_own_and_keeps_the_text() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home =
            Home::with_prompts(NO_RESULTS.map(|(marker, ..)| format!("tell a long story [[{marker}]]")));
        home.run().model(&simulator, model).ends_with(3);
        for (envelope, (marker, kind, has_text)) in home.envelopes().iter().zip(NO_RESULTS) {
            assert_eq!(envelope["ok"], false, "{model} {marker}");
            // Google has no refusals of its own: its content filter blocks what its models will not
            // answer.
            let kind = if model == "google.m" && marker == "refusal" { "ContentFilter" } else { kind };
            assert_eq!(error_of(envelope).0, kind, "{model} {marker}: {envelope}");
            let text = envelope["error"]["raw_text"].as_str().unwrap_or_default();
            assert!(!has_text || !text.is_empty(), "{model} {marker}: {envelope}");
        }
        // None of them is a transmission fault, so none is retried.
        assert_eq!(simulator.stats().requests, NO_RESULTS.len() as u64, "{model}");
    }
}

#[test]
fn a_failure_of_the_provider_is_never_a_result_in_any_protocol() {
    let faults = PASSING.map(|(marker, ..)| marker).into_iter().chain(["400", "422", "413"]);
    for model in PROTOCOLS {
        for streaming in ["", "?stream=true", "?stream=false"] {
            let simulator = Simulator::start_blocking(SimulatorScript::new());
            let home = Home::with_prompts(faults.clone().map(|marker| format!("say [[{marker}]]")));
            let model = format!("{model}{streaming}");
            let args = ["--timeout", "300ms", "--retries", "1", "--parallel", "64", "--max-outage", "0"];
            let ended = home.run().model(&simulator, &model).args(&args).end();
            assert_eq!(ended.code, Some(3), "{model}: {}", ended.err);
            let envelopes = home.envelopes();
            assert_eq!(envelopes.len(), PASSING.len() + 3, "{model}");
            for envelope in envelopes {
                assert_eq!(envelope["ok"], false, "{model}: {envelope}");
                assert_eq!(envelope["result"], Value::Null, "{model}: {envelope}");
                assert!(envelope["error"]["type"].is_string(), "{model}: {envelope}");
            }
        }
    }
}

#[test]
fn a_refused_key_stops_the_run_at_once_and_the_right_key_finishes_it() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(SimulatorScript::new().key("right"));
        let home = Home::with_rows(500);
        let args = ["--parallel", "4"];
        let ended = home.run().model(&simulator, model).key("wrong-key").args(&args).ends_with(1);
        ended.says(&["error[RM2001]", "help: set the right key", "--resume"]);
        assert_eq!(ended.err.matches("error[").count(), 1, "{}", ended.err);
        assert!(!ended.err.contains("wrong-key"), "the key is printed: {}", ended.err);
        let stats = simulator.stats();
        assert!(stats.requests <= 4 && stats.answers == 0, "{model}: {stats:?}");
        assert!(home.envelopes().len() <= 4, "rows that were not asked have no envelope");

        let ended = home.run().model(&simulator, model).key("right").args(&["--resume"]).ends_with(0);
        ended.says(&["resuming: skipping 0 finished rows"]);
        assert_all_ok(&home.envelopes(), 500);
        assert_eq!(simulator.stats().answers, 500, "{model}");
    }
}

#[test]
fn a_model_that_does_not_exist_stops_the_run_at_once_and_the_right_one_finishes_it() {
    for (wrong, right) in [
        ("generic.nope", "generic.m"),
        ("responses.nope", "responses.m"),
        ("anthropic.nope", "anthropic.m"),
        ("google.nope", "google.m"),
    ] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().model("m"));
        let home = Home::with_rows(300);
        let ended = home.run().model(&simulator, wrong).args(&["--parallel", "4"]).ends_with(1);
        ended.says(&[
            "error[RM2002]",
            "nope",
            "help: correct `--model` and run again with `--resume --accept-changes`",
        ]);
        assert_eq!(ended.err.matches("error[").count(), 1, "{}", ended.err);
        assert!(simulator.stats().requests <= 4, "{wrong}: {:?}", simulator.stats());

        let args = ["--resume", "--accept-changes"];
        home.run().model(&simulator, right).args(&args).ends_with(0);
        assert_all_ok(&home.envelopes(), 300);
        assert_eq!(simulator.stats().answers, 300, "{right}");
    }
}

#[test]
fn a_path_that_the_server_does_not_have_is_reported_as_a_wrong_base_url() {
    let (simulator, mut place) = simulated();
    place.write_rows(3);
    place.set("GENERIC_BASE_URL", &format!("{}//", simulator.url()));
    let ended = place.run_rows(&["-m", "generic.m", "-p", "{{n}}"]).code(1);
    ended
        .says("error[RM2002]")
        .says("help: correct the base URL (`rowmill models` shows it), or else `--model`");
}

#[test]
fn nothing_at_the_address_stops_the_run_after_the_first_rows_tries() {
    let home = Home::with_rows(1000);
    let args = ["-m", "generic.m", "--parallel", "4", "--retries", "2", "--final-summary"];
    let ended = home.run().at("http://127.0.0.1:1").args(&args).ends_with(1);
    ended.says(&[
        "error[RM2003]",
        "127.0.0.1:1",
        "help: start the server or correct the base URL",
        "--resume",
    ]);
    let summary = ended.summary();
    assert!(summary["processed_rows"].as_u64().unwrap() <= 8, "{summary}");
    assert!(summary["calls"]["made"].as_u64().unwrap() <= 24, "{summary}");

    let simulator = Simulator::start_blocking(SimulatorScript::new());
    home.run().on(&simulator).args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 1000);
    assert_eq!(simulator.stats().answers, 1000);
}

#[test]
fn a_server_that_goes_away_for_too_long_stops_the_run_and_nothing_is_asked_twice() {
    let home = Home::with_rows(200);
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(50));
    let running = home.run().on(&simulator).args(&["--parallel", "4", "--max-outage", "1s"]).start();
    simulator.wait_until_blocking(|stats| stats.answers == 50 && stats.in_flight == 4);
    drop(simulator);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    ended.says(&["waiting for the provider to come back", "error[RM2005]", "--resume"]);
    let ok = home.envelopes().iter().filter(|envelope| envelope["ok"] == true).count();
    assert_eq!(ok, 50);

    let simulator = Simulator::start_blocking(SimulatorScript::new());
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).says(&["resuming: skipping 50 finished rows"]);
    assert_all_ok(&home.envelopes(), 200);
    assert_eq!(simulator.stats().requests, 150);
}

#[test]
fn a_single_row_that_cannot_connect_does_not_stop_a_run_that_others_go_on_with() {
    // The faults are assigned to calls by number, so that other rows are answered meanwhile.
    let script = SimulatorScript::new().fault(FaultTrigger::Rate(0.3), SimulatedFault::Reset).seed(5);
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_rows(300);
    home.run().on(&simulator).args(&["--parallel", "16", "--retries", "12"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 300);
}

#[test]
fn rows_that_fail_do_not_disturb_the_others_at_64_in_flight() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().latency(Duration::from_millis(2)));
    let markers = ["500", "reset", "garbage", "truncate", "400", "refusal", "empty", "503x2", "midwayx1"];
    let prompts = (1..=900).map(|number| match number % 4 {
        0 => format!("row {number} [[{}]]", markers[number / 4 % markers.len()]),
        _ => format!("row {number}"),
    });
    let home = Home::with_prompts(prompts);
    let args = ["--parallel", "64", "--retries", "3", "--max-outage", "0"];
    home.run().on(&simulator).args(&args).ends_with(3);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), 900);
    for (number, envelope) in (1..).zip(&envelopes) {
        let recovers = number / 4 % markers.len() >= 7;
        assert_eq!(envelope["row_number"], number);
        assert_eq!(envelope["ok"], number % 4 != 0 || recovers, "{envelope}");
    }
    assert!(simulator.stats().max_in_flight > 1);
}
