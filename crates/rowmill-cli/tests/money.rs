//! Money: what calls cost is told exactly, and a budget is never passed, whatever happens.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod faults_support;

use faults_support::{Ended, Home, Run, assert_all_ok};
use rowmill_testkit::{Distribution, Fault, Script, Simulator, When, notation};
use rustix::process::Signal;

/// The most tokens of an answer, in every model string of these tests.
const MODEL: &str = "generic.m?max_tokens=50";

/// A provider with prices, whose answers have 10 to 50 tokens.
fn script() -> Script {
    let price = notation::price("input=1,cached=0.1,output=4").unwrap();
    Script::new().price(price).answer_tokens(Distribution::Uniform { low: 10.0, high: 50.0 })
}

/// A folder whose `rowmill.toml` knows the prices of that provider.
fn priced(rows: usize) -> Home {
    let home = Home::with_rows(rows);
    home.write("rowmill.toml", "[prices.\"generic.m\"]\ninput = 1.0\ncached = 0.1\noutput = 4.0\n");
    home
}

fn run(home: &Home, simulator: &Simulator) -> Run {
    home.run().model(simulator, MODEL).args(&["--final-summary"])
}

/// Dollars that the simulator counted.
fn counted(simulator: &Simulator) -> f64 {
    simulator.stats().cost_usd.unwrap().dollars()
}

#[track_caller]
fn assert_same(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-10, "{left} is not {right}");
}

#[track_caller]
fn spent(ended: &Ended) -> f64 {
    ended.summary()["spent_usd"].as_f64().unwrap()
}

#[test]
fn the_cost_is_what_the_provider_counts_in_telemetry_summary_and_progress() {
    let simulator = Simulator::start_blocking(script());
    let home = priced(40);
    home.append("in.jsonl", "{\"p\":\"again [[503x2]]\"}\n{\"p\":\"never [[400]]\"}\n");
    let args = ["--telemetry-output", "telemetry.jsonl", "--progress-every", "42"];
    let ended = run(&home, &simulator).args(&args).ends_with(3);
    let cost = counted(&simulator);
    assert!(cost > 0.0);
    let summary = ended.summary();
    assert_same(summary["cost"]["usd"].as_f64().unwrap(), cost);
    assert_same(spent(&ended), cost);
    assert_eq!(summary["cost"]["calls_without_price"], 0);
    let telemetry = home.json_lines("telemetry.jsonl");
    assert_same(telemetry.iter().filter_map(|line| line["usage"]["cost_usd"].as_f64()).sum(), cost);
    let told = format!("${cost:.6}");
    ended.says(&[&format!("cost:   {told}\n")]);
    let progress = ended.err.lines().find(|line| line.contains(" rows/s, ")).unwrap();
    assert!(progress.contains(&told), "{progress}");
}

#[test]
fn every_call_of_a_row_counts_repairs_included() {
    let price = notation::price("input=1,output=4").unwrap();
    let simulator = Simulator::start_blocking(Script::new().price(price));
    let home = priced(0);
    home.write_prompts(["a [[wrongx1]]", "b [[wrong]]", "c"]);
    home.write("schema.json", r#"{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}"#);
    let ended = run(&home, &simulator).args(&["--json-schema", "schema.json"]).ends_with(3);
    assert_eq!(simulator.stats().answers, 5);
    assert_same(spent(&ended), counted(&simulator));
}

#[test]
fn a_budget_stops_the_run_before_it_is_passed_and_a_higher_one_goes_on() {
    let simulator = Simulator::start_blocking(script());
    let home = priced(300);
    let mut before = 0;
    for limit in [0.01, 0.01, 0.02, 0.025] {
        let text = limit.to_string();
        let args = ["--max-cost", &text, "--resume"];
        let ended = run(&home, &simulator).args(&args).ends_with(4);
        ended.says(&["next:   stopped before the budget could be passed: ", "and a higher limit goes on\n"]);
        let summary = ended.summary();
        assert_eq!((&summary["status"], &summary["failed_rows"]), (&"budget".into(), &0.into()));
        let cost = counted(&simulator);
        assert!(cost <= limit, "{cost} > {limit}");
        // What is left is less than one call could cost.
        assert!(cost >= limit - 0.001, "{cost} of {limit} is used");
        assert_same(spent(&ended), cost);
        let done = home.envelopes().len();
        assert_all_ok(&home.envelopes(), done);
        assert!(done > before || limit == 0.01, "a higher limit goes on");
        before = done;
    }
    let ended = run(&home, &simulator).args(&["--max-cost", "1", "--resume"]).ends_with(0);
    ended.says(&["spent before: $0.02"]);
    assert_all_ok(&home.envelopes(), 300);
    assert_same(spent(&ended), counted(&simulator));
    assert_eq!((simulator.stats().answers, simulator.stats().repeated_answers), (300, 0));
}

#[test]
fn a_budget_of_tokens_is_kept_alike_and_needs_no_price() {
    let simulator = Simulator::start_blocking(Script::new().answer_tokens(Distribution::Constant(40.0)));
    let home = Home::with_rows(200);
    let used = || simulator.stats().input_tokens + simulator.stats().output_tokens;
    for limit in [3_000, 5_000] {
        let text = limit.to_string();
        let args = ["--max-tokens", &text, "--resume"];
        let ended = run(&home, &simulator).args(&args).ends_with(4);
        assert_eq!(ended.summary()["status"], "budget");
        assert!(used() <= limit && used() + 1_000 > limit, "{} of {limit}", used());
    }
    run(&home, &simulator).args(&["--max-tokens", "100000", "--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 200);
}

#[test]
fn a_budget_holds_over_a_run_that_is_killed_again_and_again() {
    const LIMIT: f64 = 0.04;
    let simulator = Simulator::start_blocking(script().latency(std::time::Duration::from_millis(3)));
    let home = priced(400);
    let args = ["--max-cost", "0.04", "--resume", "--parallel", "4"];
    for kill in 0..8 {
        let before = simulator.stats();
        let running = run(&home, &simulator).args(&args).start();
        simulator.wait_until_blocking(|now| {
            now.requests > before.requests && now.answers >= before.answers + kill * 2
        });
        let ended = running.kill();
        assert_eq!(ended.code, None, "it must have died, not ended: {}", ended.err);
        simulator.wait_until_blocking(|now| now.in_flight == 0);
        assert!(counted(&simulator) <= LIMIT);
    }
    let ended = run(&home, &simulator).args(&args).ends_with(4);
    let cost = counted(&simulator);
    assert!(cost <= LIMIT, "{cost}");
    // Calls in flight at a kill count in full, because nobody knows what they cost.
    assert!(spent(&ended) >= cost, "{} < {cost}", spent(&ended));
    let ended = run(&home, &simulator).args(&["--max-cost", "1", "--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 400);
    assert!(spent(&ended) >= counted(&simulator) && counted(&simulator) <= 1.0);
}

#[test]
fn a_budget_counts_what_parts_of_the_run_spent_that_had_none() {
    for first in [&["--max-cost", "0.02"][..], &[]] {
        let simulator = Simulator::start_blocking(script().latency(std::time::Duration::from_millis(3)));
        let home = priced(400);
        for part in [first, &[], &[]] {
            let before = simulator.stats().answers;
            let args = ["--resume", "--parallel", "2"];
            let running = run(&home, &simulator).args(&args).args(part).start();
            simulator.wait_until_blocking(|now| now.answers >= before + 60);
            running.kill();
            simulator.wait_until_blocking(|now| now.in_flight == 0);
        }
        let (before, cost) = (simulator.stats().requests, counted(&simulator));
        assert!(cost > 0.02, "the parts without a budget spent more: {cost}");
        let ended = run(&home, &simulator).args(&["--max-cost", "0.02", "--resume"]).ends_with(4);
        assert_eq!(simulator.stats().requests, before, "nothing is left to spend: {}", ended.err);
    }
}

#[test]
fn a_budget_holds_when_calls_are_cut_broken_and_repeated() {
    const LIMIT: f64 = 0.06;
    let script = [
        Fault::Truncate,
        Fault::ResetMidway,
        Fault::Reset,
        Fault::Garbage,
        Fault::Hang,
        Fault::status(500),
        Fault::Length,
    ]
    .into_iter()
    .fold(script().seed(3), |script, fault| script.fault(When::Rate(0.03), fault));
    let simulator = Simulator::start_blocking(script);
    let home = priced(400);
    let args = ["--max-cost", "0.06", "--timeout", "300ms", "--max-outage", "0", "--retries", "9"];
    let ended = run(&home, &simulator).args(&args).ends_with(4);
    let cost = counted(&simulator);
    assert!(cost <= LIMIT && cost > LIMIT / 10.0, "{cost}");
    assert!(spent(&ended) >= cost && spent(&ended) <= LIMIT, "{}", spent(&ended));
    ended.says(&["calls that may have been billed"]);
}

#[test]
fn a_budget_holds_over_a_run_that_is_aborted() {
    let simulator = Simulator::start_blocking(script().hold_after(10));
    let home = priced(60);
    let mut running = run(&home, &simulator).args(&["--max-cost", "0.02", "--parallel", "4"]).start();
    simulator.wait_until_blocking(|now| now.answers == 10 && now.in_flight == 4);
    running.signal(Signal::INT);
    running.wait_for_talk("stopping");
    running.signal(Signal::INT);
    running.wait_for_talk("aborting");
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let cut = spent(&ended) - counted(&simulator);
    assert!(cut > 0.001, "four calls count in full: {cut}");
    simulator.release();
    let ended = run(&home, &simulator).args(&["--max-cost", "0.02", "--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 60);
    assert!(spent(&ended) <= 0.02 && spent(&ended) >= counted(&simulator), "{}", spent(&ended));
}

#[test]
fn a_budget_that_cannot_be_kept_is_refused_before_anything_is_sent() {
    let unknown = "`--max-cost` needs the price of `openai.m`, which is not known";
    let toml = "prices.\"openai.m\" = { input = 0.25, output = 2.0 }";
    let unbounded = "a budget needs a bound on answers, and nobody says how long those of `generic.m` can be";
    let bound = "such as `generic.m?max_tokens=1000`";
    for (model, args, texts) in [
        ("openai.m?max_tokens=50", &["--max-cost", "1"][..], [unknown, toml]),
        ("generic.m", &["--max-cost", "1"], [unbounded, bound]),
        ("generic.m", &["--max-tokens", "1000"], [unbounded, bound]),
        (
            "generic.m?max_tokens=1000000",
            &["--max-cost", "1"],
            [
                "one answer of `generic.m` can have 1000000 tokens and cost $4.00, more than `--max-cost` $1.00",
                bound,
            ],
        ),
        (MODEL, &["--max-cost", "1", "--fallback-model", "openai.m?max_tokens=5"], [unknown, toml]),
    ] {
        let simulator = Simulator::start_blocking(script());
        let home = priced(3);
        let ended = home.run().model(&simulator, model).args(args).ends_with(1);
        ended.says(&["error[RM2006]: "]).says(&texts);
        assert_eq!(simulator.stats().requests, 0, "{model}");
        assert_eq!(home.names(), ["in.jsonl", "rowmill.toml"], "{model}");
    }
}

#[test]
fn a_budget_smaller_than_one_call_sends_nothing_and_says_what_a_call_can_cost() {
    let simulator = Simulator::start_blocking(script());
    let home = priced(3);
    let ended = run(&home, &simulator).args(&["--max-cost", "0.0003"]).ends_with(4);
    ended.says(&["$0.00 and 0 tokens are spent, and the next call could use $0.000"]);
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(home.envelopes().len(), 0);
}

#[test]
fn what_the_provider_does_not_price_is_told() {
    let simulator = Simulator::start_blocking(script());
    let home = Home::with_rows(3);
    let ended = run(&home, &simulator).args(&["--telemetry-output", "telemetry.jsonl"]).ends_with(0);
    assert_eq!(ended.summary()["cost"]["calls_without_price"], 3);
    assert!(!ended.err.contains("cost:"), "{}", ended.err);
    assert!(home.json_lines("telemetry.jsonl").iter().all(|line| line["usage"].get("cost_usd").is_none()));
}
