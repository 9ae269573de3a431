//! Standard input and pipes: rows are worked on as they arrive, without waiting for the end.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{ChildStdin, Stdio};

use crate::support::{Place, each, finish, row_numbers, simulated, wait_for, wait_for_signals};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

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

#[test]
fn envelopes_and_messages_are_written_in_whole_lines() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"n\":1}\nbroken\n{\"n\":2}\n");
    // Every write to such a socket is a separate message.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut command =
        place.command(&["run", "-i", "rows.jsonl", "-o", "-", "-m", "passthrough", "-p", "{{n}}"]);
    command.stdout(OwnedFd::from(theirs.try_clone().unwrap())).stderr(OwnedFd::from(theirs));
    finish(command.spawn().unwrap()).code(3);
    let mut bytes = vec![0; 1 << 16];
    let mut read =
        || ours.recv(&mut bytes).ok().map(|length| String::from_utf8(bytes[..length].to_vec()).unwrap());
    let written: Vec<String> = std::iter::from_fn(&mut read).collect();
    assert!(written.iter().any(|text| text.starts_with("{\"id\"")), "{written:?}");
    assert!(written.iter().any(|text| text.contains("3 rows")), "{written:?}");
    assert!(written.iter().all(|text| text.ends_with('\n') && text != "\n"), "{written:?}");
}

#[test]
fn a_message_does_not_come_into_an_envelope_that_is_longer_than_a_pipe_takes() {
    let place = Place::new();
    place.write("rows.jsonl", format!("{{\"text\":\"{}\"}}\n", "long ".repeat(100_000)));
    let (mut ours, theirs) = io::pipe().unwrap();
    let mut command =
        place.command(&["run", "-i", "rows.jsonl", "-o", "-", "-m", "passthrough", "-p", "{{text}}"]);
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let child = command.spawn().unwrap();
    // The command must have the only writing end left.
    drop(command);
    let waiting = || rustix::io::ioctl_fionread(&ours).unwrap();
    wait_for(|| (waiting() >= 1 << 15).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut written = String::new();
    ours.read_to_string(&mut written).unwrap();
    let envelope = written.lines().find(|line| line.starts_with("{\"id\"")).unwrap();
    assert!(serde_json::from_str::<Value>(envelope).is_ok(), "{}", envelope.replace("long ", ""));
    drop(child.wait_with_output());
}

#[test]
fn a_run_that_waits_for_a_pipe_stops_at_its_deadline_and_at_ctrl_c() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo").arg(place.path("rows.jsonl")).status().unwrap();
    assert!(made.success());
    let run = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "-m", "passthrough"];
    let ended = place.rowmill(&[&run[..], &["--deadline", "300ms"]].concat()).code(4);
    ended.says("error[RM1040]: the deadline passed before the first row was read; nothing was sent");
    for more in [&[][..], &["--deadline", "1h"], &["--sample", "1"], &["--template", "rows.jsonl"]] {
        let child = place.command(&[&run[..], more].concat()).spawn().unwrap();
        wait_for_signals(&child);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        finish(child).code(130).says("interrupted before the first row; nothing was sent");
    }
    assert_eq!(place.names("."), ["rows.jsonl", "tmp"]);
    let child = place.command(&["plan", "-i", "rows.jsonl", "-m", "passthrough"]).spawn().unwrap();
    wait_for_signals(&child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    finish(child).code(130).says("interrupted before the first row");
}

#[test]
fn a_pipe_that_stays_silent_until_the_deadline_costs_no_earlier_output() {
    let place = Place::new();
    place.write("out.jsonl", "{\"id\":1,\"row_number\":1,\"ok\":true,\"result\":\"kept\",\"error\":null}\n");
    let before = place.read("out.jsonl");
    let run = ["run", "-i", "-", "--input-format", "jsonl", "-o", "out.jsonl", "-m", "passthrough"];
    let mut command = place.command(&[&run[..], &["--deadline", "300ms", "--overwrite"]].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // The writer sends nothing and stays open.
    let writer = child.stdin.take();
    finish(child).code(4).says("error[RM1040]: the deadline passed before the first row was read");
    drop(writer);
    assert_eq!(place.read("out.jsonl"), before);
    assert_eq!(place.names("."), ["out.jsonl", "tmp"]);
}
