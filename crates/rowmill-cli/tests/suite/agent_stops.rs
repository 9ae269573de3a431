//! Runs of agents that are stopped in the middle, by their user or by a budget, and runs that are
//! killed without recorded turns.

use std::collections::BTreeSet;
use std::fs;

use crate::agent_support::{
    Answered, Tools, Used, counted, labels, run, runs_once, total_usage, turns, wait_for_calls,
};
use crate::faults_support::{Home, Running, assert_all_ok};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rustix::process::Signal;
use serde_json::{Value, json};

const ROWS: u64 = 60;
const KEEPS: [&str; 2] = ["--checkpoint-turns", "--parallel=8"];

fn of_type<'a>(envelopes: &'a [Value], error: &str) -> Vec<&'a Value> {
    envelopes.iter().filter(|envelope| envelope["error"]["type"] == error).collect()
}

/// Checks that everything was requested and done once, except for rows that were started over.
fn assert_done_once(home: &Home, answered: &Answered, anew: &BTreeSet<u64>) {
    assert_all_ok(&home.envelopes(), ROWS as usize);
    let (answers, counts) = (answered.counts(), counted(home));
    for row in (1..=ROWS).filter(|row| !anew.contains(row)) {
        for mark in turns(row) {
            assert_eq!(answers.get(&mark), Some(&1), "{mark:?}");
        }
        for label in labels(row).iter().filter(|label| runs_once(label)) {
            assert_eq!(counts.get(label), Some(&1), "`{label}`");
        }
    }
}

/// Checks that telemetry reports everything that was paid for, once.
fn assert_all_reported(home: &Home, simulator: &Simulator) {
    let stats = simulator.stats();
    assert_eq!(total_usage(home), Used { input: stats.input_tokens, output: stats.output_tokens });
}

/// A run in which eight calls wait for their answers, and no other call can be made.
fn held(home: &Home, simulator: &Simulator) -> Running {
    let running = run(home).on(simulator).args(&KEEPS).start();
    simulator.wait_until_blocking(|stats| stats.answers == 100 && stats.in_flight == 8);
    running
}

#[test]
fn ctrl_c_waits_for_what_is_under_way_and_a_resume_goes_on_after_it() {
    let answered = Answered::default();
    let simulator = Simulator::start_blocking(answered.script().hold_after(100));
    let (_tools, home) = Tools::start(ROWS);
    let mut running = held(&home, &simulator);
    running.signal(Signal::INT);
    running.wait_for_talk("stopping: finishing rows in progress");
    simulator.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let stats = simulator.stats();
    assert_eq!((stats.abandoned, stats.requests), (0, stats.answers), "no call was cut");
    let envelopes = home.envelopes();
    let cut = of_type(&envelopes, "RunStopped").len();
    assert_eq!(envelopes.iter().filter(|envelope| envelope["ok"] == true).count() + cut, envelopes.len());

    run(&home).on(&simulator).args(&KEEPS).args(&["--resume"]).ends_with(0);
    assert_done_once(&home, &answered, &BTreeSet::new());
    assert_all_reported(&home, &simulator);
    assert_eq!(simulator.stats().repeated_turns, 0);
}

#[test]
fn a_second_ctrl_c_cuts_calls_and_a_resume_asks_only_those_again() {
    let answered = Answered::default();
    let simulator = Simulator::start_blocking(answered.script().hold_after(100));
    let (_tools, home) = Tools::start(ROWS);
    let mut running = held(&home, &simulator);
    running.signal(Signal::INT);
    running.wait_for_talk("stopping: finishing rows in progress");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(!of_type(&home.envelopes(), "Interrupted").is_empty());
    simulator.wait_until_blocking(|stats| stats.in_flight == 0);
    assert_eq!(simulator.stats().abandoned, 8, "the calls are cut, not left running");

    simulator.release();
    // A tool that was running then may have run, which is known only from its row.
    let resumed = run(&home).on(&simulator).args(&KEEPS).args(&["--resume"]).end();
    let envelopes = home.envelopes();
    let unknown = of_type(&envelopes, "OutcomeUnknown");
    assert_eq!(resumed.code, Some(if unknown.is_empty() { 0 } else { 3 }), "{}", resumed.err);
    let anew = unknown.iter().map(|envelope| envelope["row_number"].as_u64().unwrap()).collect();
    run(&home).on(&simulator).args(&KEEPS).args(&["--resume", "--retry-unknown"]).ends_with(0);
    assert_done_once(&home, &answered, &anew);
    assert_all_reported(&home, &simulator);
}

#[test]
fn a_second_ctrl_c_while_a_tool_runs_loses_nothing_that_was_paid_for() {
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| SimulatedAnswer::Calls {
            text: String::new(),
            calls: vec![("once__hang".into(), json!({"label": seen.prompt}))],
        }));
    let (_tools, home) = Tools::start(1);
    let mut running = run(&home).on(&simulator).args(&["--agent", "solo", "--final-summary"]).start();
    wait_for_calls(&home, 1);
    running.signal(Signal::INT);
    running.wait_for_talk("stopping: finishing rows in progress");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert_all_reported(&home, &simulator);
    let summary = ended.summary();
    assert_eq!(summary["calls"], json!({"made": 1, "failed": {}, "outcome_unknown": 0}));
    assert_eq!(summary["cost"]["usd"], summary["spent_usd"]);
    assert_eq!(summary["outcome_unknown_rows"], 1);
    assert!(!ended.err.contains("may have been billed"), "no model call was cut: {}", ended.err);
    let telemetry = home.json_lines("telemetry.jsonl");
    let tool = &telemetry[0]["tool_calls"][0];
    assert_eq!((&tool["tool"], &tool["ok"]), (&json!("once__hang"), &json!(false)));
}

#[test]
fn a_budget_that_stops_a_run_between_turns_loses_none_of_them() {
    let answered = Answered::default();
    let simulator = Simulator::start_blocking(answered.script());
    let (_tools, home) = Tools::start(ROWS);
    let model = "generic.m?max_tokens=50";
    let mut stops = 0;
    for limit in ["0.004", "0.006", "0.008", "1"] {
        let args = ["--resume", "--max-cost", limit];
        let ended = run(&home).model(&simulator, model).args(&KEEPS).args(&args).end();
        let cost = simulator.stats().cost_usd.unwrap().dollars();
        assert!(cost <= limit.parse().unwrap(), "{cost} is more than {limit}");
        assert!(ended.code == Some(4) || limit == "1", "{}", ended.err);
        let envelopes = home.envelopes();
        assert!(of_type(&envelopes, "Interrupted").is_empty(), "all calls were answered");
        stops += of_type(&envelopes, "RunStopped").len();
        assert_all_reported(&home, &simulator);
    }
    assert!(stops > 0, "no row was stopped between two turns");
    assert_done_once(&home, &answered, &BTreeSet::new());
    assert_eq!(simulator.stats().repeated_turns, 0);
}

/// The rows that the ledger shows as taken and not ended when the process died.
fn in_flight(home: &Home, read: &mut usize) -> BTreeSet<u64> {
    let ledger = fs::read(home.path(".out.jsonl.rowmill/ledger-1.jsonl")).unwrap_or_default();
    let mut flying = BTreeSet::new();
    for line in ledger[*read..].split_inclusive(|byte| *byte == b'\n') {
        if line.last() == Some(&b'\n') {
            *read += line.len();
            let line: Value = serde_json::from_slice(line).unwrap();
            match line["rows"].as_array() {
                Some(rows) => flying.extend(rows.iter().map(|row| row.as_u64().unwrap())),
                None => assert!(flying.remove(&line["envelope"]["row_number"].as_u64().unwrap())),
            }
        }
    }
    flying
}

#[test]
fn without_kept_turns_rows_in_flight_at_a_kill_begin_anew_and_no_other() {
    let answered = Answered::default();
    let simulator = Simulator::start_blocking(answered.script());
    let (_tools, home) = Tools::start(ROWS);
    let mut anew = BTreeSet::new();
    let mut read = 0;
    for _ in 0..5 {
        let before = simulator.stats().answers;
        let running = run(&home).on(&simulator).args(&["--parallel=8", "--resume"]).start();
        simulator.wait_until_blocking(|now| now.answers >= before + 40);
        assert_eq!(running.kill().code, None);
        simulator.wait_until_blocking(|now| now.in_flight == 0);
        let flying = in_flight(&home, &mut read);
        assert!(flying.len() <= 8, "{flying:?}");
        anew.extend(flying);
    }
    run(&home).on(&simulator).args(&["--parallel=8", "--resume"]).ends_with(0);
    assert!(!anew.is_empty());
    assert_done_once(&home, &answered, &anew);
}

#[test]
fn turns_of_agents_that_changed_are_forgotten_for_good() {
    let answered = Answered::default();
    let simulator = Simulator::start_blocking(answered.script());
    let (_tools, home) = Tools::start(ROWS);
    for (answers, flags) in [(60, &[][..]), (30, &["--accept-changes"])] {
        let before = simulator.stats().answers;
        let running = run(&home).on(&simulator).args(&KEEPS).args(&["--resume"]).args(flags).start();
        simulator.wait_until_blocking(|now| now.answers >= before + answers);
        assert_eq!(running.kill().code, None);
        home.append("cards/front.md", " Be quick.");
        home.write("cards/line.yaml", "type: chain\nsequence: [first]");
    }
    run(&home).on(&simulator).args(&KEEPS).args(&["--resume", "--accept-changes"]).end();
    for envelope in home.envelopes() {
        let error = &envelope["error"]["type"];
        assert!(error.is_null() || error == "OutcomeUnknown", "{envelope}");
    }
}
