//! Money in the batch lane: budgets are hard, and costs are counted with the batch price.

use rowmill_testkit::{SimulatedBatches, Simulator, SimulatorScript, parse_flags};
use serde_json::Value;

use crate::lanes_support::{BATCH, DETACHED, LONG, provided, write_texts};
use crate::support::{Ended, Place};

/// The model of these tests, with a limit on its answers.
const MODEL: &str = "openai.m?max_tokens=50";

/// More than one row may cost at most, in dollars.
const ROW: f64 = 0.04;

/// Half the price of live calls, which is also what the simulator charges.
const PRICES: &str = "[prices.\"openai.m\"]\ninput = 100.0\noutput = 400.0\nbatch = 0.5\n";

/// A simulator with prices, whose jobs are done at once.
fn priced(rows: usize, more: &str) -> (Simulator, Place) {
    with_prices(SimulatedBatches::new(), (rows, more), "")
}

/// The same, with jobs that end only when a test lets them.
fn held(rows: usize, config: &str) -> (Simulator, Place) {
    let (simulator, place) = with_prices(SimulatedBatches::new().duration(LONG), (rows, ""), config);
    simulator.stop_job_clock();
    (simulator, place)
}

fn with_prices(batches: SimulatedBatches, (rows, more): (usize, &str), config: &str) -> (Simulator, Place) {
    let price = parse_flags::parse_price("input=100,output=400").unwrap();
    let (simulator, place) = provided(SimulatorScript::new().price(price).batches(batches));
    place.write("rowmill.toml", format!("{PRICES}{config}"));
    write_texts(&place, (1..=rows).map(|row| format!("row {row:04}{more}")));
    (simulator, place)
}

fn run(place: &Place, flags: &[&[&str]]) -> Ended {
    place.run_rows(&[&["-m", MODEL, "-p", "{{t}}", "--final-summary"], &*flags.concat()].concat())
}

/// What the simulator charged for jobs, in dollars.
fn charged(simulator: &Simulator) -> f64 {
    simulator.stats().batches.cost_usd.map_or(0.0, |cost| cost.dollars())
}

fn known(place: &Place) -> Value {
    serde_json::from_str(&place.rowmill(&["batch", "list", "--json"]).ok().stdout).unwrap()
}

#[test]
fn the_cost_is_what_the_provider_charges_and_half_of_that_of_live_calls() {
    let (simulator, place) = priced(20, " [[503x1]]");
    let ended = run(&place, &[BATCH, &["--telemetry-output", "times.jsonl"]]).ok();
    let cost = charged(&simulator);
    let summary = ended.summary();
    assert!(cost > 0.0 && (summary["cost"]["usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{summary}");
    assert!((summary["spent_usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{summary}");
    let telemetry = place.json("times.jsonl");
    let reported: f64 = telemetry.iter().filter_map(|line| line["usage"]["cost_usd"].as_f64()).sum();
    assert!((reported - cost).abs() < 1e-9);
    let saved = format!("batch:  2 jobs in 2 rounds, ${cost:.4} saved compared with live calls");
    assert!(ended.stderr.contains(&saved), "{saved}: {}", ended.stderr);
}

#[test]
fn the_worst_case_of_a_job_is_reserved_before_it_is_created_and_a_budget_is_never_passed() {
    let (simulator, place) = held(60, "");
    let budget = 0.06;
    let limit = budget.to_string();
    run(&place, &[DETACHED, &["--max-cost", &limit]]).code(5);
    let mut rows = vec![0];
    loop {
        let reserved = known(&place)[0]["reserved_usd"].as_f64().unwrap();
        let spent = charged(&simulator);
        assert!(reserved > 0.0 && spent + reserved <= budget + 1e-9, "{spent} {reserved}");
        // As much as fits is sent.
        assert!(spent + reserved > budget - ROW, "{spent} {reserved}");
        rows.push(simulator.stats().batches.rows);
        simulator.finish_jobs();
        let ended = place.rowmill(&["batch", "retrieve"]);
        if ended.code == 4 {
            ended.says("the budget").says("pending:");
            break;
        }
        ended.code(5);
    }
    assert!(rows.len() > 3 && rows.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
    let spent = charged(&simulator);
    assert!(spent <= budget && spent > budget - ROW, "{spent}");
    // A higher budget goes on where it stopped.
    simulator.restart_job_clock();
    let done = simulator.stats().batches.answers;
    assert!(done < 60);
    let (resumed, enough) = (&["--resume", "--max-cost", "50"], 60);
    let child = place.start_rows(&[&["-m", MODEL, "-p", "{{t}}"], BATCH, resumed].concat());
    simulator.wait_until_blocking(|stats| stats.batches.rows >= enough);
    simulator.finish_jobs();
    crate::support::finish(child).ok();
    let stats = simulator.stats().batches;
    assert_eq!((stats.answers, stats.repeated_answers), (60, 0));
}

#[test]
fn a_job_that_is_full_when_the_budget_is_used_up_is_sent() {
    // The budget has room for exactly the rows that a job has room for.
    let (simulator, place) = held(6, "[providers.openai.batch]\nmax_requests = 3\n");
    run(&place, &[DETACHED]).code(5);
    let each = known(&place)[0]["reserved_usd"].as_f64().unwrap() / 6.0;
    assert_eq!(simulator.stats().batches.jobs, 2);
    place.rowmill(&["batch", "cancel", "--no-wait"]).code(5);
    simulator.finish_jobs();
    place.rowmill(&["batch", "cancel"]);
    let budget = format!("{:.6}", each * 3.5);
    run(&place, &[DETACHED, &["--overwrite", "--max-cost", &budget]]).code(5);
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().batches.rows), (3, 9));
    assert_eq!(known(&place)[0]["rows"]["out"], 6);
}

#[test]
fn a_budget_in_tokens_is_hard_too() {
    let (simulator, place) = priced(50, "");
    let ended = run(&place, &[BATCH, &["--max-tokens", "800"]]).code(4);
    let stats = simulator.stats().batches;
    assert!(stats.input_tokens + stats.output_tokens <= 800, "{}", ended.stderr);
    // What fits into later rounds is too little to wait for.
    assert!((1..50).contains(&stats.answers), "{}", stats.answers);
    assert_eq!(place.json("out.jsonl").len() as u64, stats.answers);
}
