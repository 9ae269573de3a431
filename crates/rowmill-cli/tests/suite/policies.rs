//! Stop rules that end a run before its input ends.

use std::time::Duration;

use crate::faults_support::{Home, assert_all_ok};
use rowmill_testkit::{Simulator, SimulatorScript};

/// Rows of which every `nth` fails permanently.
fn failing_every(nth: usize, rows: usize) -> Home {
    Home::with_prompts((1..=rows).map(|row| match row % nth {
        0 => format!("row {row} [[400]]"),
        _ => format!("row {row}"),
    }))
}

#[test]
fn one_failed_row_stops_the_run_if_the_user_says_so() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = failing_every(7, 50);
    let args = ["--on-error", "stop", "--parallel", "1", "--final-summary"];
    let ended = home.run().on(&simulator).args(&args).ends_with(4);
    ended.says(&[
        "7 rows: 6 ok, 1 failed",
        "stopped after 1 failed row; run the same command with `--resume` to continue",
    ]);
    assert_eq!(ended.summary()["status"], "max_errors");
    assert_eq!(home.envelopes().len(), 7);
    assert_eq!(simulator.stats().requests, 7);

    home.run().on(&simulator).args(&["--on-error", "continue", "--overwrite"]).ends_with(3);
    assert_eq!(home.envelopes().len(), 50);
}

#[test]
fn the_stricter_of_two_rules_on_errors_counts() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = failing_every(2, 40);
    let run = |args: &[&str]| {
        let ended =
            home.run().on(&simulator).args(&["--parallel", "1", "--overwrite"]).args(args).ends_with(4);
        ended.says(&["stopped after "]);
        home.envelopes().len()
    };
    assert_eq!(run(&["--max-errors", "3", "--on-error", "stop"]), 2);
    assert_eq!(run(&["--max-errors", "3"]), 6);
    assert_eq!(run(&["--max-errors", "3", "--max-error-rate", "0.9", "--after", "1"]), 6);
}

#[test]
fn a_share_of_failed_rows_stops_the_run_once_enough_have_ended() {
    for (nth, rows, after, code, ended_rows) in [
        // One in ten is more than one in twenty, and is detected at the first check.
        (10, 300, "100", 4, Some(100)),
        (10, 300, "37", 4, Some(37)),
        (25, 300, "100", 3, None),
        // Failures before enough rows have ended stop nothing.
        (10, 60, "100", 3, None),
    ] {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = failing_every(nth, rows);
        let args = ["--max-error-rate", "0.05", "--after", after, "--parallel", "1", "--final-summary"];
        let ended = home.run().on(&simulator).args(&args).ends_with(code);
        let envelopes = home.envelopes().len();
        match ended_rows {
            Some(expected) => {
                assert_eq!(envelopes, expected);
                ended.says(&[
                    "rows failed, above the allowed share of 0.05; run the same command with `--resume` to continue",
                ]);
                assert_eq!(ended.summary()["status"], "max_error_rate");
            }
            None => assert_eq!(envelopes, rows),
        }
    }
}

#[test]
fn the_share_is_looked_at_after_a_hundred_rows_unless_the_user_says_otherwise() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = failing_every(2, 300);
    let args = ["--max-error-rate", "0.05", "--parallel", "1"];
    home.run().on(&simulator).args(&args).ends_with(4).says(&["stopped because 50 of 100 rows failed"]);
    assert_eq!(home.envelopes().len(), 100);
}

#[test]
fn the_first_result_ends_the_run_and_accounts_for_the_calls_it_cut() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let home = Home::with_rows(50);
    let args = ["--stop-on-first-result", "--parallel", "4", "--final-summary"];
    let running = home.run().on(&simulator).args(&args).start();
    simulator.wait_until_blocking(|stats| stats.in_flight == 4);
    simulator.release_some(1);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let envelopes = home.envelopes();
    let ok = envelopes.iter().filter(|line| line["ok"] == true).count();
    assert_eq!((envelopes.len(), ok), (4, 1));
    let cut: Vec<_> = envelopes.iter().filter(|line| line["ok"] == false).collect();
    assert!(cut.iter().all(|line| line["error"]["type"] == "Interrupted"), "{cut:?}");
    let summary = ended.summary();
    assert_eq!((&summary["status"], &summary["outcome_unknown_rows"]), (&"first_result".into(), &3.into()));
    ended.says(&["unknown: 3 calls were interrupted and may have been billed"]);
    simulator.wait_until_blocking(|stats| stats.in_flight == 0);
    assert_eq!(simulator.stats().requests, 4);

    simulator.release();
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(1, 0, 3);
    assert_all_ok(&home.envelopes(), 50);
}

#[test]
fn a_single_call_that_the_first_result_cut_is_reported_in_the_singular() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let home = Home::with_rows(9);
    let running = home.run().on(&simulator).args(&["--stop-on-first-result", "--parallel", "2"]).start();
    simulator.wait_until_blocking(|stats| stats.in_flight == 2);
    simulator.release_some(1);
    running.end().says(&["stopped at the first result; 1 call in flight was cancelled"]);
}

#[test]
fn failures_are_no_results_to_stop_at() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[400]]", "b [[refusal]]", "c", "d"]);
    home.run().on(&simulator).args(&["--stop-on-first-result", "--parallel", "1"]).ends_with(0);
    let ok: Vec<bool> = home.envelopes().iter().map(|line| line["ok"] == true).collect();
    assert_eq!(ok, [false, false, true]);
    assert_eq!(simulator.stats().requests, 3);
}

#[test]
fn without_any_result_the_run_goes_to_its_end() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[400]]", "b [[400]]"]);
    home.run().on(&simulator).args(&["--stop-on-first-result"]).ends_with(3);
    assert_eq!(home.envelopes().len(), 2);
}

#[test]
fn after_the_deadline_no_call_is_sent_and_those_in_flight_are_finished() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().latency(Duration::from_millis(100)));
    let home = Home::with_rows(500);
    let args = ["--deadline", "700ms", "--parallel", "2", "--final-summary"];
    let ended = home.run().on(&simulator).args(&args).ends_with(4);
    ended.says(&["stopped at the deadline; run the same command with `--resume` to continue"]);
    assert_eq!(ended.summary()["status"], "deadline");
    let done = home.envelopes().len();
    assert!(done < 500, "{done}");
    assert_all_ok(&home.envelopes(), done);
    assert_eq!(simulator.stats().requests, done as u64);
    home.run().on(&simulator).args(&["--resume", "--limit", &(done + 3).to_string()]).ends_with(0);
    assert_all_ok(&home.envelopes(), done + 3);
}

#[test]
fn a_deadline_ends_a_wait_for_a_limit() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    // Before the first answer a refusal is treated as a limit, for which all rows wait.
    let home = Home::with_prompts(["a [[429x1,retry-after=3600]]", "b"]);
    home.run().on(&simulator).args(&["--deadline", "1s", "--parallel", "1"]).ends_with(4);
    let requests = simulator.stats().requests;
    assert!(home.envelopes().is_empty() && requests <= 1, "{requests}");
}

#[test]
fn a_deadline_in_the_past_sends_nothing_and_one_far_off_stops_nothing() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(3);
    home.run().on(&simulator).args(&["--deadline", "2020-01-01T00:00:00Z"]).ends_with(4);
    assert_eq!((simulator.stats().requests, home.envelopes().len()), (0, 0));
    for deadline in ["2h", "2199-01-01T00:00:00+01:00"] {
        home.run().on(&simulator).args(&["--deadline", deadline, "--overwrite"]).ends_with(0);
        assert_all_ok(&home.envelopes(), 3);
    }
}

#[test]
fn values_that_no_rule_can_have_are_refused_with_the_flag_and_the_reason() {
    let time = "must be a duration such as `30` (seconds), `500ms`, `90s` or `5m`";
    let dollars = "must be an amount in dollars such as `5` or `0.25`";
    let share = "must be a number from 0 to 1, such as `0.05`";
    let point = "must be a duration such as `2h`, or a timestamp such as `2026-11-17T06:00:00Z`";
    for (flag, value, reason) in [
        ("--rpm <N>", "0", "must be greater than zero"),
        ("--tpm <N>", "-5", "must be greater than zero"),
        ("--itpm <N>", "many", "must be a whole number"),
        ("--otpm <N>", "1.5", "must be a whole number"),
        ("--pace <auto|off>", "fast", "must be `auto` or `off`"),
        ("--on-quota <wait|stop>", "fail", "must be `wait` or `stop`"),
        ("--max-outage <TIME>", "soon", time),
        ("--row-timeout <TIME>", "0s", time),
        ("--connect-timeout <TIME>", "5 or so", time),
        ("--first-byte-timeout <TIME>", "-1s", time),
        ("--idle-timeout <TIME>", "", time),
        ("--max-cost <USD>", "-1", dollars),
        ("--max-cost <USD>", "five", dollars),
        ("--max-cost <USD>", "NaN", dollars),
        ("--max-tokens <N>", "-1", "must be non-negative"),
        ("--max-errors <N>", "-1", "must be non-negative"),
        ("--max-error-rate <SHARE>", "5", share),
        ("--max-error-rate <SHARE>", "-0.1", share),
        ("--max-error-rate <SHARE>", "NaN", share),
        ("--after <N>", "0", "must be greater than zero"),
        ("--deadline <TIME>", "tomorrow", point),
        ("--parallel <N|auto>", "many", "must be a whole number or `auto`"),
    ] {
        let home = Home::with_rows(1);
        let name = flag.split(' ').next().unwrap();
        let ended = home.run().args(&["-m", "passthrough", &format!("{name}={value}")]).ends_with(2);
        ended.says(&[&format!("error: invalid value '{value}' for '{flag}': {reason}\n")]);
        assert!(!home.exists("out.jsonl"), "{flag}");
    }
    let home = Home::with_rows(1);
    let run = |args: &[&str]| home.run().args(&["-m", "passthrough"]).args(args).ends_with(2);
    run(&["--on-error", "panic"]).says(&["invalid value 'panic' for '--on-error <continue|stop>'"]);
    run(&["--after", "5"]).says(&["error[RM0001]: --after requires --max-error-rate\n"]);
}
