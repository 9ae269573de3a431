//! Standard output that cannot be written: closed, not open for writing, or on a full disk.

use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

use crate::paths::ASK;
use crate::support::{Ended, Place, finish, simulated};

/// Runs `rowmill` with standard output redirected by a shell.
fn led(place: &Place, lead: &str, arguments: &[&str]) -> Ended {
    let rowmill = place.command(arguments);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("exec \"$@\" {lead}"), "sh"])
        .arg(rowmill.get_program())
        .args(rowmill.get_args());
    shell.env_clear().envs(rowmill.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(place.path(".")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(shell.spawn().unwrap())
}

/// Runs `rowmill` with standard output on a disk that is full.
fn on_full_disk(place: &Place, arguments: &[&str]) -> Ended {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    finish(place.command(arguments).stdout(full).spawn().unwrap())
}

#[test]
fn answers_are_not_asked_for_where_standard_output_is_closed_or_cannot_be_written_to() {
    let (simulator, place) = simulated();
    place.write_rows(3);
    let run = ["run", "-i", "rows.jsonl", "-m", "openai.m", "-p", "{{n}}", "-o", "-"];
    for more in [&[][..], &["--output-format", "csv"]] {
        let run = [&run[..], more].concat();
        let closed = "error[RM1302]: standard output is closed";
        led(&place, ">&-", &run).code(1).says(closed).says("choose a file with `--output`");
        led(&place, "1</dev/null", &run)
            .code(1)
            .says("error[RM1302]: standard output is not open for writing");
    }
    assert_eq!((simulator.stats().requests, place.names("tmp")), (0, Vec::new()));
    led(&place, ">/dev/null", &run).ok();
    place.run(&["-i", "rows.jsonl", "-o", "out.jsonl", "-m", "passthrough"]).ok();
    led(&place, ">&-", &["export", "out.jsonl", "-o", "-"]).code(1).says("error[RM1302]");
}

#[test]
fn answers_that_standard_output_does_not_take_are_kept_and_it_is_reported_where() {
    let (simulator, place) = simulated();
    place.write_rows(3);
    let ended =
        on_full_disk(&place, &["run", "-i", "rows.jsonl", "-m", "openai.m", "-p", "{{n}}", "-o", "-"]);
    let ended = ended.code(1).says("error[RM1401]: cannot write `standard output`");
    let (_, rest) = ended.stderr.split_once("the run is kept in ").unwrap();
    let (folder, _) = rest.split_once(',').unwrap();
    place.rowmill(&["export", folder, "-o", "kept.jsonl"]).ok();
    assert_eq!(place.json("kept.jsonl").len(), usize::try_from(simulator.stats().requests).unwrap());
}

#[test]
fn what_a_full_disk_does_not_take_is_an_error_of_every_command_that_prints() {
    let place = Place::new();
    place.write_rows(3);
    place.write("card.md", "---\nname: worker\nmodel: passthrough\n---\nWork.");
    let run = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"];
    on_full_disk(&place, &run).code(1).says("the results are complete; only the summary is missing");
    assert_eq!(place.json("out.jsonl").len(), 3);
    for command in [
        &["results", "out.jsonl"][..],
        &["results", "out.jsonl", "--json"],
        &["results", "out.jsonl", "--sql", "select * from input"],
        &["results", "out.jsonl", "--sql", "select * from input", "--json"],
        &["results", "out.jsonl", "--diff", "out.jsonl"],
        &["head", "rows.jsonl"],
        &["plan", "-i", "rows.jsonl", "-m", "passthrough"],
        &["models"],
        &["models", "--json"],
        &["export", "out.jsonl", "-o", "-"],
        &["card", "check", "card.md"],
        &["completions", "bash"],
        &["man"],
        &["simulate"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let ended = on_full_disk(&place, command);
        assert_eq!(ended.code, 1, "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("error[RM1401]: cannot write"), "{command:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("--resume"), "{command:?}: {}", ended.stderr);
    }
}

#[test]
fn a_reader_that_has_what_it_wants_is_no_error() {
    let place = Place::new();
    place.write_rows(3);
    place.run(&[&["-i", "rows.jsonl", "-o", "out.jsonl"], ASK].concat()).ok();
    for command in [
        &["results", "out.jsonl"][..],
        &["results", "out.jsonl", "--sql", "select * from input", "--json"],
        &["export", "out.jsonl", "-o", "-"],
        &["completions", "zsh"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = finish(place.command(command).stdout(writer).spawn().unwrap()).ok();
        assert_eq!(ended.stderr, "", "{command:?}");
    }
}

#[test]
fn a_program_may_read_nothing_of_what_a_command_prints() {
    let place = Place::new();
    place.write_rows(3);
    let null = || File::options().read(true).write(true).open("/dev/null").unwrap();
    for command in [
        &["head", "rows.jsonl"][..],
        &["run", "-i", "rows.jsonl", "-m", "passthrough", "-o", "-"],
        &["run", "-i", "rows.jsonl", "-m", "passthrough", "-o", "-", "--output-format", "csv"],
    ] {
        finish(place.command(command).stdout(null()).spawn().unwrap()).ok();
    }
}

#[test]
fn what_is_printed_to_a_closed_standard_output_is_an_error_of_every_command() {
    let place = Place::new();
    place.write_rows(3);
    place.run(&["-i", "rows.jsonl", "-o", "out.jsonl", "-m", "passthrough"]).ok();
    for command in [
        &["results", "out.jsonl"][..],
        &["results", "out.jsonl", "--sql", "select * from input"],
        &["head", "rows.jsonl"],
        &["models"],
        &["models", "--json"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ] {
        let ended = led(&place, ">&-", command);
        assert_eq!(ended.code, 1, "{command:?}: {}", ended.stderr);
        let message = "error[RM1401]: cannot write to standard output\n  cause: standard output is closed";
        assert!(ended.stderr.contains(message), "{command:?}: {}", ended.stderr);
    }
}
