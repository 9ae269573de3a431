//! Ctrl-C, SIGTERM and SIGHUP, seen from outside.

use crate::faults_support::{Home, Running, assert_all_ok};
use rowmill_testkit::{Simulator, SimulatorScript};
use rustix::process::Signal;

const STOPPING: &str = "stopping: finishing rows in progress";
const ABORTING: &str = "aborting: cancelling calls in flight";

/// A run of 40 rows, 4 at a time, of which 10 are answered and 4 wait for their answers.
fn held_run(home: &Home, simulator: &Simulator) -> Running {
    let running = home.run().on(simulator).args(&["--parallel", "4"]).start();
    simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.requests == 14);
    running
}

#[test]
fn one_ctrl_c_or_sigterm_or_sighup_finishes_rows_in_flight_and_takes_no_more() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
        let home = Home::with_rows(40);
        let mut running = held_run(&home, &simulator);
        running.signal(signal);
        running.wait_for_talk(STOPPING);
        simulator.release();
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{signal:?}: {}", ended.err);
        ended.says(&["14 rows: 14 ok", "next:   run the same command with `--resume` to continue"]);
        assert_all_ok(&home.envelopes(), 14);
        assert_eq!(simulator.stats().requests, 14, "{signal:?}");

        home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(14, 0, 0);
        assert_all_ok(&home.envelopes(), 40);
        assert_eq!(simulator.stats().requests, 40, "{signal:?}: nothing was asked twice");
        assert_eq!(home.names(), ["in.jsonl", "out.jsonl"]);
    }
}

#[test]
fn a_second_ctrl_c_aborts_and_the_rows_in_flight_are_sent_again_by_a_resume() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
    let home = Home::with_rows(40);
    let mut running = held_run(&home, &simulator);
    running.signal(Signal::INT);
    running.wait_for_talk(STOPPING);
    running.signal(Signal::INT);
    running.wait_for_talk(ABORTING);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    ended.says(&[
        "4 Interrupted",
        "unknown: 4 calls were interrupted and may have been billed",
        "`--resume` to continue",
    ]);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), 14);
    // The order of the calls is not defined, so neither is which rows were aborted.
    let cut: Vec<_> = envelopes.iter().filter(|envelope| envelope["ok"] == false).collect();
    assert_eq!(cut.len(), 4);
    for envelope in cut {
        assert_eq!(envelope["error"]["type"], "Interrupted");
        assert!(envelope["error"]["message"].as_str().unwrap().contains("unknown"));
    }
    simulator.wait_until_blocking(|stats| stats.in_flight == 0);
    assert_eq!(simulator.stats().abandoned, 4, "the calls are cut, not left running");

    simulator.release();
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(10, 0, 4);
    assert_all_ok(&home.envelopes(), 40);
    assert_eq!(simulator.stats().answers, 40);
}

#[test]
fn sigterm_after_ctrl_c_still_lets_calls_in_flight_finish() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
    let home = Home::with_rows(40);
    let mut running = held_run(&home, &simulator);
    running.signal(Signal::INT);
    running.wait_for_talk(STOPPING);
    running.signal(Signal::TERM);
    running.wait_for_talk(STOPPING);
    simulator.release();
    assert_eq!(running.end().code, Some(130));
    assert_all_ok(&home.envelopes(), 14);
}

#[test]
fn a_run_under_nohup_goes_on_after_sighup() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
    let home = Home::with_rows(40);
    let running = home.run().on(&simulator).args(&["--parallel", "4"]).under("trap '' HUP").start();
    simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.requests == 14);
    running.signal(Signal::HUP);
    simulator.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_all_ok(&home.envelopes(), 40);
}

#[test]
fn a_third_ctrl_c_is_not_needed_to_end_a_run_that_hangs_on_its_provider() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[hang]]", "b [[hang]]"]);
    let mut running = home.run().on(&simulator).start();
    simulator.wait_until_blocking(|stats| stats.in_flight == 2);
    running.signal(Signal::INT);
    running.wait_for_talk(STOPPING);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(130));
    assert_eq!(home.envelopes().len(), 2);
}

#[test]
fn a_wait_before_a_retry_is_not_waited_out_after_ctrl_c() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[429x1,retry-after=3600]]", "c [[503,retry-after=3600]]"]);
    let running = home.run().on(&simulator).start();
    simulator.wait_until_blocking(|stats| stats.by_status.values().sum::<u64>() == 3);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let envelopes = home.envelopes();
    // Rows that only wait for another attempt are given back as if they had not been sent.
    assert_eq!(envelopes.len(), 1);
    assert_eq!(envelopes[0]["ok"], true);
    home.run().on(&simulator).args(&["--resume", "--retries", "0"]).ends_with(3).resumed(1, 0, 0);
    assert_eq!(home.envelopes().iter().filter(|line| line["ok"] == true).count(), 2);
}

#[test]
fn ctrl_c_ends_a_run_that_waits_for_standard_input() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let args = ["-i", "-", "--input-format", "jsonl", "-o", "out.jsonl"];
    let (running, stdin) = home.run_with(&args).on(&simulator).start_fed("{\"p\":\"row 1\"}\n");
    simulator.wait_until_blocking(|stats| stats.answers == 1);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(130));
    drop(stdin);
    assert_all_ok(&home.envelopes(), 1);
}

#[test]
fn ctrl_c_ends_a_run_whose_model_makes_the_largest_answers_that_it_makes() {
    let home = Home::with_rows(1_000);
    let schema = r#"{"type": "array", "items": {"type": "integer"}, "minItems": 99000, "maxItems": 99000}"#;
    home.write("schema.json", schema);
    let args = ["-m", "simulated", "--json-schema", "schema.json", "--parallel", "2"];
    let mut running = home.run().args(&args).start();
    let ledger = home.path(".out.jsonl.rowmill/ledger-1.jsonl");
    while !std::fs::metadata(&ledger).is_ok_and(|file| file.len() > 100_000) {
        assert!(!running.has_ended(), "{}", running.end().err);
        std::thread::yield_now();
    }
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let envelopes = home.envelopes();
    assert!(envelopes.len() < 1_000, "{}", ended.err);
    assert_all_ok(&envelopes, envelopes.len());
}
