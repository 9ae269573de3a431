//! Tables of runs that are killed, interrupted or still in progress.

use std::fs::File;
use std::process::Command;

use crate::faults_support::{Home, Running};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rowmill_testkit::{Simulator, SimulatorScript};
use rustix::process::Signal;

const TABLE: [&str; 4] = ["-i", "in.jsonl", "-o", "out.parquet"];

/// The row numbers of a Parquet table, in its order, and how many of them are ok.
fn rows(home: &Home, name: &str) -> (Vec<i64>, usize) {
    let file = File::open(home.path(name)).unwrap();
    let mut numbers = Vec::new();
    let mut ok = 0;
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        numbers.extend(batch["row_number"].as_primitive::<Int64Type>().values());
        ok += batch["ok"].as_boolean().true_count();
    }
    (numbers, ok)
}

fn export(home: &Home, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowmill"));
    let output =
        command.current_dir(home.path("")).env_clear().arg("export").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn started(home: &Home, simulator: &Simulator, more: &[&str]) -> Running {
    home.run_with(&TABLE).on(simulator).args(&["--parallel", "8"]).args(more).start()
}

/// Waits until the ledger has this many rows: telemetry is written after it.
fn wait_for_records(home: &Home, rows: usize) {
    while !home.exists("telemetry.jsonl") || home.read("telemetry.jsonl").matches('\n').count() < rows {
        std::thread::yield_now();
    }
}

#[test]
fn a_parquet_run_that_is_killed_again_and_again_ends_with_one_row_each() {
    const ROWS: usize = 600;
    let home = Home::with_rows(ROWS);
    for kill in 1..=6_usize {
        // Eighty rows are answered, and the next eight wait until the run is dead.
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(80));
        let running = started(&home, &simulator, &["--resume"]);
        simulator.wait_until_blocking(|stats| stats.requests == 88);
        assert_eq!(running.kill().code, None, "it must have died, not ended");
        assert!(!home.exists("out.parquet"), "no table before the end");
        // The rows so far can be exported at once; the kill lost none of them.
        let name = format!("so-far-{kill}.parquet");
        export(&home, &["out.parquet", "-o", &name]);
        let (numbers, ok) = rows(&home, &name);
        assert_eq!(numbers.len(), ok);
        assert_eq!(numbers.len(), kill * 80, "every answer that came before the kill");
        assert!(numbers.is_sorted_by(|one, next| one < next), "one row each, in order");
    }
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    home.run_with(&TABLE).on(&simulator).args(&["--resume"]).ends_with(0);
    assert_eq!(rows(&home, "out.parquet"), ((1..=ROWS as i64).collect(), ROWS));
    assert_eq!(simulator.stats().answers, 120, "no answer is asked for again");
}

#[test]
fn ctrl_c_leaves_a_table_of_what_is_done_and_a_resume_completes_it() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
    let home = Home::with_rows(40);
    let mut running = home.run_with(&TABLE).on(&simulator).args(&["--parallel", "4"]).start();
    simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.requests == 14);
    running.signal(Signal::INT);
    running.wait_for_talk("stopping: finishing rows in progress");
    simulator.release();
    assert_eq!(running.end().code, Some(130));
    let (numbers, ok) = rows(&home, "out.parquet");
    assert_eq!((numbers.len(), ok), (14, 14));
    home.run_with(&TABLE).on(&simulator).args(&["--resume"]).ends_with(0).resumed(14, 0, 0);
    assert_eq!(rows(&home, "out.parquet"), ((1..=40).collect(), 40));
}

#[test]
fn a_run_that_stops_at_a_limit_leaves_a_table() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400]]", "c"]);
    home.run_with(&TABLE).on(&simulator).args(&["--max-errors", "1", "--parallel", "1"]).ends_with(4);
    assert_eq!(rows(&home, "out.parquet"), (vec![1, 2], 1));
}

#[test]
fn a_run_that_goes_on_can_be_exported_and_is_not_disturbed() {
    let home = Home::with_rows(40);
    for (output, folder) in [("out.jsonl", ".out.jsonl.rowmill"), ("out.parquet", ".out.parquet.rowmill")] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
        let running = home
            .run_with(&["-i", "in.jsonl", "-o", output])
            .on(&simulator)
            .args(&["--parallel", "4", "--telemetry-output", "telemetry.jsonl"])
            .start();
        simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.requests == 14);
        wait_for_records(&home, 10);
        for run in [output, folder] {
            export(&home, &[run, "-o", "so-far.parquet", "--overwrite"]);
            let (numbers, ok) = rows(&home, "so-far.parquet");
            assert_eq!((numbers.len(), ok), (10, 10), "{run}");
        }
        simulator.release();
        assert_eq!(running.end().code, Some(0));
        home.remove("telemetry.jsonl");
    }
    assert_eq!(home.envelopes().len(), 40);
    assert_eq!(rows(&home, "out.parquet"), ((1..=40).collect(), 40));
}

#[test]
fn the_results_of_a_run_to_standard_output_that_was_killed_are_not_lost() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
    let home = Home::with_rows(40);
    let running = home
        .run_with(&["-i", "in.jsonl", "-o", "-", "--work-dir", "work"])
        .on(&simulator)
        .args(&["--parallel", "4", "--telemetry-output", "telemetry.jsonl"])
        .start();
    simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.requests == 14);
    wait_for_records(&home, 10);
    running.kill();
    export(&home, &["work", "-o", "out.parquet"]);
    assert_eq!(rows(&home, "out.parquet").0.len(), 10);
}

#[test]
fn a_table_that_cannot_be_written_costs_no_result() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(5);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended = home
        .run_with(&["-i", "in.jsonl", "-o", "-", "--output-format", "csv", "--work-dir", "work"])
        .on(&simulator)
        .stdout(full)
        .ends_with(1);
    ended.says(&["cannot write `standard output`", "the disk is full"]);
    export(&home, &["work", "-o", "out.parquet"]);
    assert_eq!(rows(&home, "out.parquet"), ((1..=5).collect(), 5));
    assert_eq!(simulator.stats().requests, 5);
}
