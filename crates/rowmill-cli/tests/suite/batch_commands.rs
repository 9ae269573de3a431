//! `rowmill batch`: status, retrieve, list, cancel and retry, from any folder.

use std::time::Duration;

use rowmill_testkit::{SimulatedBatches, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support::{Ended, KEY, Place, assert_in_no_file, finish, scripted, wait_for};

const MODEL: &str = "openai.gpt-5.4-mini";
/// Jobs take this long; the clock of jobs stands still in most tests.
const LONG: Duration = Duration::from_secs(3_600);

/// A simulator whose jobs end only when a test lets them, and a folder with rows.
fn held(rows: usize) -> (Simulator, Place) {
    held_with(SimulatorScript::new(), rows)
}

fn held_with(script: SimulatorScript, rows: usize) -> (Simulator, Place) {
    let (simulator, place) = scripted(script.key(KEY).batches(SimulatedBatches::new().duration(LONG)));
    simulator.stop_job_clock();
    place.write_rows(rows);
    (simulator, place)
}

/// Submits `rows.jsonl` and returns the id of the run.
fn submit(place: &Place) -> String {
    let flags = ["-m", MODEL, "--lane", "batch", "--detach", "--final-summary"];
    let ended = place.run_rows(&flags).code(5).says("rowmill batch retrieve");
    assert_eq!(ended.summary()["status"], "submitted");
    ended.summary()["run"].as_str().unwrap().to_owned()
}

fn first_line(ended: &Ended) -> &str {
    ended.stdout.lines().next().unwrap_or_default()
}

fn status(place: &Place, arguments: &[&str]) -> Value {
    let ended = place.rowmill(&[&["batch", "status", "--json"], arguments].concat()).ok();
    serde_json::from_str(&ended.stdout).unwrap()
}

fn list(place: &Place) -> Vec<Value> {
    serde_json::from_str(&place.rowmill(&["batch", "list", "--json"]).ok().stdout).unwrap()
}

fn output_path(place: &Place) -> String {
    let path = place.path("").canonicalize().unwrap().join("out.jsonl");
    format!("{}\n", path.display())
}

#[test]
fn status_asks_the_provider_and_prints_the_state_first() {
    let (simulator, place) = held(3);
    submit(&place);
    let ended = place.rowmill(&["batch", "status"]).ok().says("which has the last submitted job in ");
    assert_eq!(first_line(&ended), "Batch job status: validating");
    simulator.advance_job_clock(LONG / 2);
    let ended = place.rowmill(&["batch", "status"]).ok();
    assert_eq!(first_line(&ended), "Batch job status: in_progress");
    assert!(ended.stdout.contains("at most $"), "{}", ended.stdout);
    simulator.finish_jobs();
    let ended = place.rowmill(&["batch", "status"]).ok();
    assert_eq!(first_line(&ended), "Batch job status: completed");
    assert!(ended.stdout.contains("requests: 3 of 3 finished"), "{}", ended.stdout);
    assert_eq!(place.read("out.jsonl"), "", "asking changes nothing");
}

#[test]
fn a_job_is_named_by_its_own_id_or_by_that_of_its_run() {
    let (simulator, place) = held(2);
    let run = submit(&place);
    simulator.finish_jobs();
    let job = status(&place, &[])["jobs"][0]["id"].as_str().unwrap().to_owned();
    for arguments in [vec!["--batch-id", &job], vec![job.as_str()], vec![run.as_str()]] {
        let shown = status(&place, &arguments);
        assert_eq!(
            (&shown["state"], &shown["run"], &shown["completed"]),
            (&"completed".into(), &run.clone().into(), &2.into()),
            "{arguments:?}"
        );
        let notice = place.rowmill(&[&["batch", "status"], arguments.as_slice()].concat()).ok().stderr;
        assert_eq!(notice, "", "only a run that was not named is");
    }
}

#[test]
fn every_command_says_that_an_id_is_not_known() {
    let (_simulator, place) = held(1);
    submit(&place);
    for command in ["status", "retrieve", "cancel", "retry"] {
        place
            .rowmill(&["batch", command, "--batch-id", "batch_nobody"])
            .code(1)
            .says("error[RM1309]: no batch job and no run with the id `batch_nobody` is known here");
        place.rowmill(&["batch", command, "a", "--batch-id", "b"]).code(2);
    }
    let empty = Place::new();
    empty.rowmill(&["batch", "status"]).code(1).says("no batch job has been submitted");
    empty.rowmill(&["batch", "list"]).ok().says("no batch job has been submitted");
}

#[test]
fn a_job_that_the_account_does_not_have_is_refused_in_the_providers_words() {
    let (_simulator, mut place) = held(1);
    submit(&place);
    // Another server stands for another account: it knows nothing of the job.
    let (other, _) = held(1);
    place.set("OPENAI_BASE_URL", &format!("{}/v1", other.url()));
    let ended =
        place.rowmill(&["batch", "status"]).code(1).says("error[RM2009]").says("does not know batch job");
    assert!(ended.stderr.contains("another account"), "{}", ended.stderr);
    place.set("OPENAI_API_KEY", "sk-wrong");
    place.rowmill(&["batch", "status"]).code(1).says("error[RM2001]");
    place.unset("OPENAI_API_KEY");
    place.rowmill(&["batch", "status"]).code(1).says("error[RM1202]");
}

#[test]
fn results_are_retrieved_from_a_folder_below_and_too_early_is_reported() {
    let (simulator, place) = held(3);
    place.write("deep/er/note.txt", "");
    submit(&place);
    let ended = place.rowmill_in("deep/er", &["batch", "retrieve"]).code(5).says("3 rows still pending");
    assert_eq!(ended.stdout, output_path(&place));
    simulator.finish_jobs();
    let ended = place.rowmill_in("deep/er", &["batch", "retrieve"]).ok();
    assert_eq!(ended.stdout, output_path(&place));
    assert!(!ended.stderr.contains("resuming"), "{}", ended.stderr);
    assert_eq!(place.json("out.jsonl").len(), 3);
    let again = place.rowmill(&["batch", "retrieve"]).ok().says("collected already");
    assert_eq!(again.stdout, output_path(&place));
    assert_eq!(simulator.stats().batches.rows_submitted_more_than_once, 0);
    assert_eq!(list(&place)[0]["run_state"], "ended");
}

#[test]
fn the_last_run_of_the_nearest_project_counts() {
    let (_simulator, place) = held(1);
    place.write("one/rowmill.toml", "");
    place.write("one/deep/rows.jsonl", "{\"n\":1}\n");
    place.write("two/agent_actions.yml", "");
    place.write("two/rows.jsonl", "{\"n\":1}\n");
    let flags = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "-m", MODEL, "--lane", "batch", "--detach"];
    let first = place.rowmill_in("one/deep", &flags).code(5).summary()["run"].clone();
    let second = place.rowmill_in("two", &flags).code(5).summary()["run"].clone();
    let found = |folder| {
        let ended = place.rowmill_in(folder, &["batch", "status", "--json"]).ok();
        (serde_json::from_str::<Value>(&ended.stdout).unwrap()["run"].clone(), ended.stderr)
    };
    let (run, notice) = found("one");
    assert_eq!(run, first);
    assert!(notice.contains("of the project in"), "{notice}");
    assert_eq!(found("two").0, second);
    let runs = list(&place);
    assert_eq!(runs.len(), 2);
    assert!(
        runs.iter().any(|known| known["run"] == first) && runs.iter().any(|known| known["run"] == second)
    );
}

#[test]
fn a_table_lists_all_runs_and_json_has_their_jobs() {
    let (simulator, place) = held(4);
    let run = submit(&place);
    let table = place.rowmill(&["batch", "list"]).ok().stdout;
    assert!(table.starts_with("run ") && table.contains(&run) && table.contains("4 of 4 pending"), "{table}");
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).ok();
    let known = &list(&place)[0];
    assert_eq!(
        (&known["state"], &known["rows"]["selected"], &known["rows"]["out"]),
        (&"completed".into(), &4.into(), &0.into())
    );
    assert_eq!(known["jobs"][0]["progress"], "collected");
    assert_eq!(known["reserved_usd"], 0.0);
    assert!(known["spent_usd"].as_f64().unwrap() > 0.0, "{known}");
}

#[test]
fn status_waits_until_no_job_is_out() {
    let (simulator, place) = held(2);
    submit(&place);
    let waiting = place.command(&["batch", "status", "--wait", "--poll-every", "1ms"]).spawn().unwrap();
    simulator.finish_jobs();
    assert_eq!(first_line(&finish(waiting).ok()), "Batch job status: completed");
    place.rowmill(&["batch", "status", "--poll-every", "1ms"]).code(2);
}

#[test]
fn cancelled_jobs_keep_what_they_had_finished_and_retry_sends_the_rest() {
    let (simulator, place) = held(20);
    submit(&place);
    simulator.advance_job_clock(LONG / 2);
    let ended = place.rowmill(&["batch", "cancel", "--no-wait"]).code(5);
    assert_eq!(first_line(&ended), "Batch job status: cancelling");
    simulator.finish_jobs();
    let ended = place.rowmill(&["batch", "cancel"]).ok().says("`rowmill batch retry` sends the rows");
    assert_eq!(first_line(&ended), "Batch job status: cancelled");
    let kept = place.json("out.jsonl").len();
    assert!(kept < 20, "{kept} rows were finished");
    // Nothing is sent by itself.
    place.rowmill(&["batch", "retrieve"]).code(130);
    assert_eq!(simulator.stats().batches.jobs, 1);
    place.rowmill(&["batch", "retry"]).code(5).says("still pending");
    assert_eq!(simulator.stats().batches.jobs, 2);
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).ok();
    let envelopes = place.json("out.jsonl");
    assert_eq!(envelopes.len(), 20);
    assert!(envelopes.iter().all(|envelope| envelope["ok"] == true));
    assert_eq!(simulator.stats().batches.answers, 20, "no row is answered twice");
}

#[test]
fn failed_rows_are_left_alone_by_retrieve_and_sent_again_by_retry() {
    let (simulator, place) = held(0);
    place.write("rows.jsonl", "{\"n\":\"a\"}\n{\"n\":\"b [[400x1]]\"}\n");
    let flags = ["-m", MODEL, "--lane", "batch", "--detach", "--prompt", "{{n}}"];
    place.run_rows(&flags).code(5);
    place.rowmill(&["batch", "retry"]).code(5).says("2 rows still pending");
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).code(3);
    place.rowmill(&["batch", "retrieve"]).code(3).says("`rowmill batch retry` sends them again");
    assert_eq!(simulator.stats().batches.jobs, 1);
    place.rowmill(&["batch", "retry"]).code(5);
    let stats = simulator.stats().batches;
    assert_eq!((stats.jobs, stats.answers), (2, 1));
    simulator.finish_jobs();
    let ended = place.rowmill(&["batch", "retrieve", "--json"]).ok();
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&shown["status"], &shown["rows_out"], &shown["exit_code"]),
        (&"finished".into(), &0.into(), &0.into())
    );
    assert_eq!(place.json("out.jsonl").len(), 2);
    place.rowmill(&["batch", "retry"]).ok().says("no row failed");
}

#[test]
fn a_second_process_is_refused_while_the_run_is_worked_on_and_ctrl_c_leaves_the_jobs() {
    let (simulator, place) = held(2);
    let waiting = place.start_rows(&["-m", MODEL, "--lane", "batch", "--poll-every", "1ms"]);
    simulator.wait_until_blocking(|stats| stats.batches.jobs == 1);
    wait_for(|| (!list(&place).is_empty()).then_some(()));
    // Asking needs no lock.
    place.rowmill(&["batch", "status"]).ok();
    for command in ["retrieve", "cancel", "retry"] {
        place.rowmill(&["batch", command]).code(1).says("another process is working on run");
    }
    let process = rustix::process::Pid::from_child(&waiting);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    finish(waiting).code(5).says("no longer waiting: the batch jobs go on at the provider");
    simulator.finish_jobs();
    place.rowmill(&["batch", "retrieve"]).ok();
    assert_eq!(simulator.stats().batches.jobs, 1);
}

#[test]
fn no_credential_is_remembered_and_such_a_run_goes_on_with_its_own_command() {
    let (simulator, place) = held(1);
    place.write("rows.jsonl", format!("{{\"n\":\"{KEY}\"}}\n"));
    submit(&place);
    assert_in_no_file(&place.path(".local/state/rowmill/batch"), KEY);
    // A credential in the spec itself: the spec is not kept.
    let prompt = format!("the key is {KEY}");
    let flags = ["-m", MODEL, "--lane", "batch", "--detach", "--prompt", &prompt];
    place.run(&[&["-i", "rows.jsonl", "-o", "other.jsonl"], &flags[..]].concat()).code(5);
    assert_in_no_file(&place.path(".local/state/rowmill/batch"), KEY);
    let ended = place.rowmill(&["batch", "retrieve"]).code(1).says("contains a credential");
    assert!(ended.stderr.contains("--resume"), "{}", ended.stderr);
    simulator.finish_jobs();
    let flags = ["-m", MODEL, "--lane", "batch", "--resume", "--prompt", &prompt];
    place.run(&[&["-i", "rows.jsonl", "-o", "other.jsonl"], &flags[..]].concat()).ok();
}

#[test]
fn a_run_that_cannot_be_remembered_goes_on_with_a_warning() {
    let (simulator, place) = held(2);
    place.write(".local", "not a folder");
    let ended = place.run_rows(&["-m", MODEL, "--lane", "batch", "--detach"]).code(5);
    assert_eq!(ended.stderr.matches("warning: the run cannot be remembered").count(), 1, "{}", ended.stderr);
    simulator.finish_jobs();
    place.run_rows(&["-m", MODEL, "--lane", "batch", "--resume"]).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
}

#[test]
fn the_folder_of_a_run_has_to_be_where_it_was() {
    let (_simulator, place) = held(0);
    place.write("gone/rows.jsonl", "{\"n\":1}\n");
    let flags = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "-m", MODEL, "--lane", "batch", "--detach"];
    place.rowmill_in("gone", &flags).code(5);
    std::fs::remove_dir_all(place.path("gone")).unwrap();
    place.rowmill(&["batch", "retrieve"]).code(1).says("cannot be entered");
    place.rowmill(&["batch", "status"]).ok();
    assert_eq!(list(&place)[0]["state"], "gone");
}

#[test]
fn the_summary_tells_what_the_lane_did_and_saved() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).batches(SimulatedBatches::new()));
    place.write_rows(3);
    let ended = place.run_rows(&["-m", MODEL, "--lane", "batch", "--poll-every", "1ms"]).ok();
    assert!(ended.stderr.contains("batch:  1 job in 1 round, $"), "{}", ended.stderr);
    assert!(ended.stderr.contains("saved compared with live calls"), "{}", ended.stderr);
    assert_eq!(simulator.stats().batches.answers, 3);
}
