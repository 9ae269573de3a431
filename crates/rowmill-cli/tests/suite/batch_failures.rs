//! What becomes of jobs that fail, expire, lose rows or are left alone.
//!
//! The ten trials are those in which other tools lost answers that were paid for, hid causes, or sent rows twice.

use rowmill_testkit::{SimulatedBatches, SimulatorScript};
use serde_json::{Value, json};

use crate::lanes_support::{BATCH, DETACHED, LONG, SCHEMA, held, provided, run_texts, write_texts};
use crate::support::{Ended, Place, each, finish, wait_for};

/// Five rows; the second fails for good, the fourth is in no results.
const FIVE: [&str; 5] = ["a", "b [[400]]", "c", "d [[batch:missing]]", "e"];

fn jobs() -> SimulatedBatches {
    SimulatedBatches::new()
}

/// A simulator whose jobs are done at once, with these rows.
fn at_once(batches: SimulatedBatches, texts: &[&str]) -> (rowmill_testkit::Simulator, Place) {
    let (simulator, place) = provided(SimulatorScript::new().batches(batches));
    write_texts(&place, texts);
    (simulator, place)
}

fn retrieve(place: &Place) -> Ended {
    place.rowmill(&["batch", "retrieve"])
}

fn ok_rows(place: &Place) -> Vec<u64> {
    let envelopes = place.json("out.jsonl");
    envelopes
        .iter()
        .filter(|line| line["ok"] == true)
        .map(|line| line["row_number"].as_u64().unwrap())
        .collect()
}

/// The error of a row that has ended.
fn error_of(place: &Place, row: u64) -> Value {
    let envelopes = place.json("out.jsonl");
    envelopes
        .iter()
        .find(|line| line["row_number"] == row)
        .map(|line| line["error"].clone())
        .unwrap_or_default()
}

#[test]
fn trial_1_a_row_in_the_error_file_has_the_words_of_the_provider_and_a_row_in_no_file_is_reported_as_missing()
{
    let (simulator, place) = at_once(jobs(), &FIVE);
    run_texts(&place, &[BATCH, &["--retries", "0"]])
        .code(3)
        .says("completed: 3 of 5 requests answered, 1 failed, 1 without an answer");
    assert_eq!(ok_rows(&place), [1, 3, 5]);
    let refused = error_of(&place, 2);
    assert_eq!(
        (&refused["type"], &refused["message"], &refused["status"]),
        (&json!("BadRequest"), &json!("The request was refused."), &json!(400))
    );
    let missing = error_of(&place, 4);
    assert_eq!(missing["type"], "ServerError");
    let message = missing["message"].as_str().unwrap();
    assert!(message.starts_with("batch job `batch_"), "{message}");
    assert!(message.ends_with("` ended without a result for this request"), "{message}");
    assert_eq!(simulator.stats().batches.jobs, 1);
}

#[test]
fn trial_2_only_rows_without_a_result_are_sent_again_and_good_rows_are_written_meanwhile() {
    let (simulator, place) = held(jobs(), &FIVE);
    run_texts(&place, &[DETACHED, &["--retries", "2"]]).code(5);
    let mut sent = vec![simulator.stats().batches.rows];
    for _ in 0..2 {
        simulator.finish_jobs();
        retrieve(&place).code(5).says("1 row still pending");
        // What is paid for is there at once, and so is the error that no attempt can change.
        assert_eq!(ok_rows(&place), [1, 3, 5]);
        assert_eq!(error_of(&place, 2)["status"], 400);
        sent.push(simulator.stats().batches.rows);
    }
    assert_eq!(sent, [5, 6, 7], "permanent errors are not retried");
    simulator.finish_jobs();
    retrieve(&place).code(3);
    assert_eq!(error_of(&place, 4)["attempts"], 3);
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().batches.answers), (3, 3));
}

#[test]
fn trial_3_an_expired_job_keeps_the_answers_that_were_paid_for() {
    for model in ["openai.gpt-5.4-mini", "anthropic.m", "mistral.m", "groq.m", "together.m"] {
        let (simulator, place) = held(jobs().window(LONG / 2), &["a", "b", "c", "d", "e"]);
        let flags = ["-m", model, "-p", "{{t}}"];
        place.run_rows(&[&flags[..], DETACHED].concat()).code(5);
        simulator.advance_job_clock(LONG / 2);
        let ended = retrieve(&place).code(5);
        let kept = ok_rows(&place);
        assert!(!kept.is_empty() && kept.len() < 5, "{model}: {kept:?} {}", ended.stderr);
        let expired = if model.starts_with("anthropic") { "completed" } else { "expired" };
        assert!(ended.stderr.contains(&format!(" {expired}: ")), "{model}: {}", ended.stderr);
        assert_eq!(simulator.stats().batches.rows, 5 + (5 - kept.len() as u64), "{model}");
        let mut rounds = 2;
        while rounds < 9 && ok_rows(&place).len() < 5 {
            simulator.finish_jobs();
            retrieve(&place);
            rounds += 1;
        }
        assert_eq!(ok_rows(&place).len(), 5, "{model}");
        assert_eq!((simulator.stats().batches.answers, simulator.stats().batches.repeated_answers), (5, 0));
    }
}

#[test]
fn trial_4_a_job_with_every_row_in_the_error_file_tells_every_cause() {
    for model in crate::lanes_support::MODELS {
        let (simulator, place) = at_once(jobs(), &["a [[400]]", "b [[404]]", "c [[403]]"]);
        place.run_rows(&[&["-m", model, "-p", "{{t}}"], BATCH].concat()).code(3);
        let envelopes = place.json("out.jsonl");
        assert_eq!(each(&envelopes, "/error/status"), [json!(400), json!(404), json!(403)], "{model}");
        for message in each(&envelopes, "/error/message") {
            assert!(message.as_str().is_some_and(|text| !text.is_empty()), "{model}: {message}");
        }
        assert_eq!(simulator.stats().batches.jobs, 1, "{model}: no attempt can change that");
    }
}

#[test]
fn trial_5_a_job_that_the_provider_refuses_ends_with_its_words_and_can_be_sent_again() {
    let (simulator, place) = at_once(jobs().validation_error("model_not_found", 2), &["a", "b"]);
    let ended = run_texts(&place, &[BATCH]).code(3).says("the provider refused batch job `batch_");
    assert!(ended.stderr.contains("line 2: "), "{}", ended.stderr);
    for error in each(&place.json("out.jsonl"), "/error") {
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("the provider refused the batch job: line 2: "), "{message}");
        assert_eq!(error["type"], "BadRequest");
    }
    assert_eq!(simulator.stats().batches.jobs, 1, "the same job would be refused again");
    assert_eq!(place.names("."), [".local", "out.jsonl", "rows.jsonl", "tmp"], "nothing of it is left");
    run_texts(&place, &[BATCH, &["--resume"]]).code(3);
    assert_eq!(simulator.stats().batches.jobs, 2, "a resume sends failed rows again");
}

#[test]
fn trial_5_a_job_that_cannot_be_created_stops_the_command_and_is_there_for_the_next() {
    let (simulator, mut place) = at_once(jobs(), &["a", "b"]);
    place.set("OPENAI_API_KEY", "sk-wrong");
    run_texts(&place, &[BATCH])
        .code(1)
        .says("error[RM2001]: `openai` refused to upload the requests of a batch job");
    assert_eq!(simulator.stats().batches.jobs, 0);
    // Nothing was sent, and the requests need not be made again.
    place.set("OPENAI_API_KEY", crate::support::KEY);
    run_texts(&place, &[BATCH, &["--resume"]]).ok();
    assert_eq!((ok_rows(&place), simulator.stats().batches.jobs), (vec![1, 2], 1));
}

#[test]
fn trial_6_an_answer_that_violates_the_schema_after_all_repairs_is_a_failed_row() {
    let (simulator, place) = at_once(jobs(), &["a", "b [[wrongx1]]", "c [[wrong]]"]);
    place.write("schema.json", SCHEMA);
    run_texts(&place, &[BATCH, &["--json-schema", "schema.json", "--repairs", "2"]]).code(3);
    let envelopes = place.json("out.jsonl");
    assert_eq!(each(&envelopes, "/ok"), [json!(true), json!(true), json!(false)]);
    let error = error_of(&place, 3);
    assert_eq!((&error["type"], &error["attempts"]), (&json!("StructuredOutputError"), &json!(3)));
    assert!(error["raw_text"].is_string(), "{error}");
    // Only the rows that need one are in a job of repairs.
    let stats = simulator.stats().batches;
    assert_eq!((stats.jobs, stats.rows, stats.answers), (3, 6, 6));
}

#[test]
fn trial_7_two_commands_at_once_make_one_set_of_jobs() {
    let (simulator, place) = held(jobs(), &["a", "b", "c"]);
    let start = || place.start_rows(&[&["-m", crate::lanes_support::MODEL, "-p", "{{t}}"], BATCH].concat());
    let both = [start(), start()];
    simulator.wait_until_blocking(|stats| stats.batches.jobs == 1);
    // The one that was second ends before any job does.
    let mut ended: Vec<Ended> = Vec::new();
    let mut waiting = Vec::new();
    let mut both = Vec::from(both);
    wait_for(|| both.iter_mut().any(|child| child.try_wait().unwrap().is_some()).then_some(()));
    for mut child in both {
        match child.try_wait().unwrap() {
            Some(_) => ended.push(finish(child)),
            None => waiting.push(child),
        }
    }
    assert_eq!((ended.len(), waiting.len()), (1, 1));
    let refused = ended.remove(0).code(1);
    assert!(refused.stderr.contains("error[RM1"), "{}", refused.stderr);
    simulator.restart_job_clock();
    simulator.finish_jobs();
    finish(waiting.remove(0)).ok();
    assert_eq!(ok_rows(&place), [1, 2, 3]);
    let stats = simulator.stats().batches;
    assert_eq!((stats.jobs, stats.rows, stats.rows_submitted_more_than_once), (1, 3, 0));
}

#[test]
fn trial_7_many_resumes_at_once_send_no_row_twice() {
    let (simulator, place) = held(jobs().time_scale(1e9), &["a", "b [[503x1]]", "c"]);
    run_texts(&place, &[DETACHED]).code(5);
    simulator.restart_job_clock();
    simulator.finish_jobs();
    let resume = [&["-m", crate::lanes_support::MODEL, "-p", "{{t}}", "--resume"], BATCH].concat();
    let all: Vec<_> = (0..6).map(|_| place.start_rows(&resume)).collect();
    for child in all {
        let ended = finish(child);
        assert!(matches!(ended.code, 0 | 1), "{}", ended.stderr);
    }
    run_texts(&place, &[BATCH, &["--resume"]]).ok();
    assert_eq!(ok_rows(&place), [1, 2, 3]);
    let stats = simulator.stats().batches;
    assert_eq!((stats.jobs, stats.rows, stats.repeated_answers), (2, 4, 0));
}

#[test]
fn trial_8_one_record_that_is_added_sends_one_record() {
    let (simulator, place) = held(jobs(), &["a", "b", "c"]);
    run_texts(&place, &[DETACHED]).code(5);
    // While a job is out, the added row gets a job of its own, and the first one goes on.
    write_texts(&place, ["a", "b", "c", "d"]);
    // Rows without an id are known by their numbers, so that a changed file has to be confirmed.
    run_texts(&place, &[DETACHED, &["--resume"]]).code(1).says("row numbers may have shifted");
    run_texts(&place, &[DETACHED, &["--resume", "--accept-changes"]]).code(5);
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().batches.rows), (2, 4));
    simulator.finish_jobs();
    retrieve(&place).ok();
    assert_eq!(ok_rows(&place), [1, 2, 3, 4]);
    // The same after the end of the run.
    write_texts(&place, ["a", "b", "c", "d", "e"]);
    run_texts(&place, &[DETACHED, &["--resume", "--accept-changes"]]).code(5);
    simulator.finish_jobs();
    retrieve(&place).ok();
    assert_eq!(ok_rows(&place), [1, 2, 3, 4, 5]);
    let stats = simulator.stats().batches;
    assert_eq!((stats.jobs, stats.rows, stats.rows_submitted_more_than_once), (3, 5, 0));
}

#[test]
fn trial_8_rows_with_ids_are_sent_once_wherever_a_record_is_added() {
    let (simulator, place) = held(jobs(), &[]);
    let rows = |ids: &[&str]| {
        let row = |id: &&str| format!("{}\n", json!({"id": id, "t": format!("text {id}")}));
        place.write("rows.jsonl", ids.iter().map(row).collect::<String>());
    };
    let run = |more: &[&str]| run_texts(&place, &[DETACHED, &["--id-field", "id"], more]);
    rows(&["a", "b", "c"]);
    run(&[]).code(5);
    rows(&["new", "a", "b", "c"]);
    run(&["--resume"]).code(5);
    simulator.finish_jobs();
    retrieve(&place).ok();
    let envelopes = place.json("out.jsonl");
    assert_eq!(each(&envelopes, "/id"), ["new", "a", "b", "c"].map(|id| json!(id)));
    assert_eq!(each(&envelopes, "/result")[1], "answer to: text a");
    let stats = simulator.stats().batches;
    assert_eq!((stats.jobs, stats.rows, stats.rows_submitted_more_than_once), (2, 4, 0));
}

#[test]
fn trial_9_jobs_that_are_out_are_never_forgotten() {
    let (simulator, place) = held(jobs(), &["a", "b"]);
    run_texts(&place, &[DETACHED]).code(5);
    let hint = "batch jobs of an earlier run with this output are not finished";
    run_texts(&place, &[DETACHED, &["--overwrite"]]).code(1).says(hint).says("--resume");
    // A live run would send the rows again.
    run_texts(&place, &[&["--resume"]]).code(1).says(hint);
    run_texts(&place, &[&["--overwrite"]]).code(1).says(hint);
    // Neither does it help to remove the output.
    std::fs::remove_file(place.path("out.jsonl")).unwrap();
    run_texts(&place, &[DETACHED]).code(1).says(hint);
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().requests), (1, 0));
    simulator.finish_jobs();
    retrieve(&place).ok();
    assert_eq!(ok_rows(&place), [1, 2]);
    assert_eq!(simulator.stats().batches.jobs, 1);
}

#[test]
fn trial_9_after_a_cancel_the_output_can_be_overwritten() {
    let (simulator, place) = held(jobs(), &["a", "b"]);
    run_texts(&place, &[DETACHED]).code(5);
    place.rowmill(&["batch", "cancel", "--no-wait"]).code(5);
    simulator.finish_jobs();
    place.rowmill(&["batch", "cancel"]).ok();
    assert_eq!(simulator.stats().batches.jobs_by_state["cancelled"], 1);
    run_texts(&place, &[DETACHED, &["--overwrite"]]).code(5);
    simulator.finish_jobs();
    retrieve(&place).ok();
    assert_eq!(ok_rows(&place), [1, 2]);
}

#[test]
fn trial_10_every_answer_is_checked_against_the_schema_extra_fields_included() {
    let extra = json!({"label": "good", "score": 1, "note": "not in the schema"});
    let script = move || {
        let extra = extra.clone();
        SimulatorScript::new().answer_calls(move |seen| match seen.prompt.contains("extra") {
            true => rowmill_testkit::SimulatedAnswer::Text(extra.to_string()),
            false => rowmill_testkit::SimulatedAnswer::Default,
        })
    };
    let (_simulator, place) = provided(script());
    write_texts(&place, ["plain", "extra"]);
    place.write("schema.json", SCHEMA);
    run_texts(&place, &[BATCH, &["--json-schema", "schema.json"]]).code(3);
    assert_eq!(each(&place.json("out.jsonl"), "/ok"), [json!(true), json!(false)]);
    let message = error_of(&place, 2)["message"].to_string();
    assert!(message.contains("note"), "{message}");
}

#[test]
fn google_loses_an_expired_job_and_every_row_is_sent_again() {
    let (simulator, place) = held(jobs().window(LONG / 2), &["a", "b"]);
    let flags = ["-m", "google.m", "-p", "{{t}}", "--retries", "1"];
    place.run_rows(&[&flags[..], DETACHED].concat()).code(5);
    simulator.advance_job_clock(LONG / 2);
    retrieve(&place).code(5).says("2 rows still pending");
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().batches.answers), (2, 0));
    simulator.advance_job_clock(LONG / 2);
    retrieve(&place).code(3);
    for error in each(&place.json("out.jsonl"), "/error") {
        assert_eq!((&error["type"], &error["attempts"]), (&json!("ServerError"), &json!(2)), "{error}");
    }
}

#[test]
fn a_job_that_was_deleted_at_the_provider_is_given_up_by_cancel_and_its_rows_are_sent_again_by_retry() {
    let (simulator, mut place) = held(jobs(), &["a", "b"]);
    run_texts(&place, &[DETACHED]).code(5);
    // Another server stands for an account in which the job is not.
    let (other, _) = held(jobs(), &[]);
    let address = "OPENAI_BASE_URL";
    place.set(address, &format!("{}/v1", other.url()));
    retrieve(&place).code(1).says("error[RM2009]");
    // Nothing at all is at this address, which says nothing about the job.
    place.set(address, &format!("{}/elsewhere", simulator.url()));
    place.rowmill(&["batch", "cancel"]).code(1).says("error[RM2009]");
    place.set(address, &format!("{}/v1", other.url()));
    place.rowmill(&["batch", "cancel"]).ok().says("does not know batch job `batch_").says("given up");
    retrieve(&place).code(130);
    place.rowmill(&["batch", "retry"]).code(5);
    other.finish_jobs();
    retrieve(&place).ok();
    assert_eq!(ok_rows(&place), [1, 2]);
    assert_eq!((other.stats().batches.jobs, other.stats().batches.rows), (1, 2));
}

#[test]
fn a_run_that_stops_at_a_failed_row_keeps_the_answers_of_its_jobs() {
    for (stop, code) in [(&["--on-error", "stop"][..], 4), (&["--stop-on-first-result"], 0)] {
        let (simulator, place) = at_once(jobs(), &["a [[400x1]]", "b", "c", "d"]);
        run_texts(&place, &[BATCH, stop]).code(code);
        assert_eq!(simulator.stats().batches.answers, 3, "{stop:?}");
        run_texts(&place, &[BATCH, &["--resume"]]).ok();
        assert_eq!(ok_rows(&place), [1, 2, 3, 4], "{stop:?}");
        let stats = simulator.stats().batches;
        assert_eq!((stats.jobs, stats.answers, stats.repeated_answers), (2, 4, 0), "{stop:?}");
    }
}
