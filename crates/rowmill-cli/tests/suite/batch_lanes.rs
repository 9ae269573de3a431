//! Runs that use both lanes: `--lane auto` with a deadline, and `--repair-lane live`.

use std::time::Duration;

use rowmill_testkit::{SimulatedBatches, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::support::{KEY, Place, finish, row_numbers, scripted, wait_for};

const MODEL: &str = "openai.gpt-5.4-mini";
const HOUR: Duration = Duration::from_secs(3_600);
const ROWS: usize = 40;
/// What makes live calls be expected to take four and a half seconds.
const QUICK: [&str; 4] = ["--timeout", "1s", "--parallel", "20"];

fn place_with(batches: SimulatedBatches, cancel_time: &str) -> (Simulator, Place) {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).batches(batches));
    place.write("rowmill.toml", format!("[providers.openai.batch]\ncancel_time = \"{cancel_time}\"\n"));
    place.write_rows(ROWS);
    (simulator, place)
}

fn check_all_paid_once(simulator: &Simulator, place: &Place) {
    let envelopes = place.json("out.jsonl");
    assert_eq!(row_numbers(&envelopes), (1..=ROWS as u64).collect::<Vec<_>>());
    assert!(envelopes.iter().all(|envelope| envelope["ok"] == true));
    let stats = simulator.stats();
    assert_eq!((stats.answers + stats.batches.answers, stats.batches.jobs), (ROWS as u64, 1));
    assert_eq!((stats.repeated_turns, stats.batches.repeated_answers), (0, 0));
}

#[test]
fn what_jobs_have_not_finished_when_the_deadline_is_near_is_sent_live() {
    // A job of forty seconds, and two to cancel it.
    let (simulator, place) = place_with(SimulatedBatches::new().duration(HOUR).time_scale(90.0), "5s");
    let flags = ["-m", MODEL, "--lane", "auto", "--deadline", "14s", "--poll-every", "100ms"];
    let telemetry = ["--telemetry-output", "t.jsonl"];
    let ended = place.run_rows(&[&flags[..], &QUICK, &telemetry].concat()).ok();
    assert_eq!(ended.summary()["status"], "finished");
    let ended = ended
        .says("what is not back in time for the deadline is sent live")
        .says("the deadline is near: batch jobs are cancelled");
    assert!(!ended.stderr.contains("paid for twice"), "{}", ended.stderr);
    check_all_paid_once(&simulator, &place);
    let live = simulator.stats().answers;
    assert!(live > 0);
    let lanes = |name: &str| {
        let lines = place.json("t.jsonl");
        lines.iter().filter(|line| line["usage"]["provider_attempts"][0]["lane"] == name).count()
    };
    assert_eq!((lanes("live") as u64, lanes("live") + lanes("batch")), (live, ROWS));
}

#[test]
fn a_run_that_is_killed_while_its_jobs_are_cancelled_goes_on_live() {
    let (simulator, place) = place_with(SimulatedBatches::new().duration(HOUR), "100s");
    simulator.stop_job_clock();
    let flags = ["-m", MODEL, "--lane", "auto", "--poll-every", "10ms", "--deadline"];
    let mut first = place.start_rows(&[&flags[..], &["110s"], &QUICK].concat());
    simulator.wait_until_blocking(|stats| stats.batches.jobs == 1);
    simulator.advance_job_clock(HOUR / 2);
    let is_cancelling = || simulator.stats().batches.jobs_by_state.get("cancelling") == Some(&1);
    wait_for(|| is_cancelling().then_some(()));
    first.kill().unwrap();
    first.wait().unwrap();
    // The jobs of another process are not waited for any more: nothing is sent to them.
    let again = place.start_rows(&[&flags[..], &["110s", "--resume"], &QUICK].concat());
    simulator.finish_jobs();
    finish(again).ok();
    check_all_paid_once(&simulator, &place);
    let kept = simulator.stats().batches.answers;
    assert!(kept > 0 && kept < ROWS as u64, "{kept} rows were finished");
}

#[test]
fn what_a_switched_run_has_left_is_collected_and_not_submitted_again() {
    let (simulator, place) = place_with(SimulatedBatches::new().duration(HOUR), "100s");
    simulator.stop_job_clock();
    let flags = ["-m", MODEL, "--lane", "auto", "--poll-every", "10ms", "--deadline", "110s"];
    let mut first = place.start_rows(&[&flags[..], &QUICK].concat());
    simulator.wait_until_blocking(|stats| stats.batches.jobs == 1);
    simulator.advance_job_clock(HOUR / 2);
    wait_for(|| simulator.stats().batches.jobs_by_state.get("cancelling").copied());
    first.kill().unwrap();
    first.wait().unwrap();
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).code(130);
    assert_eq!(simulator.stats().batches.jobs, 1);
    assert_eq!(place.json("out.jsonl").len() as u64, simulator.stats().batches.answers);
    place.run_rows(&[&flags[..], &["--resume"], &QUICK].concat()).ok();
    check_all_paid_once(&simulator, &place);
}

#[test]
fn a_deadline_that_is_too_near_for_jobs_is_met_live() {
    let (simulator, place) = place_with(SimulatedBatches::new().duration(HOUR), "10m");
    let flags = ["-m", MODEL, "--lane", "auto", "--deadline", "5m"];
    place.run_rows(&[&flags[..], &QUICK].concat()).ok();
    let stats = simulator.stats();
    assert_eq!((stats.answers, stats.batches.jobs), (ROWS as u64, 0));
    // A provider without a batch API is called live as well.
    let flags = ["-m", "passthrough", "--lane", "auto", "--deadline", "5m", "--overwrite"];
    place.run_rows(&flags).ok().says("requests are sent live: `passthrough` has no batch API");
}

#[test]
fn nobody_can_switch_for_a_run_that_is_left() {
    let (simulator, place) = place_with(SimulatedBatches::new(), "1s");
    let flags = ["-m", MODEL, "--lane", "auto", "--deadline", "5m", "--detach"];
    place.run_rows(&flags).code(2).says(
        "`--lane auto` and `--deadline` do not support `--detach`: the process has to be there to switch to live calls",
    );
    assert_eq!(simulator.stats().batches.jobs, 0);
    // `--lane batch` stops waiting at the deadline, as ever.
    simulator.stop_job_clock();
    let flags = ["-m", MODEL, "--lane", "batch", "--deadline", "1s"];
    place.run_rows(&flags).code(4);
    assert_eq!(simulator.stats().answers, 0);
}

/// Rows of which one is answered in the right form only when it is asked again.
fn place_with_repairs() -> (Simulator, Place) {
    let script = SimulatorScript::new().key(KEY).batches(SimulatedBatches::new());
    let (simulator, place) = scripted(script);
    place.write("rows.jsonl", "{\"t\":\"a\"}\n{\"t\":\"b [[wrongx1]]\"}\n{\"t\":\"c\"}\n");
    place.write("schema.json", r#"{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}"#);
    (simulator, place)
}

const REPAIRED: [&str; 10] = [
    "-m",
    MODEL,
    "--lane",
    "batch",
    "--json-schema",
    "schema.json",
    "--poll-every",
    "1ms",
    "--telemetry-output",
    "t.jsonl",
];

fn lanes_of_row_two(place: &Place) -> Vec<Value> {
    let lines = place.json("t.jsonl");
    let row = lines.iter().find(|line| line["row_number"] == 2).unwrap();
    let calls = row["usage"]["provider_attempts"].as_array().unwrap();
    calls.iter().map(|call| call["lane"].clone()).collect()
}

#[test]
fn repairs_are_sent_live_if_the_user_wants_that_and_the_envelopes_are_the_same() {
    let mut outputs = Vec::new();
    for (more, jobs, live, lanes) in [
        (vec![], 2, 0, ["batch", "batch"]),
        (vec!["--repair-lane", "batch"], 2, 0, ["batch", "batch"]),
        (vec!["--repair-lane", "live"], 1, 1, ["batch", "live"]),
    ] {
        let (simulator, place) = place_with_repairs();
        let ended = place.run_rows(&[&REPAIRED[..], &more].concat()).ok();
        let stats = simulator.stats();
        assert_eq!((stats.batches.jobs, stats.answers), (jobs, live), "{more:?}");
        assert_eq!(lanes_of_row_two(&place), lanes, "{more:?}");
        assert_eq!(ended.summary()["calls"]["repairs"], 1);
        outputs.push(place.read("out.jsonl"));
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:?}");
}

#[test]
fn retrieve_repairs_live_at_once() {
    let (simulator, place) = place_with_repairs();
    place.run_rows(&[&REPAIRED[..], &["--repair-lane", "live", "--detach"]].concat()).code(5);
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).ok();
    let stats = simulator.stats();
    assert_eq!((stats.batches.jobs, stats.answers), (1, 1));
    assert_eq!(lanes_of_row_two(&place), ["batch", "live"]);
}

#[test]
fn a_live_repair_reserves_the_price_of_a_live_call() {
    let budgeted = |limit: &str| {
        let (simulator, place) = place_with_repairs();
        place.write("rows.jsonl", "{\"t\":\"b [[wrongx1]]\"}\n");
        let flags = [&REPAIRED[..], &["--repair-lane", "live", "--detach", "--max-cost", limit]].concat();
        place.run_rows(&flags).code(5);
        let shown = place.rowmill(&["batch", "status", "--json"]).ok().stdout;
        let reserved = serde_json::from_str::<Value>(&shown).unwrap()["reserved_usd"].as_f64().unwrap();
        simulator.finish_jobs();
        let ended = place.rowmill(&["batch", "retrieve", "--json"]);
        (reserved, ended, simulator.stats().answers)
    };
    let (reserved, ended, live) = budgeted("5");
    ended.ok();
    assert_eq!(live, 1);
    // Enough for the job, and for a repair at half the price.
    let (_, ended, live) = budgeted(&(reserved * 1.7).to_string());
    assert_eq!((ended.code, live), (4, 0), "{}", ended.stderr);
    let (_, ended, live) = budgeted(&(reserved * 4.0).to_string());
    assert_eq!((ended.code, live), (0, 1), "{}", ended.stderr);
}

#[test]
fn a_budget_needs_a_price_that_is_known_in_both_lanes() {
    let (simulator, place) = place_with(SimulatedBatches::new(), "1s");
    for lane in ["batch", "live"] {
        let flags = ["-m", "openai.nonesuch-9", "--max-cost", "1", "--lane", lane];
        place
            .run_rows(&flags)
            .code(1)
            .says("`--max-cost` needs the price of `openai.nonesuch-9`, which is not known");
    }
    let stats = simulator.stats();
    assert_eq!((stats.answers, stats.batches.jobs), (0, 0));
    assert!(!place.path(".out.jsonl.rowmill").exists(), "a run that did not start leaves nothing");
}

#[test]
fn the_repair_lane_comes_from_the_flag_else_from_the_file() {
    let (simulator, place) = place_with_repairs();
    place.write("rowmill.toml", "[run]\nrepair_lane = \"live\"\n");
    place.run_rows(&REPAIRED).ok();
    assert_eq!(simulator.stats().answers, 1);
    let (simulator, place) = place_with_repairs();
    place.write("rowmill.toml", "[run]\nrepair_lane = \"live\"\n");
    place.run_rows(&[&REPAIRED[..], &["--repair-lane", "batch"]].concat()).ok();
    assert_eq!(simulator.stats().answers, 0);
    let printed = place.run_rows(&[&REPAIRED[..], &["--print-spec"]].concat()).ok().summary();
    assert_eq!(printed["work"]["lane"]["repair_lane"], json!("live"));
}

#[test]
fn a_repair_lane_needs_the_batch_lane_and_one_of_two_words() {
    let place = Place::new();
    place.write_rows(1);
    place
        .run_rows(&["-m", "passthrough", "--repair-lane", "live"])
        .code(2)
        .says("--repair-lane requires --lane batch or --lane auto");
    place.run_rows(&["-m", "passthrough", "--repair-lane", "auto"]).code(2).says("must be `live` or `batch`");
}
