//! None of the user's files is lost: a run does not write to what it reads, and a run that is rejected
//! leaves nothing behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::support::{Place, finish};

pub(crate) const ASK: &[&str] = &["-m", "passthrough", "--no-progress", "--no-final-summary"];

/// One file of each kind that a run can read, and a folder of rows.
fn everything() -> Place {
    let place = Place::new();
    place.write_rows(2);
    place.write("parts/a.jsonl", "{\"n\":1}\n");
    place.write("t.md", "Say {{n}}");
    place.write("instruction.md", "Be {{tone}} and {{kind}}.");
    place.write("schema.json", "{}");
    place.write("tone.txt", "kind");
    place.write("vars.json", "{\"kind\": \"short\"}");
    place.write("rowmill.toml", "[run]\nmodel = \"passthrough\"\n");
    place.write("cards/worker.md", "---\nname: worker\n---\nUse {{file:shared.md}}.");
    place.write("cards/shared.md", "what is shared");
    place.write("answers.jsonl", "{\"result\": \"sunny\"}\n");
    place
}

/// The content of every file of the place, by its name.
pub(crate) fn contents(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut folders = vec![place.path("")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry.clone());
            }
            found.push((entry.display().to_string(), fs::read(&entry).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

/// Runs a command, and checks that it is rejected with these messages and changes nothing.
#[track_caller]
pub(crate) fn refused(place: &Place, arguments: &[&str], problem: &[&str]) {
    let before = contents(place);
    let mut ended = place.run(&[arguments, ASK].concat()).code(1);
    for text in problem {
        ended = ended.says(text);
    }
    assert!(contents(place) == before, "{arguments:?} changed something: {}", ended.stderr);
}

#[test]
fn what_a_run_reads_is_never_written_over_whichever_flags_name_it() {
    let place = everything();
    let agent = ["--agent-card", "cards", "--agent", "worker", "--stub", "weather=answers.jsonl"];
    let plain = [
        "--template",
        "t.md",
        "--instruction",
        "instruction.md",
        "--json-schema",
        "schema.json",
        "--var-file",
        "tone=tone.txt",
        "--vars-json",
        "vars.json",
    ];
    let reads = [
        (&plain[..], "--input", "rows.jsonl"),
        (&plain, "--template", "t.md"),
        (&plain, "--instruction", "instruction.md"),
        (&plain, "--json-schema", "schema.json"),
        (&plain, "--var-file", "tone.txt"),
        (&plain, "--vars-json", "vars.json"),
        (&plain, "the configuration", "rowmill.toml"),
        (&agent, "--agent-card", "cards/worker.md"),
        (&agent, "--agent-card", "cards/shared.md"),
        (&agent, "--stub", "answers.jsonl"),
    ];
    let writes = ["--error-output", "--telemetry-output", "--summary-output"];
    for (at, (flags, read, path)) in reads.into_iter().enumerate() {
        // Every kind of read is combined with a kind of output, with and without permission to
        // overwrite.
        let write = writes[at % writes.len()];
        for overwrite in [&[][..], &["--overwrite"]] {
            let io = ["-i", "rows.jsonl", "-o", "out.jsonl", write, path];
            refused(&place, &[&io[..], flags, overwrite].concat(), &["error[RM1303]", write, read]);
        }
        let io = ["-i", "rows.jsonl", "-o", path, "--overwrite"];
        refused(&place, &[&io[..], flags].concat(), &["error[RM1303]: `--output`", read]);
    }
    let table = ["-i", "rows.jsonl", "-o", "t.md", "--output-format", "csv", "--overwrite"];
    refused(&place, &[&table[..], &plain].concat(), &["error[RM1303]: `--output`", "`--template`"]);
}

#[test]
fn a_file_that_only_a_card_names_is_not_written_over() {
    let place = everything();
    place.write("shared.txt", "what is shared");
    place.write("worker.md", "---\nname: worker\n---\nUse {{file:shared.txt}}.");
    let io = ["-i", "rows.jsonl", "-o", "out.jsonl", "--agent-card", "worker.md", "--overwrite"];
    place.write("fast-agent.yaml", "default_model: passthrough\n");
    for file in ["shared.txt", "fast-agent.yaml"] {
        refused(
            &place,
            &[&io[..], &["--summary-output", file]].concat(),
            &[
                "error[RM1303]: `--summary-output` must not point to the same file as an agent card or a file \
               that it reads",
            ],
        );
    }
}

#[test]
fn links_of_both_kinds_and_standard_input_are_seen_through() {
    let place = everything();
    fs::hard_link(place.path("rows.jsonl"), place.path("hard.jsonl")).unwrap();
    symlink("rows.jsonl", place.path("soft.jsonl")).unwrap();
    symlink("parts", place.path("linked")).unwrap();
    let message = ["error[RM1303]", "the same file as `--input`", "is `rows.jsonl`"];
    for link in ["hard.jsonl", "soft.jsonl"] {
        refused(&place, &["-i", "rows.jsonl", "-o", link, "--overwrite"], &message);
        refused(&place, &["-i", "rows.jsonl", "-o", "x", "--telemetry-output", link], &message);
    }
    refused(
        &place,
        &["-i", "parts/*.jsonl", "-o", "linked/a.jsonl", "--overwrite"],
        &["error[RM1303]: `--output` must not point to the same file as `--input`"],
    );
    // Two outputs to one file, the second by a link to a file that does not exist yet.
    symlink("new.jsonl", place.path("dangling.jsonl")).unwrap();
    refused(
        &place,
        &["-i", "rows.jsonl", "-o", "new.jsonl", "--error-output", "dangling.jsonl"],
        &["`--error-output` must not point to the same file as `--output`"],
    );
    let before = place.read("rows.jsonl");
    let arguments = ["run", "-i", "-", "--input-format", "jsonl", "-o", "rows.jsonl", "--overwrite"];
    let mut command = place.command(&[&arguments[..], ASK].concat());
    command.stdin(Stdio::from(fs::File::open(place.path("rows.jsonl")).unwrap()));
    finish(command.spawn().unwrap()).code(1).says("must not point to the same file as `--input -`");
    // And standard output that is redirected into the input.
    let mut command = place.command(&[&["run", "-i", "rows.jsonl", "-o", "-"], ASK].concat());
    let end = fs::OpenOptions::new().append(true).open(place.path("rows.jsonl")).unwrap();
    command.stdout(Stdio::from(end));
    finish(command.spawn().unwrap())
        .code(1)
        .says("`--output -` must not point to the same file as `--input`");
    assert_eq!(place.read("rows.jsonl"), before);
}

#[test]
fn folders_that_are_written_take_nothing_from_what_is_read_or_written_there() {
    let place = everything();
    place.write("rec/weather.jsonl", "{\"result\": \"sunny\"}\n");
    place.write("work/envelopes.jsonl", "{\"id\":1,\"row_number\":1,\"ok\":true}\n");
    let io = ["-i", "rows.jsonl", "-o", "out.jsonl"];
    let agent = ["--agent-card", "cards", "--agent", "worker"];
    for (more, message) in [
        (&["--export-traces", "tr", "--error-output", "tr/spans.jsonl"][..], "`--error-output`"),
        (&["--export-traces", "tr", "--error-output", "tr/row-1.codex.jsonl"], "could overwrite the file of"),
        (&["--work-dir", "w", "--summary-output", "w/run.json"], "`--summary-output`"),
        (&["--cache", "c", "--export-traces", "c"], "the same file as `--export-traces`"),
        (&["--archive-inputs", "arch", "--error-output", "arch"], "`--archive-inputs`"),
        (&["--archive-inputs", "t.md", "--template", "t.md"], "`--template`"),
        (&["--archive-inputs", "rows.jsonl"], "`--input`"),
        (&["--cache", "t.md", "--template", "t.md"], "`--template`"),
        (&["--export-traces", "t.md", "--template", "t.md"], "`--template`"),
        (&["--export-traces", "cards/worker.md", "--agent-card", "cards/worker.md"], "`--agent-card`"),
    ] {
        refused(&place, &[&io[..], more].concat(), &["error[RM1303]", message]);
    }
    let stub = ["--stub", "weather=rec/weather.jsonl", "--record-tools", "rec"];
    refused(&place, &[&io[..], &agent, &stub].concat(), &["error[RM1303]", "`--stub`", "`--record-tools`"]);
    refused(
        &place,
        &["-i", "work/envelopes.jsonl", "-o", "out.jsonl", "--work-dir", "work"],
        &["error[RM1303]", "`--work-dir`", "`--input`"],
    );
    let split = ["-i", "parts/a.jsonl", "--output-dir", "parts", "--split-by", "n", "--overwrite"];
    refused(&place, &split, &["error[RM1303]: `--output-dir` writes files to `parts`", "`--input`"]);
}

#[test]
fn a_folder_of_tables_replaces_no_file_that_rowmill_did_not_put_there() {
    let place = Place::new();
    place.write_rows(2);
    place.write("by-n/1.jsonl", "mine\n");
    let split = ["-i", "rows.jsonl", "--output-dir", "by-n", "--split-by", "input.n", "--overwrite"];
    let ended = place.run(&[&split[..], ASK].concat()).code(1);
    ended.says("`by-n/1.jsonl` already exists, and rowmill did not create it").says("rowmill export");
    assert_eq!(place.read("by-n/1.jsonl"), "mine\n");
    fs::remove_file(place.path("by-n/1.jsonl")).unwrap();
    place.rowmill(&["export", "by-n", "--output-dir", "by-n", "--split-by", "input.n", "--overwrite"]).ok();
    assert_eq!(place.json("by-n/1.jsonl").len(), 1, "as the advice says");
}

#[test]
fn a_work_folder_with_files_of_the_user_is_refused_or_left_with_them() {
    let place = Place::new();
    place.write_rows(2);
    let io = ["-i", "rows.jsonl", "-o", "out.jsonl", "--overwrite", "--dedupe"];
    for name in ["run.json", "envelopes.jsonl", "reserve", "ledger-1.jsonl"] {
        place.write(&format!("mine-{name}/{name}"), "something of mine");
        let folder = format!("mine-{name}");
        let message = format!("a file that rowmill did not create: `mine-{name}/{name}`");
        refused(&place, &[&io[..], &["--work-dir", &folder]].concat(), &["error[RM1301]", &message]);
    }
    place.write("data/answers/mine.txt", "mine");
    place.run(&[&io[..], &["--work-dir", "data"], ASK].concat()).ok();
    assert_eq!(place.read("data/answers/mine.txt"), "mine", "answers that rows share are removed alone");
}

#[test]
fn a_file_beside_the_output_that_no_run_wrote_is_not_emptied_unasked() {
    let place = Place::new();
    place.write_rows(2);
    place.write("notes.md", "mine\n");
    let sides = ["--error-output", "--telemetry-output", "--summary-output"];
    for flag in sides {
        let io = ["-i", "rows.jsonl", "-o", "out.jsonl", flag, "notes.md"];
        refused(&place, &io, &["error[RM1301]: `notes.md`, given to", flag, "`--overwrite`"]);
        let io = ["-i", "rows.jsonl", "-o", "out.jsonl", flag, "side"];
        place.run(&[&io[..], ASK].concat()).ok();
        fs::remove_file(place.path("out.jsonl")).unwrap();
        place.run(&[&io[..], ASK].concat()).ok();
        fs::remove_file(place.path("out.jsonl")).unwrap();
        fs::remove_file(place.path("side")).unwrap();
    }
}

#[test]
fn devices_pipes_and_standard_output_may_be_named_by_several_flags() {
    let place = Place::new();
    place.write_rows(2);
    place.write("log", "kept\n");
    for side in ["/dev/null", "/dev/stdout"] {
        let flags = ["--error-output", side, "--telemetry-output", side, "--summary-output", side];
        let arguments = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "--overwrite"];
        let mut command = place.command(&[&arguments[..], &flags, ASK].concat());
        let log = fs::OpenOptions::new().append(true).open(place.path("log")).unwrap();
        command.stdout(Stdio::from(log));
        finish(command.spawn().unwrap()).ok();
    }
    let log = place.read("log");
    assert!(log.starts_with("kept\n{\"id\":1,"), "what was there before stays: {log}");
    assert_eq!(log.matches("\"row_number\":").count(), 2);
    assert!(log.contains("\"started_at\""), "{log}");
    let out = place.run(&[&["-i", "rows.jsonl", "-o", "/dev/stdout"], ASK].concat()).ok();
    assert_eq!(out.lines().len(), 2);
}

#[test]
fn an_input_that_would_take_in_what_the_run_writes_is_refused_at_the_first_run() {
    let place = everything();
    let pattern = ["-i", "parts/*.jsonl", "-o"];
    refused(
        &place,
        &[&pattern[..], &["parts/out.jsonl"]].concat(),
        &[
            "error[RM1303]: `--input parts/*.jsonl` would also read what `--output` writes: `parts/out.jsonl`",
            "such as `out.jsonl`",
        ],
    );
    for more in [
        &["--error-output", "./parts/bad.jsonl"][..],
        &["--telemetry-output", "parts/new.jsonl"],
        &["--summary-output", "parts/summary.jsonl"],
        &["--export-traces", "parts"],
        &["--work-dir", "parts"],
    ] {
        let message = format!("would also read what `{}` writes", more[0]);
        refused(&place, &[&pattern[..], &["out.jsonl"], more].concat(), &["error[RM1303]", &message]);
    }
    for (input, output) in [("parts", "parts/deep/out.csv"), ("parts", "parts/out.jsonl"), (".", "out.jsonl")]
    {
        refused(&place, &["-i", input, "-o", output], &["would also read what `--output` writes"]);
    }
    refused(&place, &["-i", ".", "-o", "out.jsonl"], &["such as `../out.jsonl`"]);
    place.rowmill(&[&["plan", "-i", "parts/*.jsonl", "-o", "parts/out.jsonl"], ASK].concat()).code(1);
    place.run(&[&["-i", "parts/*.jsonl", "-o", "parts/.out.jsonl"], ASK].concat()).ok();
}

#[test]
fn missing_folders_of_outputs_are_created_reported_and_removed_if_the_run_is_refused() {
    let place = everything();
    let io = ["-i", "rows.jsonl", "-o", "a/b/out.jsonl", "--export-traces", "c/traces"];
    let sides =
        ["--error-output", "d/e.jsonl", "--telemetry-output", "f/t.jsonl", "--summary-output", "g/s.json"];
    let rest = ["--cache", "h/cache", "--work-dir", "i/work"];
    let made = [&io[..], &sides, &rest].concat();
    // Different reasons for the rejection: the input, the template, a file that cannot be opened.
    let missing: Vec<&str> =
        made.iter().map(|&flag| if flag == "rows.jsonl" { "no.jsonl" } else { flag }).collect();
    refused(&place, &missing, &["error[RM1001]"]);
    refused(&place, &[&made[..], &["--template", "no.md"]].concat(), &["error[RM1101]"]);
    refused(&place, &[&made[..], &["--where", "n ="]].concat(), &["error[RM1020]"]);
    let blocked: Vec<&str> =
        made.iter().map(|&flag| if flag == "d/e.jsonl" { "t.md/e" } else { flag }).collect();
    refused(&place, &blocked, &["error[RM1302]", "leads through `t.md`, which is not a folder"]);

    let mut ended = place.run(&[&made[..], ASK].concat()).ok();
    for (folder, flag) in [
        ("a/b", "--output"),
        ("c/traces", "--export-traces"),
        ("d", "--error-output"),
        ("f", "--telemetry-output"),
        ("g", "--summary-output"),
        ("h/cache", "--cache"),
        ("i/work", "--work-dir"),
    ] {
        ended = ended.says(&format!("created the folder `{folder}` for `{flag}`"));
    }
    assert_eq!(place.json("a/b/out.jsonl").len(), 2);
    assert_eq!(place.json("c/traces/manifest.jsonl").len(), 2);
    place
        .rowmill(&["export", "a/b/out.jsonl", "--work-dir", "i/work", "-o", "j/k/out.csv"])
        .ok()
        .says("created the folder `j/k` for `--output`");
    let split = ["-i", "rows.jsonl", "--output-dir", "l/m", "--split-by", "input.n"];
    place.run(&[&split[..], ASK].concat()).ok().says("created the folder `l/m` for `--output-dir`");
}

#[test]
fn a_file_that_cannot_be_opened_leaves_no_ledger_in_the_way_of_the_next_run() {
    let place = Place::new();
    place.write_rows(2);
    // No file can be created there.
    symlink("/proc/e.jsonl", place.path("link")).unwrap();
    let io = ["-i", "rows.jsonl", "-o", "new/out.jsonl", "--telemetry-output", "t.jsonl"];
    let io = [&io[..], &["--export-traces", "traces"]].concat();
    let unwritable = ["error[RM1401]: cannot write `link`"];
    refused(&place, &[&io[..], &["--error-output", "link"]].concat(), &unwritable);
    place.run(&[&io[..], ASK].concat()).ok();
    // Nor is an output discarded for a run that cannot start.
    refused(&place, &[&io[..], &["--overwrite", "--summary-output", "link"]].concat(), &unwritable);
}

#[test]
fn the_log_of_the_simulator_is_not_written_over_its_script() {
    let place = Place::new();
    place.write("rules.jsonl", "{}\n");
    let ended = place.rowmill(&["simulate", "--script", "rules.jsonl", "--log-requests", "./rules.jsonl"]);
    ended.code(1).says("error[RM1303]: `--log-requests` must not point to the same file as `--script`");
    assert_eq!(place.read("rules.jsonl"), "{}\n");
}

#[test]
fn export_does_not_write_over_what_it_reads() {
    let place = Place::new();
    place.write_rows(2);
    place.write("schema.json", "{\"type\": \"string\"}");
    place.run(&[&["-i", "rows.jsonl", "-o", "out.jsonl"], ASK].concat()).ok();
    fs::hard_link(place.path("out.jsonl"), place.path("hard.jsonl")).unwrap();
    let before = contents(&place);
    for output in ["out.jsonl", "hard.jsonl", ".out.jsonl.rowmill/run.json", "schema.json"] {
        let export = ["export", "out.jsonl", "--json-schema", "schema.json", "--overwrite", "-o", output];
        place.rowmill(&export).code(1).says("error[RM1303]: `--output` must not point to the same file as");
    }
    let split = ["export", "out.jsonl", "--output-dir", ".", "--split-by", "result", "--overwrite"];
    place.rowmill(&split).code(1).says("error[RM1303]: `--output-dir` writes files to `.`");
    assert!(contents(&place) == before);
    let split = ["-i", "rows.jsonl", "--output-dir", "by-n", "--split-by", "input.n"];
    place.run(&[&split[..], ASK].concat()).ok();
    let onto = ["export", "by-n", "-o", "by-n/1.jsonl", "--overwrite"];
    place.rowmill(&onto).code(1).says("must not point to the same file as the run itself");
}

#[test]
fn a_run_to_standard_output_leaves_nothing_behind_failed_rows_or_not() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"n\":1,\"some\":1}\n{\"n\":2}\n");
    let io = ["-i", "rows.jsonl", "-o", "-"];
    for (prompt, format, code) in
        [("{{n}}", "jsonl", 0), ("{{some}}", "jsonl", 3), ("{{n}}", "csv", 0), ("{{some}}", "csv", 3)]
    {
        let ended =
            place.run(&[&io[..], &["-p", prompt, "--output-format", format], ASK].concat()).code(code);
        assert!(ended.stdout.lines().count() >= 2);
        assert!(!ended.stderr.contains("the same command with `--resume`"), "{}", ended.stderr);
        assert!(place.names("tmp").is_empty(), "{prompt} {format}: {:?}", place.names("tmp"));
    }
    place.run(&[&io[..], &["--resume"], ASK].concat()).code(2).says("`--work-dir`");
    let first = place.run(&[&io[..], &["--stop-on-first-result"], ASK].concat());
    assert!(!first.lines().is_empty());
    assert!(place.names("tmp").is_empty(), "{:?}", place.names("tmp"));
}

#[test]
fn a_reader_that_goes_away_costs_no_answer_and_the_next_command_is_printed() {
    let place = Place::new();
    place.write_rows(5000);
    let mut command = place.command(&[&["run", "-i", "rows.jsonl", "-o", "-", "-p", "{{n}}"], ASK].concat());
    let mut child = command.spawn().unwrap();
    // The reader ends before it has read anything.
    drop(child.stdout.take());
    let ended = finish(child).code(1);
    let ended = ended.says("the program that reads standard output has ended before the run did");
    let (_, rest) = ended.stderr.split_once("`rowmill export ").unwrap();
    let (command, _) = rest.split_once('`').unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    place.rowmill(&[&["export"], &words[..]].concat()).ok();
    let kept = place.json("results.jsonl").len();
    assert!(kept > 0);
    let (_, rest) = ended.stderr.split_once("--resume --work-dir ").unwrap();
    let (folder, _) = rest.split_once('`').unwrap();
    let again = ["-i", "rows.jsonl", "-o", "-", "-p", "{{n}}", "--resume", "--work-dir", folder];
    assert_eq!(place.run(&[&again[..], ASK].concat()).ok().lines().len(), 5000);
    assert!(place.names("tmp").is_empty());
}

#[test]
fn without_temporary_files_not_even_the_header_of_a_finished_run_stays() {
    let place = Place::new();
    place.write_rows(2);
    for output in ["out.jsonl", "out.csv"] {
        let io = ["-i", "rows.jsonl", "-o", output, "--no-keep-temp"];
        place.run(&[&io[..], ASK].concat()).ok();
        assert!(!place.exists(&format!(".{output}.rowmill")));
    }
}
