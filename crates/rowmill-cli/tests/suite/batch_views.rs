//! What the commands on batch jobs show: states, ages, costs and files, and which run they mean.

use std::time::Duration;

use rowmill_testkit::{SimulatedBatches, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support::{KEY, Place, scripted};

const MODEL: &str = "openai.gpt-5.4-mini";
const BATCH: [&str; 4] = ["-m", MODEL, "--lane", "batch"];
const LONG: Duration = Duration::from_secs(3_600);

/// A simulator whose jobs end only when a test lets them, and a folder with rows.
fn held(rows: usize) -> (Simulator, Place) {
    let script = SimulatorScript::new().key(KEY).batches(SimulatedBatches::new().duration(LONG));
    let (simulator, place) = scripted(script);
    simulator.stop_job_clock();
    place.write_rows(rows);
    (simulator, place)
}

fn submit(place: &Place, more: &[&str]) {
    place.run_rows(&[&BATCH[..], &["--detach"], more].concat()).code(5);
}

fn json(place: &Place, command: &[&str]) -> Value {
    let ended = place.rowmill(&[command, &["--json"]].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// The amounts in the line `cost:` of a summary.
fn costs(text: &str) -> Vec<f64> {
    let line = text.lines().find(|line| line.starts_with("cost:   ")).unwrap();
    line.split('$').skip(1).map(|part| part.split([',', ' ']).next().unwrap().parse().unwrap()).collect()
}

#[test]
fn the_list_shows_what_status_has_seen() {
    let (simulator, place) = held(3);
    submit(&place, &[]);
    simulator.finish_jobs();
    place.rowmill(&["batch", "status"]).ok();
    let known = &json(&place, &["batch", "list"])[0];
    let job = &known["jobs"][0];
    assert_eq!((&known["state"], &job["completed"]), (&"completed".into(), &3.into()), "{known}");
    assert_eq!(known["run_state"], "open", "nothing has been collected");
    place.rowmill(&["batch", "retrieve"]).ok();
}

#[test]
fn the_costs_of_the_commands_on_a_run_add_up() {
    let (simulator, place) = held(0);
    // The second row needs another attempt, so that two commands collect.
    place.write("rows.jsonl", "{\"n\":\"a\"}\n{\"n\":\"[[503x1]] b\"}\n");
    submit(&place, &["-p", "{{n}}"]);
    simulator.finish_jobs();
    let first = costs(&place.rowmill(&["batch", "retrieve"]).code(5).stderr);
    simulator.finish_jobs();
    let second = costs(&place.rowmill(&["batch", "retrieve"]).ok().stderr);
    let ([first], [second, all]) = (first.as_slice(), second.as_slice()) else {
        panic!("{first:?} {second:?}");
    };
    assert!((first + second - all).abs() < 2e-6, "{first} + {second} is not {all}");
}

#[test]
fn before_a_table_is_written_its_envelopes_are_named() {
    let (simulator, place) = held(2);
    let flags = ["run", "-i", "rows.jsonl", "-o", "res.csv", "--detach"];
    place.rowmill(&[&flags[..], &BATCH].concat()).code(5);
    let ended =
        place.rowmill(&["batch", "retrieve"]).code(5).says("res.csv is written once no row is pending");
    let named = ended.stdout.trim();
    assert!(named.ends_with("envelopes.jsonl") && std::path::Path::new(named).exists(), "{named}");
    assert!(!place.exists("res.csv"));
    simulator.finish_jobs();
    let ended = place.rowmill(&["batch", "retrieve"]).ok();
    assert!(ended.stdout.trim().ends_with("res.csv") && place.exists("res.csv"), "{}", ended.stdout);
}

#[test]
fn a_run_of_the_current_folder_comes_before_a_later_one_and_several_are_not_cancelled_by_chance() {
    let (simulator, place) = held(0);
    for folder in ["one", "two"] {
        place.write(&format!("{folder}/rows.jsonl"), "{\"n\":1}\n");
        let flags = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "--detach"];
        place.rowmill_in(folder, &[&flags[..], &BATCH].concat()).code(5);
    }
    let ended = place.rowmill_in("one", &["batch", "status"]).ok();
    assert!(ended.stdout.contains("/one/out.jsonl") && ended.stderr.contains("/one"), "{ended:?}");
    let ended = place.rowmill_in("one", &["batch", "cancel"]).code(2).says("2 runs have batch jobs");
    assert!(ended.stderr.contains("/one/out.jsonl") && ended.stderr.contains("/two/out.jsonl"), "{ended:?}");
    assert_eq!(simulator.stats().batches.jobs_by_state.get("cancelling"), None, "nothing was cancelled");
    simulator.finish_jobs();
    place.rowmill_in("two", &["batch", "retrieve"]).ok();
    place.rowmill_in("one", &["batch", "cancel"]).ok();
    place.rowmill_in("one", &["batch", "retrieve"]).ok();
}

#[test]
fn ages_are_those_of_our_own_clock_and_the_window_is_never_longer_than_it_is() {
    let (simulator, place) = held(1);
    // The provider's clock is ahead.
    simulator.advance_job_clock(50 * LONG);
    submit(&place, &[]);
    let text = place.rowmill(&["batch", "status"]).ok().stdout;
    let line = text.lines().find(|line| line.starts_with("age: ")).unwrap();
    assert!(line.contains("at most 23h 59m left") || line.contains("at most 24h"), "{line}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(json(&place, &["batch", "status"])["oldest"].as_u64().unwrap() <= now);
}

#[test]
fn rounds_are_counted_alike_everywhere() {
    let (simulator, place) = held(0);
    place.write("rows.jsonl", "{\"n\":\"[[503x1]]\"}\n");
    submit(&place, &["-p", "{{n}}"]);
    // A pass in which no job is made is no round.
    place.rowmill(&["batch", "retrieve"]).code(5);
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).code(5).says("2 jobs in 2 rounds");
    let rounds: Vec<Value> = json(&place, &["batch", "status"])["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["round"].clone())
        .collect();
    assert_eq!(rounds, [1, 2]);
}

#[test]
fn a_budget_with_room_for_few_requests_ends_the_run_in_place_of_many_small_rounds() {
    let batches = SimulatedBatches::new();
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).batches(batches));
    place.write_rows(300);
    let flags = ["--max-cost", "0.02", "--poll-every", "1ms"];
    let run = |more: &[&str]| place.run_rows(&[&BATCH[..], &flags, more].concat());
    let ended = run(&[]).code(4).says(" in this round of jobs").says("a round of jobs may take a day");
    assert!(ended.stderr.contains("of 300 requests"), "{}", ended.stderr);
    assert_eq!(simulator.stats().batches.jobs, 1);
    // Each command sends a round.
    run(&["--resume"]).code(4);
    assert_eq!(simulator.stats().batches.jobs, 2);
    assert!(place.json("out.jsonl").len() as u64 == simulator.stats().batches.answers);
}
