//! Outputs that are replaced by another process while a run is in progress.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command};

use rowmill_testkit::{Simulator, SimulatorScript};

use crate::support::{KEY, Place, finish, numbered_rows, scripted};

const ROWS: usize = 4;

/// A run that has sent half of its rows and waits.
fn halfway(flags: &[&str]) -> (Simulator, Place, Child) {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).hold_after(2));
    place.write_rows(ROWS);
    let all = ["run", "-i", "rows.jsonl", "-m", "openai.m", "-p", "{{n}}", "--parallel", "1"];
    let run = place.command(&[&all[..], flags].concat()).spawn().unwrap();
    simulator.wait_until_blocking(|stats| stats.requests == 3);
    (simulator, place, run)
}

#[test]
fn an_output_that_becomes_a_link_to_the_input_is_made_again_and_the_input_stays() {
    let (simulator, place, run) = halfway(&["-o", "out.jsonl"]);
    fs::remove_file(place.path("out.jsonl")).unwrap();
    symlink("rows.jsonl", place.path("out.jsonl")).unwrap();
    simulator.release();
    finish(run).ok().says("rebuilt: the output was modified during the run");
    assert_eq!(place.read("rows.jsonl"), numbered_rows(ROWS));
    assert!(!place.path("out.jsonl").is_symlink() && place.path("out.jsonl.changed").is_symlink());
    assert_eq!(place.json("out.jsonl").len(), ROWS);
}

#[test]
fn nothing_is_written_through_a_link_to_the_input_that_takes_the_place_of_another_output() {
    let tables = ["-o", "out.csv", "--overwrite"];
    let summary = ["-o", "out.jsonl", "--summary-output", "sum.json"];
    for (flags, name, flag) in
        [(&tables[..], "out.csv", "`--output`"), (&summary, "sum.json", "`--summary-output`")]
    {
        let (simulator, place, run) = halfway(flags);
        fs::remove_file(place.path(name)).ok();
        symlink("rows.jsonl", place.path(name)).unwrap();
        simulator.release();
        let message =
            format!("{flag} must not point to the same file as `--input`: `{name}` is `rows.jsonl`");
        let ended = finish(run).says(&message).says("it was replaced during the run");
        assert_ne!(ended.code, 0);
        ended.says("help: remove the link, then run the same command with `--resume` to continue");
        assert_eq!(place.read("rows.jsonl"), numbered_rows(ROWS));

        fs::remove_file(place.path(name)).unwrap();
        let all = ["-i", "rows.jsonl", "-m", "openai.m", "-p", "{{n}}", "--resume"];
        let flags: Vec<&str> = flags.iter().copied().filter(|flag| *flag != "--overwrite").collect();
        place.run(&[&all[..], &flags].concat()).ok();
        assert!(place.exists(name));
        assert_eq!(simulator.stats().requests, ROWS as u64, "no row is paid twice");
    }
}

#[test]
fn an_output_that_becomes_a_folder_or_a_pipe_is_reported_and_a_resume_writes_it_again() {
    for (command, what, remove) in
        [("mkdir", "a folder", "rmdir"), ("mkfifo", "something other than a file", "rm")]
    {
        let (simulator, place, run) = halfway(&["-o", "out.jsonl"]);
        let path = place.path("out.jsonl");
        fs::remove_file(&path).unwrap();
        assert!(Command::new(command).arg(&path).status().unwrap().success());
        simulator.release();
        let ended = finish(run).code(1);
        let message = format!("error[RM1401]: `out.jsonl` became {what} while the run was writing it\n");
        let ended = ended.says(&message);
        ended.says("help: move it away, then run the same command with `--resume` to write the output again");
        assert!(Command::new(remove).arg(&path).status().unwrap().success());
        place.run_rows(&["-m", "openai.m", "-p", "{{n}}", "--resume"]).ok();
        assert_eq!(place.json("out.jsonl").len(), ROWS);
        assert_eq!(simulator.stats().requests, ROWS as u64, "no row is paid twice");
    }
}

#[test]
fn a_run_that_another_process_goes_on_with_leaves_ledger_and_output_to_that_process() {
    let (simulator, place, run) = halfway(&["-o", "out.jsonl"]);
    // Simulates a resume on another machine: a header with a later epoch replaces this one.
    let folder = ".out.jsonl.rowmill";
    let mut header: serde_json::Value =
        serde_json::from_str(&place.read(&format!("{folder}/run.json"))).unwrap();
    header["epoch"] = 7.into();
    place.write(&format!("{folder}/new.json"), header.to_string());
    fs::rename(place.path(&format!("{folder}/new.json")), place.path(&format!("{folder}/run.json"))).unwrap();
    let ledger = place.read(&format!("{folder}/ledger-1.jsonl"));
    simulator.release();
    let ended = finish(run).says("error[RM1304]: another process has resumed the run");
    assert_eq!(ended.code, 1);
    assert_eq!(place.read(&format!("{folder}/ledger-1.jsonl")), ledger);
    assert_eq!(place.read(&format!("{folder}/run.json")), header.to_string());
    let all = ["-i", "rows.jsonl", "-m", "openai.m", "-p", "{{n}}", "-o", "out.jsonl", "--resume"];
    place.run(&all).ok();
    assert_eq!(place.json("out.jsonl").len(), ROWS);
}
