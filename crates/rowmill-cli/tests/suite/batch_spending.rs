//! Money in the batch lane: every answer that the provider bills counts, whoever still wants it.

use std::time::Duration;

use rowmill_testkit::{SimulatedBatches, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support::{Ended, KEY, Place, scripted};

const MODEL: &str = "openai.gpt-5.4-mini";
const FLAGS: [&str; 5] = ["-m", MODEL, "--lane", "batch", "--final-summary"];

/// A simulator whose jobs end only when a test lets them, and a folder with rows.
fn held(rows: usize) -> (Simulator, Place) {
    let jobs = SimulatedBatches::new().duration(Duration::from_secs(3_600));
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).batches(jobs));
    simulator.stop_job_clock();
    place.write_rows(rows);
    (simulator, place)
}

fn run(place: &Place, more: &[&str]) -> Ended {
    place.run_rows(&[&FLAGS[..], more].concat())
}

fn dollars(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// What the run has spent, as `batch status` says.
fn spent(place: &Place) -> f64 {
    let ended = place.rowmill(&["batch", "status", "--json"]).ok();
    dollars(&serde_json::from_str::<Value>(&ended.stdout).unwrap()["spent_usd"])
}

/// The cost of `rows` alike rows, from a run of its own.
fn cost_of_one_row() -> f64 {
    let (simulator, place) = held(1);
    run(&place, &["--detach"]).code(5);
    simulator.finish_jobs();
    let ended = run(&place, &["--resume"]).ok();
    dollars(&ended.summary()["spent_usd"])
}

#[track_caller]
fn assert_about(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-9, "{one} is not {other}");
}

#[test]
fn answers_that_no_row_wants_any_more_count_and_are_reported() {
    let (simulator, place) = held(3);
    run(&place, &["--detach"]).code(5);
    // Other texts of the same length: two of the three answers are for nobody.
    place.write("rows.jsonl", "{\"n\":1}\n{\"n\":4}\n{\"n\":5}\n");
    simulator.finish_jobs();
    let resume = ["--resume", "--accept-changes", "--detach"];
    let ended = run(&place, &resume)
        .code(5)
        .says("warning: 2 answers of batch jobs were paid for ($")
        .says("unused: 2 answers that no row wanted any more, $");
    let one = cost_of_one_row();
    assert_about(dollars(&ended.summary()["spent_usd"]), 3.0 * one);
    // The next process knows of it, too.
    assert_about(spent(&place), 3.0 * one);
    simulator.finish_jobs();
    let ended = run(&place, &["--resume"]).ok();
    assert_about(dollars(&ended.summary()["spent_usd"]), 5.0 * one);
    assert_eq!(simulator.stats().batches.answers, 5);
}

#[test]
fn answers_that_no_row_wants_any_more_use_up_the_budget() {
    let (simulator, place) = held(3);
    run(&place, &["--detach"]).code(5);
    simulator.finish_jobs();
    // With another prompt, no answer is wanted.
    let budget = format!("{:.9}", 3.5 * cost_of_one_row());
    let changed = ["--resume", "--accept-changes", "-p", "Hi {{n}}", "--max-cost", &budget];
    let ended = run(&place, &changed).code(4).says("3 answers of batch jobs were paid for");
    assert_eq!(simulator.stats().batches.answers, 3, "nothing more fits the budget");
    assert_about(dollars(&ended.summary()["spent_usd"]), 3.0 * cost_of_one_row());
}

#[test]
fn another_prompt_or_model_is_refused_while_rows_wait_for_jobs() {
    let (simulator, place) = held(2);
    run(&place, &["--detach"]).code(5);
    for changed in [["-p", "Hi {{n}}"], ["-m", "openai.gpt-5.4"]] {
        let flags = ["--lane", "batch", "--resume", "-m", MODEL];
        let flags = if changed[0] == "-m" { &flags[..3] } else { &flags[..] };
        place.run_rows(&[flags, &changed].concat()).code(1).says("error[RM1306]");
    }
    assert_eq!(simulator.stats().batches.jobs, 1);
    simulator.finish_jobs();
    run(&place, &["--resume"]).ok();
}
