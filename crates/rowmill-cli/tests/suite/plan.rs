//! `rowmill plan` estimates a run, without making calls.

use crate::faults_support::{Home, Run, assert_all_ok};
use rowmill_testkit::{
    RandomDistribution, SimulatedLimits, Simulator, SimulatorScript, Tokenizer, parse_flags,
};
use serde_json::{Value, json};

/// A model with its own tokenizer, whose answers are limited.
const MODEL: &str = "openai.gpt-5.4-mini?max_tokens=2000";

/// A provider that counts tokens like that model, with its price.
fn script() -> SimulatorScript {
    let price = parse_flags::parse_price("input=0.5,cached=0.05,output=3").unwrap();
    SimulatorScript::new()
        .tokenizer(Tokenizer::O200k)
        .price(price)
        .answer_tokens(RandomDistribution::LogNormal { median: 40.0, sigma: 0.8 })
        .keep_requests(0)
        .forget_prompts()
}

/// Rows of different lengths, and the price of the model.
fn home(rows: usize) -> Home {
    let words = ["quick", "Überraschung", "12345", "naïve", "supercalifragilistic", "東京", "the", "run"];
    let prompts = (0..rows).map(|row| {
        let text: Vec<&str> = (0..row % 37).map(|word| words[(row * 7 + word * 3) % words.len()]).collect();
        format!("Review {row}: {}", text.join(" "))
    });
    let home = Home::with_prompts(prompts);
    home.write(
        "rowmill.toml",
        "[prices.\"openai.gpt-5.4-mini\"]\ninput = 0.5\ncached = 0.05\noutput = 3.0\nbatch = 0.5\n",
    );
    home
}

/// The plan as JSON.
#[track_caller]
fn report(plan: Run) -> Value {
    let ended = plan.args(&["--json"]).ends_with(0);
    serde_json::from_str(&ended.out).unwrap()
}

#[track_caller]
fn interval(report: &Value, name: &str) -> [f64; 3] {
    ["low", "expected", "high"].map(|part| report[name][part].as_f64().unwrap())
}

#[track_caller]
fn assert_inside(report: &Value, name: &str, real: f64) {
    let [low, _, high] = interval(report, name);
    assert!((low..=high).contains(&real), "{name}: {real} is not in {low} to {high}");
}

#[test]
fn ten_thousand_rows_use_what_the_plan_estimated() {
    const ROWS: usize = 10_000;
    let home = home(ROWS);
    home.write("instruction.md", "Classify the review as good, bad or neither, and say why in a few words.");
    let instruction = ["--instruction", "instruction.md"];
    let sampled = Simulator::start_blocking(script());
    let plan = home.plan().model(&sampled, MODEL).args(&instruction).args(&["--sample-calls", "200"]);
    let report = report(plan);
    assert_eq!((&report["rows"], &report["calls"]), (&json!(ROWS), &json!(ROWS)));
    assert_eq!(
        (&report["counted_by"], &report["judged_by"]),
        (&json!("o200k_base"), &json!("200 sample calls"))
    );
    assert_eq!(sampled.stats().answers, 200);
    let sample_cost = sampled.stats().cost_usd.unwrap().dollars();
    assert!((report["sample_cost_usd"].as_f64().unwrap() - sample_cost).abs() < 1e-9);

    let simulator = Simulator::start_blocking(script());
    home.run().model(&simulator, MODEL).args(&instruction).args(&["--parallel", "64"]).ends_with(0);
    let stats = simulator.stats();
    assert_eq!(stats.answers, ROWS as u64);
    let (planned, used) = (interval(&report, "input_tokens")[1], stats.input_tokens as f64);
    assert!((planned / used - 1.0).abs() <= 0.02, "planned {planned}, used {used}");
    assert_inside(&report, "output_tokens", stats.output_tokens as f64);
    assert_inside(&report, "cost_usd", stats.cost_usd.unwrap().dollars());
}

#[test]
fn a_plan_calls_nothing_needs_no_key_and_leaves_nothing() {
    let simulator = Simulator::start_blocking(script());
    let home = home(100);
    let before = home.names();
    let url = format!("{}/v1", simulator.url());
    let args = ["-m", MODEL, "-o", "out.jsonl", "--dedupe", "--rpm", "600"];
    let ended = home.plan().env("OPENAI_BASE_URL", &url).args(&args).ends_with(0);
    for text in [
        "openai.gpt-5.4-mini?max_tokens=2000: 100 rows, 100 calls\n",
        " tokens, counted by o200k_base\n",
        "output: unknown, at most 200,000 tokens; use `--sample-calls N` for an estimate\n",
        "cost:   unknown, at most $0.6",
        " with live calls\n",
        " with the provider's batch API\n",
        "time:   about 10s at 600 requests/min\n",
    ] {
        assert!(ended.out.contains(text), "`{text}` is not in: {}", ended.out);
    }
    assert_eq!((simulator.stats().connections, simulator.stats().requests), (0, 0));
    assert_eq!(home.names(), before);
}

#[test]
fn a_plan_for_machines_has_everything_and_the_batch_lane_its_discount() {
    let home = home(10);
    let simulator = Simulator::start_blocking(script());
    let plan = home.plan().model(&simulator, MODEL);
    let report = report(plan.args(&["--tpm", "1000", "--sample-calls", "3"]));
    let names = "model rows calls unsendable_rows reused_rows input_tokens counted_by output_tokens judged_by \
                 answers_seen cost_usd batch_cost_usd price_as_of seconds limits sample_cost_usd spent_before";
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, names.split_whitespace().collect::<Vec<_>>());
    let [live, batch] = ["cost_usd", "batch_cost_usd"].map(|name| interval(&report, name));
    for (live, batch) in live.iter().zip(batch) {
        assert!((live / 2.0 - batch).abs() < 1e-9, "{live} {batch}");
    }
    let [_, input, _] = interval(&report, "input_tokens");
    let [_, output, _] = interval(&report, "output_tokens");
    let seconds = report["seconds"].as_f64().unwrap();
    assert!((seconds - (input + output) * 60.0 / 1_000.0).abs() < 1.0, "{report}");
    assert_eq!(report["limits"]["tokens"], 1_000);
}

#[test]
fn what_nobody_can_expect_is_unknown_and_only_the_most_is_reported() {
    let home = home(10);
    let plan = || home.plan().args(&["-m", MODEL, "--rpm", "60", "--tpm", "1000"]);
    let reported = report(plan());
    assert_eq!(reported["output_tokens"], json!({"low": 0.0, "expected": null, "high": 20_000.0}));
    for name in ["cost_usd", "batch_cost_usd"] {
        assert_eq!(reported[name]["expected"], Value::Null, "{reported}");
        assert!(
            reported[name]["high"].as_f64().unwrap() > reported[name]["low"].as_f64().unwrap(),
            "{reported}"
        );
    }
    // One of the limits counts answer tokens, so the time is not known either.
    assert_eq!(reported["seconds"], Value::Null);
    let text = "time:   unknown, because answer length is unknown; use `--sample-calls N` for an estimate\n";
    assert!(plan().ends_with(0).out.contains(text));
    let requests_only = report(home.plan().args(&["-m", MODEL, "--rpm", "60"]));
    assert_eq!(requests_only["seconds"], json!(10.0));
    let nothing = report(home.plan().args(&["-m", MODEL, "--limit", "0"]));
    assert_eq!(nothing["output_tokens"]["expected"], json!(0.0), "no call has no answer");
}

#[test]
fn what_is_not_known_is_reported_and_a_count_without_a_tokenizer_tells_its_error() {
    let home = Home::with_rows(10);
    let ended = home.plan().args(&["-m", "generic.m"]).ends_with(0);
    for text in [
        "estimate, ±",
        "output: unknown; use `--sample-calls N` for an estimate\n",
        "cost:   unknown: set the price at the top of `rowmill.toml`; see `rowmill models MODEL`\n",
        "time:   unknown, because no rate limits are known; set `--rpm` or `--tpm`, or use `--sample-calls N`\n",
    ] {
        assert!(ended.out.contains(text), "`{text}` is not in: {}", ended.out);
    }
    let report = report(home.plan().args(&["-m", "generic.m"]));
    assert_eq!([&report["output_tokens"], &report["cost_usd"], &report["seconds"]], [&Value::Null; 3]);
    let [low, expected, high] = interval(&report, "input_tokens");
    assert!(low < expected && expected < high);
}

#[test]
fn sample_calls_teach_the_limits_and_are_not_paid_again_with_a_cache() {
    let limits =
        SimulatedLimits { requests: Some(3_000), tokens: Some(600_000), ..SimulatedLimits::default() };
    let simulator = Simulator::start_blocking(script().limits(limits));
    let home = home(60);
    let args = ["--cache", "answers", "--sample-calls", "20"];
    let report = report(home.plan().model(&simulator, MODEL).args(&args));
    assert_eq!(
        (&report["limits"]["requests"], &report["limits"]["tokens"]),
        (&json!(3_000), &json!(600_000))
    );
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&report["rows"], &report["calls"], &report["reused_rows"]),
        (&json!(60), &json!(40), &json!(20))
    );
    assert_eq!(simulator.stats().answers, 20);
    home.run().model(&simulator, MODEL).args(&["--cache", "answers"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 60);
    assert_eq!(simulator.stats().answers, 60);
}

#[test]
fn a_plan_learns_from_kept_answers_and_from_each_of_them_once() {
    let simulator = Simulator::start_blocking(script());
    let home = home(60);
    let plan =
        |args: &[&str]| report(home.plan().model(&simulator, MODEL).args(&["--cache", "answers"]).args(args));
    let first = plan(&["--sample-calls", "20"]);
    assert_eq!(first["judged_by"], "20 sample calls");
    let asked = simulator.stats();
    // The same rows are drawn again, and none of them is sent; nor does a plan without samples send
    // any.
    for again in [plan(&["--sample-calls", "20"]), plan(&[])] {
        assert_eq!(again["judged_by"], "20 cached answers");
        assert_eq!((&again["answers_seen"], &again["calls"]), (&json!(true), &json!(40)));
        for name in ["output_tokens", "cost_usd"] {
            assert_eq!(again[name]["expected"], first[name]["expected"], "{name}");
        }
    }
    assert_eq!(simulator.stats().requests, asked.requests);
    // Rows with the same request share one answer, which counts only once in the statistics.
    home.append("in.jsonl", &home.read("in.jsonl"));
    assert_eq!(plan(&[])["judged_by"], "20 cached answers");
}

#[test]
fn a_plan_is_judged_by_an_earlier_run_that_asked_the_same() {
    let simulator = Simulator::start_blocking(script());
    let home = home(400);
    home.run().model(&simulator, MODEL).args(&["--limit", "200"]).ends_with(0);
    let used = simulator.stats();
    let plan = |args: &[&str]| report(home.plan().args(&["-m", MODEL, "-o", "out.jsonl"]).args(args));
    let same = plan(&["--limit", "200"]);
    assert!(same["judged_by"].as_str().unwrap().starts_with("200 rows of the earlier run of "), "{same}");
    assert_eq!(interval(&same, "output_tokens")[1], used.output_tokens as f64);
    assert_inside(&same, "cost_usd", used.cost_usd.unwrap().dollars());
    assert_eq!(simulator.stats().requests, 200, "a plan calls nothing");

    home.run().model(&simulator, MODEL).args(&["--resume"]).ends_with(0);
    let whole = plan(&[]);
    assert_inside(&whole, "output_tokens", simulator.stats().output_tokens as f64);
    // Statistics of different requests are not used for this run.
    home.write("kind.md", "Be kind.");
    let other = plan(&["--instruction", "kind.md"]);
    assert!(other["judged_by"].as_str().unwrap().starts_with("the maximum answer lengths"), "{other}");
}

#[test]
fn rows_that_ask_the_same_or_cannot_be_sent_are_distinguished() {
    let home = Home::with_prompts((0..30).map(|row| format!("prompt {}", row % 10)));
    home.append("in.jsonl", "{\"q\":1}\nnot json\n");
    for (args, calls, reused) in [(&["--dedupe"][..], 10, 20), (&[], 30, 0)] {
        let report = report(home.plan().args(&["-m", MODEL]).args(args));
        let found = ["rows", "calls", "reused_rows", "unsendable_rows"].map(|name| report[name].clone());
        assert_eq!(found, [32, calls, reused, 2].map(Value::from), "{args:?}");
    }
    let ended = home.plan().args(&["-m", MODEL, "--dedupe"]).ends_with(0);
    let text = "32 rows, 10 calls, 20 reused from the cache or from identical rows, 2 that cannot be sent\n";
    assert!(ended.out.contains(text), "{}", ended.out);
}

#[test]
fn a_plan_takes_the_same_selection_and_refuses_what_a_run_would() {
    let home = home(50);
    let selected = report(home.plan().args(&["-m", MODEL, "--offset", "10", "--limit", "7"]));
    assert_eq!(selected["rows"], 7);
    home.plan().args(&["-m", "nowhere.m"]).ends_with(1).says(&["error[RM1201]"]);
    home.plan().args(&["-m", MODEL, "--sample-calls", "0"]).ends_with(2).says(&["must be greater than zero"]);
    home.plan().args(&["-m", MODEL, "--template", "t.md"]).ends_with(2);
    home.plan().args(&["-m", MODEL, "--instruction", "none.md"]).ends_with(1).says(&["error[RM1101]"]);
    let keyless = home.plan().args(&["-m", MODEL, "--sample-calls", "3"]).ends_with(1);
    keyless.says(&["error[RM1202]: `openai` needs a key"]);
}

#[test]
fn a_budget_is_judged_by_how_far_the_calls_come_that_it_pays_for() {
    // The first hundred rows need a call each, and all others repeat them.
    let home = Home::with_prompts((0..1000).map(|row| format!("prompt {:03}", row % 100)));
    home.write("rowmill.toml", "[prices.\"openai.gpt-5.4-mini\"]\ninput = 0.5\noutput = 3.0\n");
    let plan = |args: &[&str]| report(home.plan().args(&["-m", MODEL, "--dedupe"]).args(args));
    let whole = plan(&[])["cost_usd"]["high"].as_f64().unwrap();
    let half = plan(&["--max-cost", &format!("{}", whole / 2.0)]);
    assert_eq!((&half["calls"], &half["budget"]["enough"]), (&json!(100), &json!(false)));
    let rows = half["budget"]["rows"].as_u64().unwrap();
    assert!((49..=51).contains(&rows), "{rows}");
    assert_eq!(plan(&["--max-cost", &format!("{}", whole * 2.0)])["budget"]["rows"], 1000);
}
