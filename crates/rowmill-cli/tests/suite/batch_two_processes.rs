//! Two processes on one run in the batch lane: only one of them makes jobs.

use std::process::Child;

use rowmill_testkit::BatchRequestKind::{Create, Report};
use rowmill_testkit::HoldMoment::Before;
use rowmill_testkit::SimulatorScript;
use rustix::process::Signal;

use crate::batch_support::{ANTHROPIC, BatchRun, OPENAI, send, stop_when, wait_for_state};
use crate::support::{Place, finish};

#[test]
fn of_two_processes_that_start_at_the_same_moment_only_one_makes_jobs() {
    for attempt in 0..8 {
        let run = BatchRun::of_two_rounds(if attempt % 2 == 0 { OPENAI } else { ANTHROPIC });
        let more: &[&str] = if attempt < 4 { &["--resume"] } else { &["--resume", "--detach"] };
        let both: Vec<Child> = (0..3).map(|_| run.start_with(more)).collect();
        for child in both {
            let ended = finish(child);
            if ended.code == 1 {
                ended.says("error[RM1304]");
            } else {
                assert!([0, 5].contains(&ended.code), "{}", ended.stderr);
            }
        }
        run.resume();
        run.assert_whole();
    }
}

#[test]
fn a_process_that_comes_while_job_files_are_written_leaves_them_alone() {
    let filler = "x".repeat(1_200);
    let rows = (1..=1_500).map(|row| format!("row {row} {filler}"));
    let run = BatchRun::new(OPENAI, SimulatorScript::new(), rows);
    let mut first = run.start_with(&[]);
    stop_when(&mut first, || !run.job_files().is_empty() && !run.ledger().contains("batch_job"));
    let before = run.job_files();
    for more in [&["--resume"][..], &[]] {
        finish(run.start_with(more)).code(1).says("error[RM1304]");
    }
    assert_eq!(run.job_files(), before);
    send(&first, Signal::CONT);
    finish(first).ok();
    run.assert_whole();
}

#[test]
fn nobody_gets_in_while_jobs_are_worked_on() {
    let run = BatchRun::of_two_rounds(OPENAI);
    run.simulator.hold_batch_request(Report, Before, 0);
    let mut first = run.start();
    wait_for_state(&mut first, || run.simulator.stats().batches.held_requests == 1);
    finish(run.start()).code(1).says("error[RM1304]");
    run.place.rowmill(&["batch", "retrieve"]).code(1).says("another process is working on run");
    // A run of live calls would send the rows again.
    run.place.run_rows(&["-m", OPENAI.model, "-p", "{{p}}", "--resume"]).code(1);
    run.simulator.release_batch_requests();
    finish(first).ok();
    assert_eq!(run.simulator.stats().requests, 0, "no row was sent live");
    run.assert_whole();
}

#[test]
fn a_run_does_not_take_the_job_of_another_run_for_its_own() {
    // Anthropic's jobs have no key: two runs of the same account look alike. Without retries, a row whose result is not in
    // the job fails.
    let first = BatchRun::new(ANTHROPIC, SimulatorScript::new(), ["row 1", "row 2"]);
    finish(first.start_with(&["--detach"])).code(5);
    let other = [
        "-m",
        ANTHROPIC.model,
        "-p",
        "{{p}} again",
        "--lane",
        "batch",
        "--poll-every",
        "1ms",
        "--retries",
        "0",
        "--resume",
    ];
    let other = [&["run", "-i", "rows.jsonl", "-o", "other.jsonl"][..], &other].concat();
    first.simulator.hold_batch_request(Create, Before, 0);
    let child = first.place.command(&other).spawn().unwrap();
    first.kill_when_held(child);
    finish(first.place.command(&other).spawn().unwrap()).ok();
    assert_eq!(first.place.json("other.jsonl").len(), 2);
    assert!(first.place.json("other.jsonl").iter().all(|envelope| envelope["ok"] == true));
    let stats = first.simulator.stats().batches;
    assert_eq!((stats.jobs, stats.rows, stats.rows_submitted_more_than_once), (2, 4, 0));
}

#[test]
fn a_run_that_does_not_start_leaves_nothing_behind() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"p\":1}\n");
    let ended = place.run_rows(&["-m", "openai.m", "--lane", "batch", "-p", "{{unknown}}"]);
    assert_ne!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(place.names(""), ["rows.jsonl", "tmp"]);
}
