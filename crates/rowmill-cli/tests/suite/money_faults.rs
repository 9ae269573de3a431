//! The cost of failed calls, and what is known about rows that a budget stops.

use crate::faults_support::{Home, PROTOCOLS};
use rowmill_testkit::{Simulator, SimulatorScript, parse_flags};
use rustix::process::Signal;
use serde_json::Value;

const PRICE: &str = "input = 1.0\ncached = 0.1\ncache_write = 1.25\noutput = 4.0\nmax_output = 1000\n";
const SCHEMA: &str = r#"{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}"#;

fn script() -> SimulatorScript {
    let price = parse_flags::parse_price("input=1,cached=0.1,cache_write=1.25,output=4").unwrap();
    SimulatorScript::new().price(price)
}

/// A folder whose `rowmill.toml` has the prices of that provider, for every protocol.
fn priced(prompts: impl IntoIterator<Item = String>) -> Home {
    let home = Home::with_prompts(prompts);
    let prices = PROTOCOLS.map(|model| format!("[prices.\"{model}\"]\n{PRICE}"));
    home.write("rowmill.toml", &prices.concat());
    home.write("schema.json", SCHEMA);
    home
}

fn counted(simulator: &Simulator) -> f64 {
    simulator.stats().cost_usd.unwrap().dollars()
}

#[track_caller]
fn assert_same(left: f64, right: f64, what: &str) {
    assert!((left - right).abs() < 1e-10, "{what}: {left} is not {right}");
}

/// Faults after which both sides know the cost of a call, even if it is zero.
const KNOWN: [&str; 17] = [
    "400",
    "408",
    "409",
    "413",
    "422",
    "429x1,retry-after-ms=1",
    "500",
    "503",
    "529",
    "empty",
    "refusal",
    "length",
    "filter",
    "wrong",
    "wrongx1",
    "fenced",
    "null",
];
/// Faults after which our side does not know whether the answer was generated.
const UNKNOWN: [&str; 5] = ["reset", "midway", "truncate", "garbage", "hang"];

#[test]
fn provider_and_run_count_the_same_money_whatever_goes_wrong() {
    for model in PROTOCOLS {
        for streaming in ["?stream=false", "?stream=true"] {
            let simulator = Simulator::start_blocking(script());
            let home = priced(KNOWN.map(|marker| format!("tell a story [[{marker}]]")));
            let model = format!("{model}{streaming}");
            let args =
                ["--json-schema", "schema.json", "--retries", "1", "--max-outage", "0", "--final-summary"];
            let ended = home.run().model(&simulator, &model).args(&args).args(&["--max-cost", "5"]).end();
            let summary = ended.summary();
            let message = summary["cost"]["usd"].as_f64().unwrap();
            assert!(message > 0.0, "{model}: {summary}");
            assert_same(message, counted(&simulator), &model);
            assert_same(summary["spent_usd"].as_f64().unwrap(), counted(&simulator), &model);
            assert_eq!(summary["calls"]["outcome_unknown"], 0, "{model}: {summary}");
        }
    }
}

#[test]
fn what_may_have_been_billed_is_counted_as_unknown_and_never_below_what_it_cost() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(script());
        let home = priced(UNKNOWN.map(|marker| format!("tell a story [[{marker}x1]]")));
        let args = ["--timeout", "300ms", "--retries", "1", "--max-outage", "0", "--final-summary"];
        let ended = home.run().model(&simulator, model).args(&args).args(&["--max-cost", "5"]).ends_with(0);
        let summary = ended.summary();
        assert_eq!(summary["calls"]["outcome_unknown"], UNKNOWN.len(), "{model}: {summary}");
        let (message, spent) = (&summary["cost"]["usd"], &summary["spent_usd"]);
        let (message, spent) = (message.as_f64().unwrap(), spent.as_f64().unwrap());
        assert!(message <= counted(&simulator) && counted(&simulator) <= spent, "{model}: {summary}");
    }
}

#[test]
fn a_row_that_a_budget_stops_between_its_repairs_is_not_of_unknown_outcome() {
    for turns in [&[][..], &["--checkpoint-turns"]] {
        let simulator = Simulator::start_blocking(script());
        let home = priced(["a [[wrongx3]]".to_owned(), "b".to_owned()]);
        let run = |cost: &str| {
            let run = home.run().model(&simulator, "generic.m?max_tokens=50").args(turns);
            run.args(&["--json-schema", "schema.json", "--repairs", "5", "--parallel", "1"]).args(&[
                "--max-cost",
                cost,
                "--final-summary",
                "--telemetry-output",
                "telemetry.jsonl",
            ])
        };
        // Enough for the first call but too little for the next, which sends more.
        let unsent = run("0.0003").ends_with(4).err;
        let (_, worst) = unsent.split_once("the next call could use up to $").unwrap();
        let worst: f64 = worst.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(simulator.stats().requests, 0);
        let ended = run(&format!("{:.6}", worst * 1.02)).args(&["--overwrite"]).ends_with(4);
        let summary = ended.summary();
        assert_eq!(summary["calls"]["outcome_unknown"], 0, "{summary}");
        assert_eq!(summary["outcome_unknown_rows"], 0, "{summary}");
        assert_same(summary["spent_usd"].as_f64().unwrap(), counted(&simulator), "spent");
        let envelopes = home.envelopes();
        assert_eq!(envelopes.len(), 1, "{envelopes:?}");
        let stopped = &envelopes[0];
        assert_eq!((&stopped["id"], &stopped["error"]["type"]), (&1.into(), &"RunStopped".into()));
        let answers = simulator.stats().answers;
        assert!(answers > 0, "nothing was asked");
        assert_eq!(stopped["error"]["attempts"], answers);
        let cost = &home.json_lines("telemetry.jsonl")[0]["usage"]["cost_usd"];
        assert_same(cost.as_f64().unwrap(), counted(&simulator), "telemetry");

        let ended = run("1").args(&["--resume"]).ends_with(0);
        ended.resumed(0, 1, 0);
        assert!(home.envelopes().iter().all(|envelope| envelope["ok"] == Value::Bool(true)));
        assert_same(ended.summary()["spent_usd"].as_f64().unwrap(), counted(&simulator), "after the resume");
        if !turns.is_empty() {
            ended.says(&["1 of them continues after its last finished call"]);
            assert_eq!(simulator.stats().repeated_turns, 0, "no turn is paid twice");
        }
    }
}

#[test]
fn an_own_price_keeps_what_is_known_of_the_longest_answer() {
    let home = Home::with_rows(3);
    home.write("rowmill.toml", "[prices.\"openai.gpt-5.4-mini\"]\ninput = 0.5\noutput = 3.0\n");
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    // Without the model's maximum answer length no budget could be kept.
    home.run().model(&simulator, "openai.gpt-5.4-mini").args(&["--max-cost", "1"]).ends_with(0);
    let shown = home.command("models", &["openai.gpt-5.4-mini"]).ends_with(0).out;
    assert!(shown.contains("max output  128,000 tokens"), "{shown}");
    assert!(shown.contains("$0.50 input") || shown.contains("$0.5"), "{shown}");
}

#[test]
fn what_was_only_set_aside_is_not_spent_when_an_output_that_takes_nothing_more_ends_the_run() {
    for turns in [&[][..], &["--checkpoint-turns"]] {
        let simulator = Simulator::start_blocking(script());
        let home = priced((0..200).map(|number| format!("row {number}")));
        let run = || {
            let args =
                ["-i", "in.jsonl", "-o", "-", "--work-dir", "work", "--summary-output", "summary.json"];
            let run = home.run_with(&args).model(&simulator, "generic.m").args(turns);
            run.args(&["--parallel", "32", "--max-cost", "5"])
        };
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        run().stdout(full).ends_with(1);
        let answered = simulator.stats().answers;
        assert!(answered > 0);
        let ended = run().args(&["--resume"]).ends_with(0);
        assert_eq!(simulator.stats().answers, 200, "after {answered}: {}", ended.err);
        let summary: Value = serde_json::from_str(&home.read("summary.json")).unwrap();
        assert_same(summary["spent_usd"].as_f64().unwrap(), counted(&simulator), "spent");
    }
}

#[test]
fn what_was_only_set_aside_is_not_spent_when_ctrl_c_ends_the_run() {
    for turns in [&[][..], &["--checkpoint-turns"]] {
        let simulator = Simulator::start_blocking(script().hold_after(20));
        let home = priced((0..60).map(|number| format!("row {number}")));
        let run = || {
            let args =
                ["-i", "in.jsonl", "-o", "-", "--work-dir", "work", "--summary-output", "summary.json"];
            let run = home.run_with(&args).model(&simulator, "generic.m").args(turns);
            run.args(&["--parallel", "4", "--max-cost", "5"])
        };
        let mut running = run().start();
        simulator.wait_until_blocking(|stats| stats.requests == 24);
        running.signal(Signal::INT);
        running.wait_for_talk("stopping: finishing rows in progress");
        simulator.release();
        assert_eq!(running.end().code, Some(130));
        let ended = run().args(&["--resume"]).ends_with(0);
        assert_eq!(simulator.stats().answers, 60, "{}", ended.err);
        let summary: Value = serde_json::from_str(&home.read("summary.json")).unwrap();
        assert_same(summary["spent_usd"].as_f64().unwrap(), counted(&simulator), "spent");
    }
}
