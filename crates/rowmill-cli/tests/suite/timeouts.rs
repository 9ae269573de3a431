//! Every wait has a limit, and the error names the limit that was exceeded.

use std::net::TcpListener;
use std::time::Duration;

use crate::faults_support::{Home, PROTOCOLS, assert_all_ok};
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::Value;

/// Runs one row that fails, and returns its error. It runs alone: the short timeout would apply to all
/// other rows, too, and a busy machine may need longer for an answer.
fn error_of(script: SimulatorScript, model: &str, marker: &str, args: &[&str]) -> Value {
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_prompts([marker]);
    let ended = home.run().model(&simulator, model).args(&["--retries", "0"]).args(args).ends_with(3);
    ended.says(&["unknown: 1 call was interrupted and may have been billed"]);
    home.envelopes()[0]["error"].clone()
}

#[test]
fn each_timeout_cuts_what_it_is_for_and_is_named() {
    let drips = || SimulatorScript::new().drip_every(Duration::from_millis(20));
    for model in PROTOCOLS {
        for (script, marker, flag, message) in [
            (SimulatorScript::new(), "a [[hang]]", "--timeout", "no complete answer within 0.15 s"),
            (
                SimulatorScript::new(),
                "a [[hang]]",
                "--row-timeout",
                "no complete answer within 0.15 s left by `--row-timeout`",
            ),
            (
                SimulatorScript::new(),
                "a [[hang]]",
                "--first-byte-timeout",
                "no response began within 150 ms; allow more with `--first-byte-timeout`",
            ),
            (
                SimulatorScript::new(),
                "a [[drip]]",
                "--idle-timeout",
                "the response stalled: no data for 150 ms; allow more with `--idle-timeout`",
            ),
            (drips(), "a [[drip]]", "--timeout", "no complete answer within 0.15 s"),
        ] {
            let error = error_of(script, model, marker, &[flag, "150ms"]);
            assert_eq!(error["type"], "Timeout", "{model} {flag}: {error}");
            let text = error["message"].as_str().unwrap();
            assert!(text.contains(message), "{model} {flag}: {text}");
        }
    }
}

#[test]
fn an_answer_that_drips_is_let_be_as_long_as_something_comes() {
    let script = SimulatorScript::new().drip_every(Duration::from_millis(1));
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_prompts(["a [[drip]]"]);
    home.run().on(&simulator).args(&["--idle-timeout", "5s", "--first-byte-timeout", "5s"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 1);
}

#[test]
fn a_row_has_one_time_for_all_its_tries() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[hang]]"]);
    let args = ["--timeout", "100ms", "--row-timeout", "350ms", "--retries", "99"];
    home.run().on(&simulator).args(&args).ends_with(3);
    let error = &home.envelopes()[0]["error"];
    let tries = error["attempts"].as_u64().unwrap();
    // An attempt takes at least its timeout, so there is no room for more.
    assert!(error["type"] == "Timeout" && tries <= 4, "{error}");
}

#[test]
fn a_wait_for_a_limit_does_not_count_as_time_of_the_row() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[429x1,retry-after=1]]"]);
    home.run().on(&simulator).args(&["--row-timeout", "900ms", "--retries", "0"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 1);
}

#[test]
fn a_connection_that_nobody_answers_is_given_up_and_named() {
    // The kernel accepts connections for the listener, so that TCP works and TLS never starts.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::with_prompts(["a"]);
    let url = format!("https://{}", listener.local_addr().unwrap());
    let args = ["-m", "generic.m", "--connect-timeout", "100ms", "--retries", "1"];
    let ended = home.run().at(&url).args(&args).ends_with(1);
    ended.says(&["error[RM2003]", "no connection within 100 ms; allow more with `--connect-timeout`"]);
    let error = &home.envelopes()[0]["error"];
    assert_eq!((&error["type"], &error["attempts"]), (&"ConnectionError".into(), &2.into()));
}
