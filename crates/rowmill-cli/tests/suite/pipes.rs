//! Standard input and pipes: rows are worked on as they come, and no end is waited for in vain.

use std::io::Write;
use std::process::{ChildStdin, Stdio};

use crate::support::{Place, each, finish, row_numbers, simulated};
use serde_json::json;

use crate::support;

/// Starts a run whose standard input stays open.
fn open_run(place: &Place, arguments: &[&str]) -> (std::process::Child, ChildStdin) {
    let always = ["run", "-i", "-", "--input-format", "jsonl", "-o", "out.jsonl", "-p", "{{n}}"];
    let mut child = place.command(&[&always[..], arguments].concat()).stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

#[test]
fn rows_of_a_pipe_are_answered_as_they_come() {
    let (_simulator, place) = simulated();
    let (child, mut input) = open_run(&place, &["-m", "openai.m", "--id-field", "n"]);
    for n in 1..=3 {
        writeln!(input, "{{\"n\":{n}}}").unwrap();
        let output = place.wait_for_lines("out.jsonl", n);
        let expected = json!(format!("answer to: {n}"));
        assert_eq!(support::json_lines(&output).pop().unwrap()["result"], expected);
    }
    drop(input);
    finish(child).ok();
    assert_eq!(place.json("out.jsonl").len(), 3);
}

#[test]
fn a_run_that_has_all_the_rows_it_wants_does_not_wait_for_the_end_of_its_input() {
    for (flags, rows, code, wanted) in [
        (&["--limit", "2"][..], 2, 0, &[1, 2][..]),
        (&["--offset", "1", "--limit", "1"], 2, 0, &[2]),
        (&["--limit", "0"], 0, 0, &[]),
        (&["--max-errors", "0"], 0, 4, &[]),
    ] {
        let place = Place::new();
        let (child, mut input) = open_run(&place, &[&["-m", "passthrough"], flags].concat());
        input.write_all(support::numbered_rows(rows).as_bytes()).unwrap();
        finish(child).code(code);
        assert_eq!(row_numbers(&place.json("out.jsonl")), wanted, "{flags:?}");
        drop(input);
    }
}

#[test]
fn a_stopped_run_does_not_wait_for_the_end_of_its_input() {
    let (simulator, place) = simulated();
    let (child, mut input) = open_run(&place, &["-m", "openai.m", "--max-errors", "1"]);
    input.write_all(b"{\"n\":\"[[400]]\"}\n").unwrap();
    finish(child).code(4);
    assert_eq!(simulator.stats().requests, 1);
    drop(input);
}

#[test]
fn a_path_to_a_pipe_is_read_like_standard_input() {
    let place = Place::new();
    let mut command = place.command(&[
        "run",
        "-i",
        "/dev/stdin",
        "--input-format",
        "csv",
        "-o",
        "-",
        "-m",
        "passthrough",
        "-p",
        "{{n}}",
        "--id-field",
        "n",
    ]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"n\na\na\nb\n").unwrap();
    let ended = finish(child).code(3);
    assert_eq!(each(&ended.lines(), "/id"), [json!("a"), json!(3), json!("b")]);
}

#[test]
fn a_sampled_pipe_is_checked_before_the_first_call_and_leaves_nothing_behind() {
    let (simulator, place) = simulated();
    let rows = b"{\"k\":\"a\"}\n{\"k\":\"a\"}\n";
    let flags = ["--input-format", "jsonl", "-m", "openai.m", "--id-field", "k", "--sample", "2"];
    for output in ["out.jsonl", "-"] {
        let ended = place.pipe(rows, &[&flags[..], &["-o", output]].concat());
        ended.code(1).says("duplicate value `a` of id field `k` at rows 1 and 2");
        assert_eq!((place.names("."), place.names("tmp")), (vec!["tmp".to_owned()], vec![]));
    }
    assert_eq!(simulator.stats().connections, 0);
}

#[test]
fn a_copy_of_a_pipe_that_a_killed_run_left_is_no_hindrance() {
    let place = Place::new();
    place.write(".out.jsonl.rowmill/rowmill-input-x7Qa2b.spool", "{\"n\":\"stale\"}\n");
    let flags =
        ["--input-format", "jsonl", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}", "--sample", "5"];
    place.pipe(b"{\"n\":\"new\"}\n", &flags).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), [json!("new")]);
    assert_eq!(place.names("."), ["out.jsonl", "tmp"]);
}
