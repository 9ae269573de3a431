//! Jobs that do not get to the provider, or are refused there: what is said of them is true, and they lock nothing.

use std::time::Duration;

use rowmill_testkit::{SimulatedBatches, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support::{KEY, Place, finish, scripted, wait_for};

const MODEL: &str = "openai.gpt-5.4-mini";
const BATCH: [&str; 4] = ["-m", MODEL, "--lane", "batch"];

fn with(batches: SimulatedBatches, rows: usize) -> (Simulator, Place) {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).batches(batches));
    place.write_rows(rows);
    (simulator, place)
}

/// A folder with rows whose provider's port nobody listens at.
fn nobody_listens(rows: usize) -> Place {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut place = Place::new();
    place.set("OPENAI_BASE_URL", &format!("http://{address}/v1"));
    place.set("OPENAI_API_KEY", KEY);
    place.write_rows(rows);
    place
}

#[test]
fn a_server_that_accepts_no_connection_is_reported_at_once_and_given_up_after_the_attempts() {
    let place = nobody_listens(3);
    let flags = ["--detach", "--poll-every", "1ms", "--retries", "2"];
    let ended = place.run_rows(&[&BATCH[..], &flags].concat()).code(1).says("error[RM2003]");
    assert_eq!(ended.stderr.matches("warning: `openai` does not answer").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("no batch job is at the provider"), "{}", ended.stderr);
}

#[test]
fn who_stops_waiting_before_anything_was_submitted_learns_that() {
    let place = nobody_listens(2);
    let waiting = place.start_rows(&BATCH);
    let list = || serde_json::from_str::<Value>(&place.rowmill(&["batch", "list", "--json"]).ok().stdout);
    wait_for(|| list().unwrap()[0]["jobs"][0].is_object().then_some(()));
    // It is listed before the first attempt has failed; the next look is ten seconds later.
    crate::support::wait_for_signals(&waiting);
    std::thread::yield_now();
    let process = rustix::process::Pid::from_child(&waiting);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let ended = finish(waiting).code(130).says("unsent: 1 job not submitted");
    assert!(!ended.stderr.contains("go on at the provider"), "{}", ended.stderr);
}

#[test]
fn jobs_that_were_never_created_lock_nothing() {
    let (simulator, mut place) = with(SimulatedBatches::new(), 3);
    let rejected = |place: &mut Place, flags: &[&str]| {
        place.set("OPENAI_API_KEY", "sk-wrong");
        place.run_rows(&[&BATCH[..], flags].concat()).code(1).says("error[RM2001]");
        place.set("OPENAI_API_KEY", KEY);
    };
    // Another run in the batch lane takes the output.
    rejected(&mut place, &[]);
    place.run_rows(&[&BATCH[..], &["--overwrite", "--poll-every", "1ms"]].concat()).ok();
    // So does a live one.
    rejected(&mut place, &["--overwrite"]);
    place.run_rows(&["-m", MODEL, "--overwrite"]).ok();
    // And a live one continues the run; the batch lane has nothing left to submit.
    rejected(&mut place, &["--overwrite"]);
    place.run_rows(&["-m", MODEL, "--resume"]).ok();
    assert_eq!(place.json("out.jsonl").len(), 3);
    place.run_rows(&[&BATCH[..], &["--resume"]].concat()).ok();
    assert_eq!(simulator.stats().batches.jobs, 1);
    // What is cancelled was not refused.
    rejected(&mut place, &["--overwrite"]);
    let ended = place.rowmill(&["batch", "cancel"]).ok();
    assert!(ended.stdout.starts_with("Batch job status: cancelled\n"), "{}", ended.stdout);
    place.run_rows(&[&BATCH[..], &["--overwrite", "--poll-every", "1ms"]].concat()).ok();
}

#[test]
fn the_reason_of_a_refused_job_is_shown_by_every_command() {
    let jobs = SimulatedBatches::new().duration(Duration::from_secs(60));
    let (simulator, place) = with(jobs.validation_error("duplicate_custom_id", 3), 4);
    simulator.stop_job_clock();
    place.run_rows(&[&BATCH[..], &["--detach"]].concat()).code(5);
    simulator.finish_jobs();
    let status = place.rowmill(&["batch", "status"]).ok().stdout;
    assert!(status.starts_with("Batch job status: failed\n"), "{status}");
    assert!(status.contains("reason:   line 3: ") && status.contains("duplicate_custom_id"), "{status}");
    assert!(!status.contains("at most"), "a refused job costs nothing: {status}");
    let ended = place.rowmill(&["batch", "retrieve"]).code(3).says("the provider refused batch job `");
    assert!(ended.stderr.contains("duplicate_custom_id"), "{}", ended.stderr);
    let ended = place.rowmill(&["batch", "retry"]).code(5);
    drop(ended.says("submitted batch job"));
}

#[test]
fn requests_without_an_answer_are_distinguished_from_answers_and_failures() {
    let duration = Duration::from_secs(3_600);
    let jobs = SimulatedBatches::new().duration(duration).window(duration / 2);
    let (simulator, place) = with(jobs, 0);
    simulator.stop_job_clock();
    let rows: String = (1..=9).map(|n| format!("{{\"n\":\"row {n}\"}}\n")).collect();
    place.write("rows.jsonl", format!("{{\"n\":\"[[400x1]]\"}}\n{rows}"));
    let flags = ["--detach", "-p", "{{n}}"];
    place.run_rows(&[&BATCH[..], &flags].concat()).code(5);
    simulator.advance_job_clock(duration / 2);
    let ended = place.rowmill(&["batch", "retrieve"]).code(5);
    let line = ended.stderr.lines().find(|line| line.contains(" expired: ")).unwrap();
    assert!(line.contains(" of 10 requests answered") && line.contains(" without an answer"), "{line}");
    let number = |before: &str| {
        let text = line.split(before).next().unwrap();
        text.rsplit([' ', ',']).find(|word| !word.is_empty()).unwrap().parse::<u64>().unwrap()
    };
    let failed = if line.contains(" failed") { number(" failed") } else { 0 };
    let answered = number(" of 10 requests answered");
    assert_eq!(answered, simulator.stats().batches.answers);
    assert_eq!(answered + failed + number(" without an answer"), 10, "{line}");
}

#[test]
fn a_job_that_is_larger_than_the_empty_queue_is_split() {
    let (simulator, place) = with(SimulatedBatches::new().queued_tokens(100), 60);
    let ended = place.run_rows(&[&BATCH[..], &["--poll-every", "1ms"]].concat()).ok();
    assert!(ended.stderr.contains("is larger than the queue of `openai`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("providers.openai.batch.max_queued_tokens"), "{}", ended.stderr);
    assert_eq!(place.json("out.jsonl").len(), 60);
    assert_eq!(simulator.stats().batches.answers, 60);
}

#[test]
fn a_request_that_alone_is_larger_than_the_queue_is_the_error_of_its_row() {
    let (_simulator, place) = with(SimulatedBatches::new().queued_tokens(1), 1);
    let flags = [&BATCH[..], &["--poll-every", "1ms"]].concat();
    place.run_rows(&flags).code(3).says("a request alone is larger than the queue of `openai`");
    assert_eq!(place.json("out.jsonl")[0]["ok"], false);
}
