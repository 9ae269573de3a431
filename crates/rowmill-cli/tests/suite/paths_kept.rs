//! Files that existed before a run and do not belong to it stay, whichever flag names them.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rowmill_testkit::{Simulator, SimulatorScript};
use rustix::process::{Pid, Signal, kill_process};

use crate::faults_support::{Home, assert_all_ok};
use crate::paths::{ASK, contents, refused};
use crate::support::{Place, finish, numbered_rows, wait_for_signals};

const IO: &[&str] = &["-i", "rows.jsonl", "-o", "out.jsonl"];
const SIDES: [&str; 3] = ["--error-output", "--telemetry-output", "--summary-output"];

fn with_rows() -> Place {
    let place = Place::new();
    place.write_rows(2);
    place
}

#[test]
fn a_last_line_without_a_newline_is_dropped_only_where_a_run_was_writing_it() {
    let place = with_rows();
    let resume = ["-i", "rows.jsonl", "-o", "conf.json", "--resume"];
    for text in ["{\"important\":1}", "notes", "{\"id\":1}", "{\"id\":1,\"row_nu"] {
        place.write("conf.json", text);
        refused(&place, &resume, &["error[RM1305]", "conf.json"]);
    }
    place.write(
        "conf.json",
        "{\"id\":1,\"row_number\":1,\"ok\":true,\"result\":\"x\",\"error\":null}\n{\"id\":2,\"row",
    );
    place.run(&[&resume[..], ASK].concat()).ok();
    assert_eq!(place.json("conf.json").len(), 2);
}

#[test]
fn a_file_beside_the_output_replaces_only_what_a_run_wrote_there_for_the_same_flag() {
    let place = with_rows();
    let all = ["--error-output", "errors", "--telemetry-output", "telemetry", "--summary-output", "summary"];
    place.write("rows.jsonl", "{\"n\":1}\nno row\n");
    place.run(&[IO, &all, ASK].concat()).code(3);
    let again = ["-i", "rows.jsonl", "-o", "again.jsonl"];
    for (at, flag) in SIDES.into_iter().enumerate() {
        for (other, file) in ["errors", "telemetry", "summary"].into_iter().enumerate() {
            if at != other {
                refused(&place, &[&again[..], &[flag, file]].concat(), &["error[RM1301]", flag, file]);
            }
        }
        for existing in [&[][..], &["--resume"], &["--overwrite"]] {
            let message = ["error[RM1301]: `out.jsonl`", "is the output of another run"];
            refused(&place, &[&again[..], &[flag, "out.jsonl"], existing].concat(), &message);
            // The file was moved away from its work folder; its rows have been paid for all the same.
            fs::copy(place.path("out.jsonl"), place.path("moved.jsonl")).unwrap();
            refused(&place, &[&again[..], &[flag, "moved.jsonl"], existing].concat(), &["error[RM1301]"]);
        }
    }
    place.run(&[&again[..], &all, ASK].concat()).code(3);
    place.run(&[&again[..], &all, &["--resume"], ASK].concat()).code(3);
    assert_eq!((place.json("errors").len(), place.json("again.jsonl").len()), (1, 2));
}

#[test]
fn a_resume_empties_no_file_beside_the_output_that_no_run_wrote() {
    let place = with_rows();
    place.run(&[IO, ASK].concat()).ok();
    place.write("notes.md", "mine\n");
    for flag in SIDES {
        refused(
            &place,
            &[IO, &[flag, "notes.md", "--resume"]].concat(),
            &["error[RM1301]: `notes.md`", flag],
        );
    }
}

#[test]
fn every_name_of_a_work_folder_is_refused_where_no_run_put_it_there() {
    let place = with_rows();
    for name in ["ledger-2.jsonl", "run.json.new", "answers/answers.sqlite"] {
        for folder in ["mine", ".out.jsonl.rowmill"] {
            place.write(&format!("{folder}/{name}"), "something of mine");
            let named: &[&str] = if folder == "mine" { &["--work-dir", folder] } else { &[] };
            for existing in ["--overwrite", "--resume"] {
                let message = format!("a file that rowmill did not create: `{folder}/{name}`");
                refused(&place, &[IO, named, &[existing]].concat(), &["error[RM1301]", &message]);
            }
            fs::remove_dir_all(place.path(folder)).unwrap();
        }
    }
}

#[test]
fn a_run_that_was_killed_before_its_header_was_in_place_can_be_run_again() {
    let place = with_rows();
    place.run(&[IO, ASK, &["--dedupe"]].concat()).ok();
    let header = place.read(".out.jsonl.rowmill/run.json");
    for existing in ["--overwrite", "--resume"] {
        fs::remove_dir_all(place.path(".out.jsonl.rowmill")).unwrap();
        place.write("out.jsonl", "");
        place.write(".out.jsonl.rowmill/run.json.new", &header);
        place.write(".out.jsonl.rowmill/ledger-1.jsonl", "");
        place.write(".out.jsonl.rowmill/answers/answers.sqlite", "");
        place.write(".out.jsonl.rowmill/answers/answers.sqlite-journal", "half of a page");
        place.run(&[IO, ASK, &["--dedupe", existing]].concat()).ok();
        assert!(place.json("out.jsonl").iter().all(|envelope| envelope["ok"] == true), "{existing}");
    }
}

#[test]
fn a_copy_of_standard_input_takes_the_place_of_no_file_in_the_work_folder() {
    let place = with_rows();
    place.write(".out.jsonl.rowmill/input.spool", "something of mine");
    let io = ["--input-format", "jsonl", "-o", "out.jsonl", "--sample", "5"];
    place.pipe(b"{\"n\":1}\n", &[&io[..], ASK].concat()).ok();
    assert_eq!(place.read(".out.jsonl.rowmill/input.spool"), "something of mine");
    assert_eq!(place.names(".out.jsonl.rowmill"), ["input.spool", "run.json"], "its own copy is gone");
}

#[test]
fn an_input_that_cannot_be_used_leaves_no_output_and_takes_none_away() {
    let place = with_rows();
    place.run(&[IO, ASK].concat()).ok();
    place.write("broken.parquet", "no parquet");
    place.write("broken.json", "nonsense");
    for output in [&["-o", "new.jsonl"][..], &["-o", "new.csv"], &["-o", "out.jsonl"]] {
        for input in ["broken.parquet", "broken.json", "missing.jsonl"] {
            refused(&place, &[output, &["--overwrite", "-i", input]].concat(), &["error[RM10"]);
        }
        let before = contents(&place);
        for (format, rows, prompt) in
            [("jsonl", numbered_rows(300).as_str(), "{{m}}"), ("json", "nonsense", "{{n}}")]
        {
            let stream = ["--overwrite", "--input-format", format, "-p", prompt];
            place.pipe(rows.as_bytes(), &[output, &stream, ASK].concat()).code(1).says("error[RM10");
            assert!(contents(&place) == before, "{output:?} {format}");
        }
    }
}

#[test]
fn a_run_that_waits_for_its_first_row_is_stopped_at_once_and_leaves_nothing() {
    let place = with_rows();
    let before = contents(&place);
    let mut command = place.command(&[&["run", "-i", "-", "-o", "out.jsonl"], ASK].concat());
    let mut child = command.args(["--input-format", "jsonl"]).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    wait_for_signals(&child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    finish(child).code(130).says("interrupted before the first row; nothing was sent");
    drop(stdin);
    assert!(contents(&place) == before);
}

#[test]
fn a_resume_to_standard_output_without_a_run_in_the_folder_is_refused() {
    let place = with_rows();
    let io = ["-i", "rows.jsonl", "-o", "-", "--resume", "--work-dir", "typo"];
    place.run(&[&io[..], ASK].concat()).code(2).says("there is no run to resume in `typo`");
    assert!(!place.exists("typo"));
}

#[test]
fn what_another_run_is_writing_now_is_never_replaced_and_an_output_that_lost_lines_is_made_again() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(6));
    let home = Home::with_rows(10);
    let work = ["--parallel", "2", "--telemetry-output", "times", "--work-dir", "work"];
    let first = home.run().on(&simulator).args(&work).start();
    simulator.wait_until_blocking(|stats| stats.requests == 8);
    let second = |args: &[&str]| {
        let ended = home.run_with(&["-i", "in.jsonl"]).on(&simulator).args(args).ends_with(1);
        ended.says(&["error[RM130"]);
    };
    for existing in ["--overwrite", "--resume"] {
        second(&["-o", "times", existing]);
        for flag in SIDES {
            second(&["-o", "other.jsonl", flag, "out.jsonl", existing]);
        }
        second(&["-o", "other.jsonl", "--telemetry-output", "times", existing]);
    }
    assert_eq!(simulator.stats().requests, 8, "nothing was sent");
    home.write("out.jsonl", "");
    simulator.release();
    let ended = first.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended.says(&["rebuilt: the output was modified during the run"]);
    assert_all_ok(&home.envelopes(), 10);
    assert_eq!(simulator.stats().requests, 10, "no row was paid twice");
}

#[test]
fn a_folder_of_traces_replaces_only_what_runs_wrote_there() {
    let place = with_rows();
    for name in ["manifest.jsonl", "spans.jsonl", "row-000001__id-1__passthrough.codex.jsonl"] {
        place.write(&format!("traces/{name}"), "{\"mine\":1}\n");
        for existing in [&[][..], &["--overwrite"], &["--resume"]] {
            let message = format!("`traces/{name}` already exists");
            refused(
                &place,
                &[IO, &["--export-traces", "traces"], existing].concat(),
                &["error[RM1301]", &message],
            );
        }
        fs::remove_file(place.path(&format!("traces/{name}"))).unwrap();
    }
    for _ in 0..2 {
        place.run(&[IO, &["--export-traces", "traces", "--overwrite"], ASK].concat()).ok();
    }
    assert_eq!(place.json("traces/manifest.jsonl").len(), 2);
}

#[test]
fn an_output_with_nothing_but_failed_rows_is_not_taken_for_a_file_of_failed_rows() {
    let place = Place::new();
    place.write("rows.jsonl", "no row\nno row\n");
    let errors = ["--error-output", "errors"];
    place.run(&[IO, &errors, ASK].concat()).code(3);
    let again = ["-i", "rows.jsonl", "-o", "again.jsonl"];
    fs::copy(place.path("out.jsonl"), place.path("moved.jsonl")).unwrap();
    for existing in [&[][..], &["--resume"]] {
        let message = ["error[RM1301]: `moved.jsonl`", "may be the output of a run whose rows all failed"];
        refused(&place, &[&again[..], &["--error-output", "moved.jsonl"], existing].concat(), &message);
    }
    // The file of failed rows that a run has named belongs to the run, whatever it contains.
    place.run(&[IO, &errors, &["--resume"], ASK].concat()).code(3);
    place.run(&[IO, &errors, &["--overwrite"], ASK].concat()).code(3);
    assert_eq!((place.json("errors").len(), place.json("moved.jsonl").len()), (2, 2));
    place.run(&["-i", "rows.jsonl", "-o", "moved.jsonl", "--resume", "-m", "passthrough"]).code(3);
    assert_eq!(place.json("moved.jsonl").len(), 2);
}

#[test]
fn a_name_that_leaves_no_room_for_what_is_made_beside_it_is_refused_before_anything_is_sent() {
    let place = with_rows();
    let name = |bytes: usize, ending: &str| format!("{}{ending}", "n".repeat(bytes - ending.len()));
    for (bytes, ending) in [(236, ".jsonl"), (247, ".jsonl"), (255, ".csv"), (300, ".parquet")] {
        let output = name(bytes, ending);
        let message =
            ["error[RM1302]", &format!("given to `--output`, is {bytes} bytes long"), "at most 235 bytes"];
        refused(&place, &["-i", "rows.jsonl", "-o", &output], &message);
    }
    for flag in SIDES.into_iter().chain(["--work-dir"]) {
        let message = format!("given to `{flag}`, is 240 bytes long");
        refused(&place, &[IO, &[flag, &name(240, ".x")]].concat(), &[&message]);
    }
    for ending in [".jsonl", ".csv", ".parquet"] {
        let output = name(235, ending);
        for again in ["--overwrite", "--resume"] {
            place.run(&[&["-i", "rows.jsonl", "-o", &output, again], ASK].concat()).ok();
        }
    }
}

#[test]
fn what_a_run_keeps_beside_its_output_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = with_rows();
    let folders = ["--cache", "cache", "--export-traces", "traces"];
    place.run(&[IO, &folders, ASK].concat()).ok();
    place.run(&[&["-i", "rows.jsonl", "-o", "other.jsonl", "--work-dir", "deep/work"], ASK].concat()).ok();
    for folder in [".out.jsonl.rowmill", "cache", "traces", "deep/work"] {
        let mode = fs::metadata(place.path(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
}

#[test]
fn what_a_run_keeps_in_folders_that_others_can_look_into_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = with_rows();
    for folder in ["work", "cache", "traces"] {
        fs::create_dir(place.path(folder)).unwrap();
        fs::set_permissions(place.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let folders = ["--work-dir", "work", "--keep-temp", "--cache", "cache", "--export-traces", "traces"];
    place.run(&[IO, &folders, ASK].concat()).ok();
    for folder in ["work", "cache", "traces"] {
        let files = place.names(folder);
        assert!(!files.is_empty(), "{folder}");
        for file in files {
            let found = fs::metadata(place.path(folder).join(&file)).unwrap();
            assert!(found.is_dir() || found.permissions().mode() & 0o077 == 0, "{folder}/{file}");
        }
    }
}

/// Demands that all files in a folder and below are for their owner alone, and gives their names.
#[track_caller]
fn private_files(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            names.extend(private_files(&path));
            continue;
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
        names.push(entry.file_name().into_string().unwrap());
    }
    names
}

#[test]
fn no_file_that_a_run_keeps_is_for_others_even_where_new_files_usually_are() {
    use std::os::unix::fs::PermissionsExt as _;
    let query = "SELECT p FROM input ORDER BY random()";
    let piped = ["-i", "-", "--input-format", "jsonl", "--sample", "3", "--dedupe"];
    let asked = ["-i", "in.jsonl", "--sql", query, "--cache", "cache", "--export-traces", "traces"];
    for (input, kept) in [
        (&piped[..], &["work/rowmill-input-", "work/answers.sqlite"][..]),
        (&asked[..], &["work/rows-", "cache/answers.sqlite"][..]),
    ] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
        let home = Home::with_rows(3);
        // Their folders hide nothing.
        let folders = ["work", "cache", "traces"];
        for folder in folders {
            fs::create_dir(home.path(folder)).unwrap();
            fs::set_permissions(home.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let found = || -> Vec<String> {
            let files = |folder: &str| private_files(&home.path(folder)).into_iter();
            folders
                .iter()
                .flat_map(|folder| files(folder).map(move |name| format!("{folder}/{name}")))
                .collect()
        };
        let output = ["-o", "out.csv", "--work-dir", "work", "--keep-temp"];
        let run = home.run_with(&[input, &output].concat()).on(&simulator);
        let run = run.under("umask 000").stdin(&home.read("in.jsonl")).start();
        simulator.wait_until_blocking(|stats| stats.in_flight > 0);
        let usual = ["work/run.json", "work/ledger-1.jsonl", "work/reserve", "work/envelopes.jsonl"];
        let now = found();
        for file in usual.iter().chain(kept) {
            assert!(now.iter().any(|found| found.starts_with(file)), "{file} is not in {now:?}");
        }
        simulator.release();
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let left = found();
        let wanted = if kept[0] == "work/rows-" { "traces/manifest.jsonl" } else { "work/envelopes.jsonl" };
        assert!(left.iter().any(|found| found == wanted), "{left:?}");
    }
}
