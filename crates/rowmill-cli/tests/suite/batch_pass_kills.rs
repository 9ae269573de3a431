//! Runs in the batch lane that are killed within a pass over their rows, or between two entries of the ledger.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rowmill_testkit::BatchRequestKind::{Create, Report, Upload};
use rowmill_testkit::HoldMoment::Before;
use rowmill_testkit::SimulatorScript;
use rustix::process::Signal;

use crate::batch_support::{
    ANTHROPIC, BatchProvider, BatchRun, GOOGLE, OPENAI, failing_once, kill, send, stop_when, wait_for_state,
};

/// Enough rows for a pass that can be stopped in its middle.
const ROWS: usize = 1_500;
/// Protocols with an upload and a key, with neither, and with other states and files.
const PROVIDERS: [BatchProvider; 3] = [OPENAI, ANTHROPIC, GOOGLE];

/// A run whose job files are written to disk piece by piece, in jobs of at most 500 rows.
fn long_run(provider: BatchProvider) -> BatchRun {
    let filler = "x".repeat(1_200);
    let rows = (1..=ROWS).map(|row| format!("row {row} {filler}")).chain([failing_once("last row")]);
    let run = BatchRun::new(provider, SimulatorScript::new(), rows);
    let name = provider.model.trim_end_matches(".m");
    run.place.write("rowmill.toml", format!("[providers.{name}.batch]\nmax_requests = 500\n"));
    run
}

/// Kills a run when something is so, continues it, and checks everything.
fn killed_when(provider: BatchProvider, reached: impl Fn(&BatchRun) -> bool) {
    let run = long_run(provider);
    let mut child = run.start();
    stop_when(&mut child, || reached(&run));
    kill(child);
    run.resume();
    run.assert_whole();
}

/// The number of job files of a kind that have something in them.
fn filled(run: &BatchRun, ending: &str) -> usize {
    run.job_files().iter().filter(|(name, length)| name.ends_with(ending) && **length > 0).count()
}

#[test]
fn a_kill_while_a_job_file_is_written_costs_nothing() {
    for provider in PROVIDERS {
        killed_when(provider, |run| {
            filled(run, ".requests.jsonl") == 1 && !run.ledger().contains("batch_job")
        });
    }
}

#[test]
fn a_kill_after_a_job_file_was_written_and_before_it_is_recorded_costs_nothing() {
    for provider in PROVIDERS {
        killed_when(provider, |run| {
            filled(run, ".requests.jsonl") >= 2 && !run.ledger().contains("batch_job")
        });
    }
}

#[test]
fn a_kill_while_results_are_collected_collects_the_others_later() {
    for provider in PROVIDERS {
        killed_when(provider, |run| {
            let lines = fs::read_to_string(run.place.path("out.jsonl")).unwrap_or_default().lines().count();
            (1..ROWS).contains(&lines) && run.has_job_stage("downloaded")
        });
    }
}

/// Copies the files in a folder into another one.
fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A run that was killed when the jobs of its second round were recorded, and none was submitted. The files of the
/// first round are in `saved`.
fn killed_in_the_second_round(provider: BatchProvider) -> BatchRun {
    let run = long_run(provider);
    run.simulator.hold_batch_request(Report, Before, 0);
    let mut child = run.start();
    // All jobs of the first round are collected in one pass.
    wait_for_state(&mut child, || {
        let jobs = run.simulator.stats().batches;
        jobs.held_requests == 1 && jobs.jobs_by_state.get("completed") == Some(&4)
    });
    run.simulator.release_batch_requests();
    let next = if provider.has_uploads { Upload } else { Create };
    run.simulator.hold_batch_request(next, Before, 0);
    stop_when(&mut child, || {
        let downloaded = run.ledger().matches("\"stage\":\"downloaded\"").count();
        downloaded == 4 && !run.has_job_stage("collected")
    });
    copy_files(&run.work_folder().join("jobs"), &run.place.path("saved"));
    send(&child, Signal::CONT);
    run.kill_when_held(child);
    run
}

/// Brings back the files of jobs that were removed after they had been collected.
fn bring_back_files(run: &BatchRun) {
    copy_files(&run.place.path("saved"), &run.work_folder().join("jobs"));
}

/// Removes the entries from the end of the ledger that are about jobs, as if the process had died before they were
/// written; `kept` of them stay.
fn cut_job_events(run: &BatchRun, kept: usize) {
    let path = run.ledger_path();
    let text = run.ledger();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_job = |line: &&&str| line.contains("\"event\":\"batch_job\"");
    let at_end = lines.iter().rev().take_while(is_job).count();
    let whole: String = lines.iter().take(lines.len() - at_end + kept).copied().collect();
    fs::write(path, whole).unwrap();
}

#[test]
fn a_kill_between_any_two_job_entries_after_a_pass_repeats_only_the_pass() {
    for (number, provider) in PROVIDERS.into_iter().enumerate() {
        // One job is written, and four are collected: each prefix of these entries is what a kill can leave.
        let kept = [0, 1, 3][number];
        let run = killed_in_the_second_round(provider);
        bring_back_files(&run);
        cut_job_events(&run, kept);
        run.resume();
        run.assert_whole();
    }
}

#[test]
fn files_of_jobs_that_were_collected_and_not_removed_are_removed_later() {
    let run = killed_in_the_second_round(OPENAI);
    bring_back_files(&run);
    assert!(run.job_files().len() > 4);
    run.resume();
    run.assert_whole();
}

#[test]
fn files_that_a_kill_at_the_very_end_left_are_removed_by_either_command() {
    for retrieves in [false, true] {
        let run = BatchRun::of_two_rounds(OPENAI);
        run.resume();
        let jobs = run.work_folder().join("jobs");
        fs::create_dir_all(&jobs).unwrap();
        for ending in ["requests.jsonl", "ids", "results.jsonl", "index"] {
            fs::write(jobs.join(format!("rowmill-0123456789abcdef-1.{ending}")), "left").unwrap();
        }
        if retrieves {
            run.retrieve();
        } else {
            run.resume();
        }
        assert_eq!(run.job_files(), BTreeMap::new(), "retrieves: {retrieves}");
        run.assert_whole();
    }
}
