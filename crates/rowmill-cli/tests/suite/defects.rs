//! One test per defect of the tool that this one replaces: none of them exists here.

use std::fmt::Write;

use crate::faults_support::{Home, PROTOCOLS, assert_all_ok, parse_lines};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rustix::process::Signal;

#[test]
fn defect_1_a_failure_of_the_provider_is_not_recorded_as_ok() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::with_prompts(["a [[500]]", "b [[503]]", "c"]);
        home.run().model(&simulator, model).args(&["--retries", "1"]).ends_with(3);
        let ok: Vec<bool> = home.envelopes().iter().map(|line| line["ok"] == true).collect();
        assert_eq!(ok, [false, false, true], "{model}");
        // And a resume retries them instead of skipping them forever.
        home.run()
            .model(&simulator, model)
            .args(&["--retries", "0", "--resume"])
            .ends_with(3)
            .resumed(1, 2, 0);
    }
}

#[test]
fn defect_1_a_failure_of_the_provider_keeps_its_cause_when_there_is_a_schema() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[500]]"]);
    home.write("schema.json", r#"{"type":"object"}"#);
    home.run().on(&simulator).args(&["--retries", "0", "--json-schema", "schema.json"]).ends_with(3);
    let error = &home.envelopes()[0]["error"];
    assert_eq!((&error["type"], &error["status"]), (&"ServerError".into(), &500.into()));
}

#[test]
fn defect_2_ctrl_c_stops_the_run_and_writes_no_empty_result() {
    for parallel in ["1", "4"] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(4));
        let home = Home::with_rows(30);
        let mut running = home.run().on(&simulator).args(&["--parallel", parallel]).start();
        let in_flight = parallel.parse::<u64>().unwrap();
        simulator.wait_until_blocking(|stats| stats.requests == 4 + in_flight);
        running.signal(Signal::INT);
        running.wait_for_talk("stopping");
        simulator.release();
        assert_eq!(running.end().code, Some(130));
        let envelopes = home.envelopes();
        assert_all_ok(&envelopes, 4 + in_flight as usize);
        assert!(envelopes.iter().all(|line| line["result"].as_str().is_some_and(|text| !text.is_empty())));
    }
}

#[test]
fn defect_3_the_exit_code_tells_of_failed_rows_and_a_threshold_works_in_parallel() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts((1..=200).map(|number| format!("row {number} [[400]]")));
    let ended = home.run().on(&simulator).args(&["--parallel", "8", "--max-errors", "10"]).ends_with(4);
    ended.says(&["stopped after 10 failed rows"]);
    let failed = home.envelopes().len();
    assert!((10..=10 + 8).contains(&failed), "{failed} rows: those in flight end too");
    assert!(simulator.stats().requests <= 18);
    home.run().on(&simulator).args(&["--overwrite", "--keep-going"]).ends_with(3);
}

#[test]
fn defect_4_a_torn_line_and_a_missing_newline_do_not_block_or_corrupt_a_resume() {
    for cut in [1, 30] {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::with_rows(4);
        home.run().on(&simulator).args(&["--limit", "3"]).ends_with(0);
        let text = home.read("out.jsonl");
        home.write("out.jsonl", text.get(..text.len() - cut).unwrap());
        home.run().on(&simulator).args(&["--resume"]).ends_with(0);
        assert_all_ok(&home.envelopes(), 4);
    }
}

#[test]
fn defect_4_one_bad_byte_surrogate_or_line_fails_its_row_and_no_other() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let mut input = b"{\"p\":\"row 1\"}\n{\"p\":\"\xff\"}\n{\"p\":\"\\ud800\"}\nnot json\n[1]\n".to_vec();
    input.extend_from_slice(b"{\"p\":\"row 6\"}\n");
    std::fs::write(home.path("in.jsonl"), input).unwrap();
    home.run().on(&simulator).ends_with(3);
    let ok: Vec<bool> = home.envelopes().iter().map(|line| line["ok"] == true).collect();
    assert_eq!(ok, [true, false, false, false, false, true]);
}

#[test]
fn defect_4_a_lone_surrogate_in_an_answer_does_not_abort_the_run() {
    let body = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",
        "message":{"role":"assistant","content":"half \ud83d a pair"}}]}"#;
    let script = SimulatorScript::new().answer_prompts(move |prompt, _| match prompt {
        "row 2" => SimulatedAnswer::Fail(rowmill_testkit::SimulatedFault::from_status(200).with_body(body)),
        _ => SimulatedAnswer::Default,
    });
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_rows(3);
    let ended = home.run().on(&simulator).args(&["--retries", "1"]).end();
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.err);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), 3, "{}", ended.err);
    assert!(envelopes[0]["ok"] == true && envelopes[2]["ok"] == true);
}

#[test]
fn defect_4_one_bad_id_is_found_before_the_first_call() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", "{\"p\":\"a\",\"id\":\"a\"}\n{\"p\":\"b\",\"id\":null}\n");
    let ended = home.run().on(&simulator).args(&["--id-field", "id"]).ends_with(1);
    ended.says(&["error[RM1004]", "help:"]);
    assert_eq!(simulator.stats().requests, 0);
}

#[test]
fn defect_5_duplicate_ids_are_found_wherever_they_are_and_however_many_rows_run_at_once() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let mut rows = String::new();
    for number in 1..=500 {
        writeln!(rows, "{{\"p\":\"x\",\"id\":{}}}", if number == 499 { 2 } else { number }).unwrap();
    }
    home.write("in.jsonl", &rows);
    for parallel in ["1", "64"] {
        let ended =
            home.run().on(&simulator).args(&["--id-field", "id", "--parallel", parallel]).ends_with(1);
        ended.says(&["error[RM1005]", "2", "499"]);
    }
    assert_eq!(simulator.stats().requests, 0);
}

#[test]
fn defect_6_failed_rows_of_a_parallel_run_can_be_tried_again_and_a_given_work_folder_stays() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400x1]]", "c"]);
    std::fs::create_dir(home.path("work")).unwrap();
    home.write("work/mine.txt", "mine");
    let work = ["--parallel", "8", "--work-dir", "work"];
    home.run().on(&simulator).args(&work).ends_with(3);
    assert!(home.exists("work/run.json"));
    home.run().on(&simulator).args(&work).args(&["--resume"]).ends_with(0).resumed(2, 1, 0);
    assert_all_ok(&home.envelopes(), 3);
    assert_eq!(home.read("work/mine.txt"), "mine");
}

#[test]
fn defect_7_a_null_is_a_result_a_violation_is_repaired_and_what_failed_keeps_its_text() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home =
        Home::with_prompts(["a [[null]]", "b [[wrongx1]]", "c [[wrong]]", "d [[length]]", "e [[fenced]]"]);
    home.write(
        "schema.json",
        r#"{"type":["object","null"],"properties":{"x":{"type":"integer"}},"required":["x"]}"#,
    );
    let files = ["--json-schema", "schema.json", "--telemetry-output", "telemetry.jsonl"];
    home.run().on(&simulator).args(&files).ends_with(3);
    let envelopes = home.envelopes();
    assert_eq!((&envelopes[0]["ok"], &envelopes[0]["result"]), (&true.into(), &serde_json::Value::Null));
    assert!(envelopes[1]["ok"] == true && envelopes[1]["result"]["x"].is_i64(), "{}", envelopes[1]);
    assert_eq!(envelopes[2]["error"]["type"], "StructuredOutputError");
    assert!(envelopes[2]["error"]["raw_text"].is_string(), "{}", envelopes[2]);
    assert_eq!(envelopes[2]["error"]["attempts"], 2);
    assert_eq!(
        envelopes[3]["error"]["type"], "OutputTruncated",
        "a cut answer is no result: {}",
        envelopes[3]
    );
    assert_eq!(envelopes[4]["ok"], true, "{}", envelopes[4]);
}

#[test]
fn defect_8_a_resume_notices_a_changed_model_prompt_or_schema() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400]]"]);
    home.run().on(&simulator).ends_with(3);
    home.write("schema.json", "{}");
    let io = ["-i", "in.jsonl", "-o", "out.jsonl", "--resume"];
    for (run, named) in [
        (home.run_with(&io).model(&simulator, "generic.other"), "-> `generic.other`"),
        (home.run_with(&[io.as_slice(), &["-p", "Now {{p}}"]].concat()).on(&simulator), "+ Now {{p}}"),
        (home.run_with(&io).on(&simulator).args(&["--json-schema", "schema.json"]), "schema: none before"),
    ] {
        run.ends_with(1).says(&["error[RM1306]", named]);
    }
}

#[test]
fn defect_9_nothing_is_sent_but_what_the_user_wrote() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::with_prompts(["just this"]);
        home.run().model(&simulator, model).ends_with(0);
        let request = simulator.requests().pop().unwrap();
        let body = request.json();
        let text = body.to_string();
        assert!(text.contains("just this"), "{model}: {text}");
        for system in
            ["\"system\"", "\"developer\"", "instructions", "systemInstruction", "system_instruction"]
        {
            assert!(!text.contains(system), "{model}: {text}");
        }
        assert!(!text.contains(home.path("").to_str().unwrap()), "{model}: {text}");
    }
}

#[test]
fn limit_parallel_goes_with_sample_max_errors_standard_input_and_standard_output() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(100);
    let both = ["--parallel", "8", "--sample", "10", "--seed", "7", "--max-errors", "5"];
    home.run().on(&simulator).args(&both).ends_with(0);
    assert_eq!(home.envelopes().len(), 10);
    let rows = home.read("in.jsonl");
    let piped = ["-i", "-", "--input-format", "jsonl", "-o", "-"];
    let ended = home.run_with(&piped).on(&simulator).stdin(&rows).args(&both).ends_with(0);
    assert_eq!(parse_lines(&ended.out), home.envelopes(), "the same rows by the same seed");
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl"]);
}

#[test]
fn performance_connections_are_reused() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(1_000);
    home.run().on(&simulator).args(&["--parallel", "8"]).ends_with(0);
    let stats = simulator.stats();
    assert_eq!(stats.requests, 1_000);
    assert!(stats.connections <= 16, "{} connections for 1000 requests", stats.connections);
}

#[test]
fn performance_the_input_is_read_once_whatever_runs_at_once() {
    // A pipe cannot be read twice, so a run that reads all of it has read it once.
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(2_000);
    let rows = home.read("in.jsonl");
    let args = ["-i", "-", "--input-format", "jsonl", "-o", "out.jsonl", "--parallel", "64"];
    home.run_with(&args).on(&simulator).stdin(&rows).ends_with(0);
    assert_all_ok(&home.envelopes(), 2_000);
}

#[test]
fn performance_a_row_costs_one_request_unless_it_fails() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[500]]", "b [[503]]", "c"]);
    home.run().on(&simulator).ends_with(3);
    // One attempt and four retries by default; there is no outer retry loop.
    assert_eq!(simulator.stats().requests, 5 + 5 + 1);
}
