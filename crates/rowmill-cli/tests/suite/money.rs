//! Money: the cost of calls is reported exactly, and a budget is never exceeded, whatever happens.

use std::time::Duration;

use crate::faults_support::{Ended, Home, PROTOCOLS, Run, assert_all_ok};
use rowmill_testkit::{
    FaultTrigger, RandomDistribution, SimulatedAnswer, SimulatedFault, Simulator, SimulatorScript,
    parse_flags,
};
use rustix::process::Signal;

/// The model string of these tests, with the maximum length of an answer.
const MODEL: &str = "generic.m?max_tokens=50";

/// A provider with prices, whose answers have 10 to 50 tokens.
fn script() -> SimulatorScript {
    let price = parse_flags::parse_price("input=1,cached=0.1,output=4").unwrap();
    SimulatorScript::new().price(price).answer_tokens(RandomDistribution::Uniform { low: 10.0, high: 50.0 })
}

/// A folder whose `rowmill.toml` has the prices of that provider.
fn priced(rows: usize) -> Home {
    let home = Home::with_rows(rows);
    home.write("rowmill.toml", "[prices.\"generic.m\"]\ninput = 1.0\ncached = 0.1\noutput = 4.0\n");
    home
}

fn run(home: &Home, simulator: &Simulator) -> Run {
    home.run().model(simulator, MODEL).args(&["--final-summary"])
}

/// The cost in dollars that the simulator counted.
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
    let message = format!("${cost:.6}");
    ended.says(&[&format!("cost:   {message}\n")]);
    let progress = ended.err.lines().find(|line| line.contains(" rows/s, ")).unwrap();
    assert!(progress.contains(&message), "{progress}");
}

#[test]
fn every_call_of_a_row_counts_repairs_included() {
    let price = parse_flags::parse_price("input=1,output=4").unwrap();
    let simulator = Simulator::start_blocking(SimulatorScript::new().price(price));
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
        ended.says(&[
            "next:   stopped at the budget: ",
            "; raise the limit, then run the same command with `--resume` to continue\n",
        ]);
        let summary = ended.summary();
        assert_eq!((&summary["status"], &summary["failed_rows"]), (&"budget".into(), &0.into()));
        let cost = counted(&simulator);
        assert!(cost <= limit, "{cost} > {limit}");
        // The rest is less than one call could cost.
        assert!(cost >= limit - 0.001, "{cost} of {limit} is used");
        assert_same(spent(&ended), cost);
        let done = home.envelopes().len();
        assert_all_ok(&home.envelopes(), done);
        assert!(done > before || limit == 0.01, "a higher limit goes on");
        before = done;
    }
    let ended = run(&home, &simulator).args(&["--max-cost", "1", "--resume"]).ends_with(0);
    ended.says(&["spent before: at most $0.02"]);
    assert_all_ok(&home.envelopes(), 300);
    assert_same(spent(&ended), counted(&simulator));
    assert_eq!((simulator.stats().answers, simulator.stats().repeated_answers), (300, 0));
}

#[test]
fn a_budget_of_tokens_is_kept_alike_and_needs_no_price() {
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().answer_tokens(RandomDistribution::Constant(40.0)));
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
    let simulator = Simulator::start_blocking(script().latency(Duration::from_millis(3)));
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
    // Calls in flight at a kill count in full, because their cost is unknown.
    assert!(spent(&ended) >= cost, "{} < {cost}", spent(&ended));
    let ended = run(&home, &simulator).args(&["--max-cost", "1", "--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 400);
    assert!(spent(&ended) >= counted(&simulator) && counted(&simulator) <= 1.0);
}

#[test]
fn a_budget_counts_what_parts_of_the_run_spent_that_had_none() {
    for first in [&["--max-cost", "0.02"][..], &[]] {
        let simulator = Simulator::start_blocking(script().latency(Duration::from_millis(3)));
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
        SimulatedFault::Truncate,
        SimulatedFault::ResetMidway,
        SimulatedFault::Reset,
        SimulatedFault::Garbage,
        SimulatedFault::Hang,
        SimulatedFault::from_status(500),
        SimulatedFault::Length,
    ]
    .into_iter()
    .fold(script().seed(3), |script, fault| script.fault(FaultTrigger::Rate(0.03), fault));
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
    let unbounded = "a budget needs a limit on answer length, and the limit of `generic.m` is not known";
    let bound = "such as `generic.m?max_tokens=1000`";
    for (model, args, texts) in [
        ("openai.m?max_tokens=50", &["--max-cost", "1"][..], [unknown, toml]),
        ("generic.m", &["--max-cost", "1"], [unbounded, bound]),
        ("generic.m", &["--max-tokens", "1000"], [unbounded, bound]),
        (
            "generic.m?max_tokens=1000000",
            &["--max-cost", "1"],
            [
                "one answer of `generic.m` can have 1,000,000 tokens and cost $4.00, more than `--max-cost` $1.00",
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
    ended.says(&["$0.00 and 0 tokens spent, and the next call could use up to $0.000"]);
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(home.envelopes().len(), 0);
}

#[test]
fn what_the_provider_does_not_price_is_reported() {
    let simulator = Simulator::start_blocking(script());
    let home = Home::with_rows(3);
    let ended = run(&home, &simulator).args(&["--telemetry-output", "telemetry.jsonl"]).ends_with(0);
    assert_eq!(ended.summary()["cost"]["calls_without_price"], 3);
    assert!(!ended.err.contains("cost:"), "{}", ended.err);
    assert!(home.json_lines("telemetry.jsonl").iter().all(|line| line["usage"].get("cost_usd").is_none()));
}

/// The maximum answer length of the models of these tests, if their strings do not limit it: $0.40.
const LONGEST: u64 = 100_000;

/// A folder whose `rowmill.toml` has the prices and answer limits of all protocols.
fn priced_with_longest(rows: usize) -> Home {
    let home = Home::with_rows(rows);
    let price = format!("input = 1.0\ncached = 0.1\noutput = 4.0\nmax_output = {LONGEST}\n");
    let prices = PROTOCOLS.map(|model| format!("[prices.\"{model}\"]\n{price}"));
    home.write("rowmill.toml", &prices.concat());
    home
}

#[test]
fn without_a_bound_on_answers_a_budget_leaves_as_many_calls_in_flight_as_are_wanted() {
    let simulator = Simulator::start_blocking(script().hold_after(10));
    let home = priced_with_longest(80);
    let args = ["--max-cost", "1", "--parallel", "32", "--final-summary"];
    let running = home.run().model(&simulator, "generic.m").args(&args).start();
    // Two answers of maximum length would fit at once.
    simulator.wait_until_blocking(|now| now.in_flight == 32);
    simulator.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended.says(&[
        "answers are capped at ",
        " fit the budget; truncated answers are requested again with a higher cap\n",
    ]);
    assert!(!ended.err.contains("the budget allows only"), "{}", ended.err);
    assert_all_ok(&home.envelopes(), 80);
    assert_same(spent(&ended), counted(&simulator));
}

#[test]
fn every_protocol_asks_again_for_an_answer_that_the_budget_cut_and_pays_for_both() {
    let long = "all of it. ".repeat(1_100);
    for model in PROTOCOLS {
        let text = long.clone();
        let price = parse_flags::parse_price("input=1,cached=0.1,output=4").unwrap();
        let answers = move |prompt: &str, _| match prompt.contains("row 30") {
            true => SimulatedAnswer::Text(text.clone()),
            false => SimulatedAnswer::Text("short".to_owned()),
        };
        let simulator =
            Simulator::start_blocking(SimulatorScript::new().price(price).answer_prompts(answers));
        let home = priced_with_longest(40);
        let args = ["--parallel", "8", "--final-summary", "--cache", "answers"];
        let run = |more: &[&str]| home.run().model(&simulator, model).args(&args).args(more);
        let first = ["--max-cost", "0.08", "--telemetry-output", "telemetry.jsonl", "--retries", "0"];
        let ended = run(&first).ends_with(0);
        assert_all_ok(&home.envelopes(), 40);
        assert_eq!(home.envelopes()[29]["result"], long.as_str(), "{model}");
        assert_same(spent(&ended), counted(&simulator));
        assert_same(ended.summary()["cost"]["usd"].as_f64().unwrap(), counted(&simulator));
        assert_eq!(ended.err.matches("answers are capped at").count(), 1, "{}", ended.err);
        let telemetry = home.json_lines("telemetry.jsonl");
        let row = telemetry.iter().find(|line| line["row_number"] == 30).unwrap();
        let calls = row["usage"]["provider_attempts"].as_array().unwrap();
        let caps: Vec<u64> =
            calls.iter().map(|call| call["max_tokens"].as_u64().unwrap_or(LONGEST)).collect();
        let [cut @ .., last] = &caps[..] else { panic!("{model}: no call") };
        assert!((1..=2).contains(&cut.len()) && cut.is_sorted() && *last > 3_000, "{model}: {caps:?}");
        for (call, cap) in calls.iter().zip(cut) {
            assert_eq!(call["tokens"]["output_tokens"], *cap, "{model}");
        }
        let answers = simulator.stats().answers;
        assert_eq!(answers, 39 + caps.len() as u64, "{model}");
        assert!(calls.iter().all(|call| call["cost_usd"].as_f64().unwrap() > 0.0), "{model}");
        // The cached answer is complete, and a run with another budget sends the same request.
        run(&["--overwrite", "--max-cost", "7"]).ends_with(0);
        assert_eq!(home.envelopes()[29]["result"], long.as_str(), "{model}");
        assert_eq!(simulator.stats().answers, answers, "{model}: every answer is known");
    }
}

#[test]
fn a_budget_that_bounds_the_pace_says_so_once_with_the_remedy() {
    let simulator = Simulator::start_blocking(script().latency(Duration::from_millis(3)));
    let home = priced(12);
    let ended = run(&home, &simulator).args(&["--max-cost", "0.004", "--parallel", "16"]).ends_with(0);
    let remedy =
        "at a time; set a lower `max_tokens` in the model string or a higher `--max-cost` to run faster";
    ended.says(&["the budget allows only ", remedy]);
    assert_eq!(ended.err.matches("the budget allows only ").count(), 1, "{}", ended.err);
    assert!(!ended.err.contains("answers are capped"), "the user bounded them: {}", ended.err);
}

#[test]
fn a_budget_below_the_longest_answer_is_kept_with_shorter_ones() {
    let simulator = Simulator::start_blocking(script());
    let home = priced_with_longest(20);
    let args = ["--max-cost", "0.05", "--final-summary"];
    let ended = home.run().model(&simulator, "generic.m").args(&args).ends_with(0);
    assert_all_ok(&home.envelopes(), 20);
    assert_same(spent(&ended), counted(&simulator));
    let args = ["--max-cost", "0.004", "--overwrite"];
    let ended = home.run().model(&simulator, "generic.m").args(&args).ends_with(1);
    ended.says(&["error[RM2006]: one answer of `generic.m` can have 1,024 tokens and cost $0.004096, more than `--max-cost` "]);
    ended.says(&[
        "help: raise the limit, or cap answers in the model string, such as `generic.m?max_tokens=500`",
    ]);
    let args = ["--max-cost", "0.0001", "--overwrite"];
    let ended = home.run().model(&simulator, "generic.m").args(&args).ends_with(1);
    ended.says(&["help: raise the limit above $0.004096"]);
    assert!(!ended.err.contains("max_tokens="), "so short an answer is of no use: {}", ended.err);
}

#[test]
fn what_a_row_may_spend_cuts_and_asks_again_within_its_bounds() {
    let long = "all of it. ".repeat(2_500);
    let price = parse_flags::parse_price("input=1,cached=0.1,output=4").unwrap();
    let answers = move |prompt: &str, _| match prompt {
        "row 2" => SimulatedAnswer::Text(long.clone()),
        "row 3" => SimulatedAnswer::Text(long.repeat(6)),
        _ => SimulatedAnswer::Text("short".to_owned()),
    };
    let simulator = Simulator::start_blocking(SimulatorScript::new().price(price).answer_prompts(answers));
    let home = priced_with_longest(3);
    let args = ["--max-row-cost", "0.1", "--telemetry-output", "telemetry.jsonl"];
    let ended = home.run().model(&simulator, "generic.m").args(&args).ends_with(3);
    ended.says(&["so that calls fit the limits of a row"]);
    let envelopes = home.envelopes();
    let outcome = |row: usize| envelopes[row]["error"]["type"].as_str().unwrap_or("ok");
    assert_eq!([outcome(0), outcome(1), outcome(2)], ["ok", "ok", "RowLimit"]);
    for line in home.json_lines("telemetry.jsonl") {
        let cost = line["usage"]["cost_usd"].as_f64().unwrap();
        assert!(cost <= 0.1, "{line}");
    }
}

/// A number below `below`, the same for the same seed and purpose.
fn drawn(seed: u64, purpose: u64, below: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    for _ in 0..3 {
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }
    (mixed ^ (mixed >> 32)) % below
}

/// One run with a budget, killed and resumed several times, with a provider that fails in every way.
fn fuzz(seed: u64) {
    let draw = |purpose, below| drawn(seed, purpose, below);
    let faults = [
        SimulatedFault::Truncate,
        SimulatedFault::ResetMidway,
        SimulatedFault::Reset,
        SimulatedFault::Garbage,
        SimulatedFault::Hang,
        SimulatedFault::from_status(500),
        SimulatedFault::from_status(429),
        SimulatedFault::Length,
    ];
    let lengths = RandomDistribution::LogNormal { median: (10 + draw(1, 600)) as f64, sigma: 1.2 };
    let mut script = script().answer_tokens(lengths).seed(seed).latency(Duration::from_millis(draw(2, 5)));
    for (index, fault) in faults.into_iter().enumerate() {
        script = script.fault(FaultTrigger::Rate(draw(10 + index as u64, 4) as f64 / 100.0), fault);
    }
    let simulator = Simulator::start_blocking(script);
    let home = priced_with_longest(8 + draw(3, 50) as usize);
    // From half a cent to thirty cents, as many small budgets as large.
    let limit = format!("{:.5}", 0.005 * 60_f64.powf(draw(4, 1_000) as f64 / 1_000.0));
    let bound = if draw(5, 4) == 0 { "?max_tokens=300" } else { "" };
    let model = format!("{}{bound}", PROTOCOLS[draw(6, 4) as usize]);
    let parallel = (1 + draw(7, 24)).to_string();
    let args = ["--max-cost", &limit, "--parallel", &parallel, "--resume", "--final-summary"];
    let patience = ["--timeout", "200ms", "--max-outage", "0", "--retries", "2"];
    let most: f64 = limit.parse().unwrap();
    let message = || format!("seed {seed}: `{model}`, {} of {limit}", counted(&simulator));
    for kill in 0..draw(8, 4) {
        let wanted = simulator.stats().requests + 1 + draw(20 + kill, 12);
        let mut running = home.run().model(&simulator, &model).args(&args).args(&patience).start();
        while !running.has_ended() && simulator.stats().requests < wanted {
            std::thread::yield_now();
        }
        running.kill();
        simulator.wait_until_blocking(|now| now.in_flight == 0);
        assert!(counted(&simulator) <= most, "{}", message());
    }
    let ended = home.run().model(&simulator, &model).args(&args).args(&patience).end();
    assert!(matches!(ended.code, Some(0 | 3 | 4)), "{}: {:?} {}", message(), ended.code, ended.err);
    assert!(counted(&simulator) <= most, "{}", message());
    let spent = spent(&ended);
    assert!(spent <= most && spent + 1e-10 >= counted(&simulator), "{}, {spent} on record", message());
}

#[test]
fn no_fuzzed_run_with_faults_and_kills_passes_its_budget() {
    let number = |name: &str, usual: u64| {
        std::env::var_os(name).map_or(usual, |text| text.to_str().unwrap().parse().unwrap())
    };
    let first = number("ROWMILL_SOAK_SEED", 1);
    for seed in first..first + number("ROWMILL_SOAK_RUNS", 24) {
        fuzz(seed);
    }
}
