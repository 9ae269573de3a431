//! Resuming an earlier run: rows that moved, limits, streams, locks and work folders.

use crate::faults_support::{Home, assert_all_ok, names, parse_lines};
use crate::support::wait_for;
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::{Value, json};

#[test]
fn with_an_id_field_rows_may_be_inserted_and_moved() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let row = |id: &str, prompt: &str| format!("{{\"id\":\"{id}\",\"p\":\"{prompt}\"}}\n");
    let (a, b, c) = (row("a", "A"), row("b", "B [[400x1]]"), row("c", "C"));
    home.write("in.jsonl", &[a.as_str(), &b, &c].concat());
    home.run().on(&simulator).args(&["--id-field", "id"]).ends_with(3);

    home.write("in.jsonl", &[&row("x", "X"), &c, &b, &row("y", "Y"), &a].map(String::as_str).concat());
    let ended = home.run().on(&simulator).args(&["--id-field", "id", "--resume"]).ends_with(0);
    ended.resumed(2, 1, 0);
    let mut ids: Vec<String> =
        home.envelopes().iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c", "x", "y"]);
    assert!(home.envelopes().iter().all(|line| line["ok"] == true));
    assert!(simulator.stats().answers_by_prompt.values().all(|&count| count == 1));
}

#[test]
fn ten_rows_first_and_then_the_rest_without_asking_them_again() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(100);
    let files = ["--telemetry-output", "telemetry.jsonl"];
    home.run().on(&simulator).args(&files).args(&["--limit", "10"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 10);
    home.run().on(&simulator).args(&files).args(&["--resume"]).ends_with(0).resumed(10, 0, 0);
    assert_all_ok(&home.envelopes(), 100);
    assert_eq!(simulator.stats().requests, 100);
    assert_eq!(home.json_lines("telemetry.jsonl").len(), 100);
}

#[test]
fn an_output_that_exists_is_refused_resumed_or_replaced_as_the_user_says() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(5);
    home.run().on(&simulator).ends_with(0);
    let first = home.read("out.jsonl");
    let ended = home.run().on(&simulator).ends_with(1);
    ended.says(&["error[RM1301]: output file `out.jsonl` already exists", "`--resume`", "`--overwrite`"]);
    assert_eq!((home.read("out.jsonl"), simulator.stats().requests), (first, 5));

    home.write_prompts(["new 1", "new 2"]);
    home.run().on(&simulator).args(&["--overwrite"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 2);
    assert!(home.read("out.jsonl").contains("new 2"));
    assert_eq!(simulator.stats().requests, 7);
}

#[test]
fn an_unfinished_run_whose_output_is_gone_is_not_overwritten_by_accident() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400]]"]);
    home.run().on(&simulator).ends_with(3);
    home.remove("out.jsonl");
    home.run().on(&simulator).ends_with(1).says(&["error[RM1301]", "left its ledger", "`--resume`"]);
    home.run().on(&simulator).args(&["--overwrite"]).ends_with(3);
    assert_eq!(home.envelopes().len(), 2);
}

#[test]
fn a_second_run_on_the_same_output_is_refused_while_the_first_goes_on() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(3));
    let home = Home::with_rows(10);
    let first = home.run().on(&simulator).args(&["--parallel", "2"]).start();
    simulator.wait_until_blocking(|stats| stats.requests == 5);
    for args in [["--resume"], ["--overwrite"]] {
        let ended = home.run().on(&simulator).args(&args).ends_with(1);
        ended.says(&["error[RM1304]: another run is writing to `out.jsonl`", "help: wait for it"]);
    }
    assert_eq!(simulator.stats().requests, 5, "the second run sent nothing");
    simulator.release();
    assert_eq!(first.end().code, Some(0));
    assert_all_ok(&home.envelopes(), 10);
}

#[test]
fn a_second_run_with_the_same_work_folder_is_refused_while_the_first_goes_on() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(3));
    let home = Home::with_rows(10);
    let work = ["--parallel", "2", "--work-dir", "work"];
    let first = home.run().on(&simulator).args(&work).start();
    simulator.wait_until_blocking(|stats| stats.requests == 5);
    let second = home.run_with(&["-i", "in.jsonl", "-o", "other.jsonl"]).on(&simulator).args(&work);
    second.args(&["--overwrite"]).ends_with(1);
    simulator.release();
    let first = first.end();
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_all_ok(&home.envelopes(), 10);
}

#[test]
fn a_finished_run_leaves_only_its_header_and_a_folder_of_the_user_stays() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(5);
    home.run().on(&simulator).ends_with(0);
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl"]);
    assert_eq!(names(&home.path(".out.jsonl.rowmill")), ["run.json"]);
    home.remove("out.jsonl");
    home.run().on(&simulator).ends_with(0);
    assert_all_ok(&home.envelopes(), 5);

    std::fs::create_dir(home.path("work")).unwrap();
    home.write("work/notes.txt", "mine");
    home.run().on(&simulator).args(&["--overwrite", "--work-dir", "work"]).ends_with(0);
    assert_eq!(names(&home.path("work")), ["notes.txt", "run.json"]);
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl", "work"]);
}

#[test]
fn the_ledger_of_a_finished_run_is_kept_when_the_user_says_so() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(5);
    home.run().on(&simulator).args(&["--keep-temp"]).ends_with(0);
    assert_eq!(names(&home.path(".out.jsonl.rowmill")), ["ledger-1.jsonl", "run.json"]);
    let ended = home.json_lines(".out.jsonl.rowmill/ledger-1.jsonl");
    assert_eq!(ended.iter().filter(|line| line["event"] == "row_ended").count(), 5);
    home.run().on(&simulator).args(&["--resume", "--keep-temp"]).ends_with(0).resumed(5, 0, 0);
    assert_eq!(simulator.stats().requests, 5);
    home.run().on(&simulator).args(&["--resume"]).ends_with(0);
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl"]);
}

#[test]
fn a_run_to_standard_output_is_resumed_from_its_work_folder_and_gives_every_envelope() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400x1]]", "c"]);
    let run = || home.run_with(&["-i", "in.jsonl", "-o", "-"]).on(&simulator).args(&["--work-dir", "work"]);
    let ended = run().ends_with(3);
    assert_eq!(parse_lines(&ended.out).len(), 3);
    ended.says(&["--resume --work-dir work"]);

    let ended = run().args(&["--resume"]).ends_with(0);
    ended.resumed(2, 1, 0);
    assert_all_ok(&parse_lines(&ended.out), 3);
    assert_eq!(simulator.stats().requests, 4);
    assert_eq!(home.names(), ["in.jsonl"]);
}

#[test]
fn a_run_to_standard_output_without_a_work_folder_says_where_its_ledger_is() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400x1]]"]);
    let stops = ["-i", "in.jsonl", "-o", "-", "--max-errors", "1"];
    let ended = home.run_with(&stops).on(&simulator).ends_with(4);
    let (_, rest) = ended.err.split_once("--work-dir ").unwrap();
    let folder = rest.split('`').next().unwrap();
    let args = ["-i", "in.jsonl", "-o", "-", "--resume", "--work-dir", folder];
    let ended = home.run_with(&args).on(&simulator).ends_with(0);
    assert_all_ok(&parse_lines(&ended.out), 2);
    assert_eq!(home.names(), ["in.jsonl"]);
}

#[test]
fn a_run_from_standard_input_is_resumed_with_the_same_rows() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let rows: String = (1..=30)
        .map(|number| match number {
            7 => "{\"p\":\"row 7 [[400x1]]\"}\n".to_owned(),
            _ => format!("{{\"p\":\"row {number}\"}}\n"),
        })
        .collect();
    let run = || {
        let args = ["-i", "-", "--input-format", "jsonl", "-o", "out.jsonl"];
        home.run_with(&args).on(&simulator).stdin(&rows)
    };
    run().ends_with(3);
    run().args(&["--resume"]).ends_with(0).resumed(29, 1, 0);
    assert_all_ok(&home.envelopes(), 30);
    assert_eq!(simulator.stats().requests, 31);
}

#[test]
fn telemetry_that_a_crash_tore_is_made_whole_again() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(20));
    let home = Home::with_rows(40);
    let files = ["--telemetry-output", "telemetry.jsonl", "--parallel", "4"];
    let running = home.run().on(&simulator).args(&files).start();
    simulator.wait_until_blocking(|stats| stats.requests == 24);
    // Telemetry is written with a delay after the ledger, and there must be something to tear.
    let is_whole = |text: &String| text.ends_with('\n') && text.lines().count() == 20;
    let telemetry = wait_for(|| Some(home.read("telemetry.jsonl")).filter(is_whole));
    running.kill();
    home.write("telemetry.jsonl", telemetry.get(..telemetry.len() / 2).unwrap());
    simulator.release();
    home.run().on(&simulator).args(&files).args(&["--resume"]).ends_with(0).resumed(20, 0, 4);
    let mut rows: Vec<u64> =
        home.json_lines("telemetry.jsonl").iter().map(|line| line["row_number"].as_u64().unwrap()).collect();
    rows.sort_unstable();
    assert_eq!(rows, (1..=40).collect::<Vec<_>>());
}

#[test]
fn an_output_behind_a_link_stays_behind_the_link_and_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[400x1]]", "b"]);
    home.write("real.jsonl", "");
    std::fs::set_permissions(home.path("real.jsonl"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("real.jsonl", home.path("out.jsonl")).unwrap();
    home.run().on(&simulator).args(&["--overwrite"]).ends_with(3);
    home.run().on(&simulator).args(&["--resume"]).ends_with(0);
    assert!(home.path("out.jsonl").is_symlink());
    assert_all_ok(&home.json_lines("real.jsonl"), 2);
    assert_eq!(home.path("real.jsonl").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl", "real.jsonl"]);
}

#[test]
fn a_run_whose_header_was_lost_goes_on_from_its_ledger_as_the_message_says() {
    let home = Home::with_rows(3);
    killed_after(&home, "out.jsonl", 2, &[]);
    // What is not in the ledger is nowhere.
    home.write("out.jsonl", "");
    let (header, ledger) = (".out.jsonl.rowmill/run.json", ".out.jsonl.rowmill/ledger-1.jsonl");
    let (whole, answers) = (home.read(header), home.read(ledger));
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    for left in ["", "\0\0\0\0", "{\n  \"fo", whole.get(..whole.len() / 2).unwrap()] {
        home.write(header, left);
        for command in [&["--resume"][..], &["--work-dir", ".out.jsonl.rowmill", "--resume"]] {
            home.run().on(&simulator).args(command).ends_with(1).says(&[
                "error[RM1307]: `.out.jsonl.rowmill/run.json` is empty or cut short",
                "help: run again with `--resume --accept-changes`",
            ]);
        }
        let other = ["-i", "in.jsonl", "-o", "other.jsonl", "--work-dir", ".out.jsonl.rowmill"];
        home.run_with(&other).on(&simulator).ends_with(1).says(&[
            "error[RM1301]",
            "left its ledger",
            "`--resume`",
        ]);
        assert_eq!((home.read(header).as_str(), home.read(ledger)), (left, answers.clone()));
    }
    assert_eq!(simulator.stats().requests, 0);
    home.run().on(&simulator).args(&["--resume", "--accept-changes"]).ends_with(0).resumed(2, 0, 1);
    assert_all_ok(&home.envelopes(), 3);
    assert_eq!(simulator.stats().requests, 1, "what the ledger had is not asked again");

    killed_after(&home, "again.jsonl", 2, &[]);
    home.write(".again.jsonl.rowmill/run.json", "");
    home.run_with(&["-i", "in.jsonl", "-o", "again.jsonl", "--overwrite"]).on(&simulator).ends_with(0);
    assert_all_ok(&home.json_lines("again.jsonl"), 3);
    assert_eq!(names(&home.path(".again.jsonl.rowmill")), ["run.json"]);
}

const WITH_IDS: [&str; 3] = ["--resume", "--id-field", "id"];

/// Twelve rows that have ids, of which the first run answers three before it is killed.
fn killed_without_ids(output: &str) -> Home {
    let home = Home::new();
    let row = |number| format!("{{\"id\":\"r{number}\",\"p\":\"row {number}\"}}\n");
    home.write("in.jsonl", &(1..=12).map(row).collect::<String>());
    killed_after(&home, output, 3, &[]);
    home
}

/// Runs until `answers` more rows are answered and the next one waits, then kills the run.
fn killed_after(home: &Home, output: &str, answers: u64, args: &[&str]) {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(answers));
    let io = ["-i", "in.jsonl", "-o", output, "-p", "{{p}}", "--parallel", "1"];
    let run = home.run_with(&io).on(&simulator).args(args).start();
    simulator.wait_until_blocking(|stats| stats.requests == answers + 1);
    run.kill();
}

/// Every row is there once, ok, in order, with its own answer and the expected id.
#[track_caller]
fn assert_each_once(envelopes: &[Value], id_of: impl Fn(u64) -> Value) {
    let seen: Vec<_> = envelopes.iter().map(|line| (&line["row_number"], &line["id"], &line["ok"])).collect();
    let expected: Vec<_> = (1..=12).map(|number| (json!(number), id_of(number), json!(true))).collect();
    assert_eq!(seen, expected.iter().map(|(number, id, ok)| (number, id, ok)).collect::<Vec<_>>());
    for line in envelopes {
        let prompt = format!("row {}", line["row_number"]);
        assert!(line["result"].as_str().is_some_and(|text| text.contains(&prompt)), "{line}");
    }
}

/// The id field by which the run identifies its rows.
fn id_field(home: &Home) -> Value {
    let header: Value = serde_json::from_str(&home.read(".out.jsonl.rowmill/run.json")).unwrap();
    header["fingerprint"]["id_field"].clone()
}

fn text_id(number: u64) -> Value {
    json!(format!("r{number}"))
}

#[test]
fn an_id_field_that_a_resume_adds_names_every_row_though_it_is_killed_and_resumed_again() {
    let home = killed_without_ids("out.jsonl");
    killed_after(&home, "out.jsonl", 4, &WITH_IDS);
    assert_eq!(id_field(&home), Value::Null, "it can go on either way");
    let left: Vec<(String, String)> = names(&home.path(".out.jsonl.rowmill"))
        .into_iter()
        .filter(|name| name.ends_with(".json") || name.ends_with(".jsonl"))
        .map(|name| (home.read(&format!(".out.jsonl.rowmill/{name}")), name))
        .collect();

    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let errors = ["--error-output", "errors.jsonl"];
    let run = |args: &[&str]| home.run().on(&simulator).args(&errors).args(args);
    let ended = run(&WITH_IDS).ends_with(0);
    ended.says(&["rows of this run are identified by their numbers", "their ids are added to the output"]);
    assert_each_once(&home.envelopes(), text_id);
    let asked = simulator.stats().requests;
    assert!((5..=6).contains(&asked), "{asked}: the row in flight at each kill and those that were left");
    assert_eq!(id_field(&home), "id");

    // Killed after the ids were put in and before the header records it.
    let restore = || {
        for (text, name) in &left {
            home.write(&format!(".out.jsonl.rowmill/{name}"), text);
        }
    };
    restore();
    run(&WITH_IDS).ends_with(0).says(&["12 skipped"]);
    assert_each_once(&home.envelopes(), text_id);
    restore();
    run(&["--resume"]).ends_with(0).says(&["12 skipped"]);
    assert_each_once(&home.envelopes(), |number| json!(number));

    // From here on the run has ids, and its input may grow.
    run(&WITH_IDS).ends_with(0).resumed(12, 0, 0);
    home.append("in.jsonl", "{\"id\":\"late\",\"p\":\"late\"}\n");
    run(&WITH_IDS).ends_with(0).resumed(12, 0, 0);
    assert_each_once(&home.envelopes()[..12], text_id);
    assert_eq!((&home.envelopes()[12]["id"], simulator.stats().requests), (&json!("late"), asked + 1));
}

#[test]
fn a_table_has_the_ids_that_a_resume_adds() {
    let home = killed_without_ids("out.csv");
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let io = ["-i", "in.jsonl", "-o", "out.csv", "-p", "{{p}}"];
    // Rows that `--where` now excludes were done before, and have an id, too.
    let rest = [&WITH_IDS[..], &["--where", "id <> 'r1'"]].concat();
    home.run_with(&io).on(&simulator).args(&rest).ends_with(0);
    let table = home.read("out.csv");
    let ids: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ids, (1..=12).map(|number| format!("r{number}")).collect::<Vec<_>>(), "{table}");
}

#[test]
fn an_id_field_is_not_removed_nor_changed_nor_added_to_a_changed_input_even_if_changes_are_accepted() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let rows = "{\"id\":\"a\",\"key\":\"x\",\"p\":\"A\"}\n{\"id\":\"b\",\"key\":\"y\",\"p\":\"B [[400]]\"}\n";
    home.write("in.jsonl", rows);
    let refused = |args: &[&str], texts: &[&str]| {
        let before = (home.read("out.jsonl"), simulator.stats().requests);
        for accept in [&[][..], &["--accept-changes"]] {
            let run = home.run().on(&simulator).args(&["--resume"]).args(args).args(accept);
            run.ends_with(1).says(&["error[RM1306]", "`--overwrite`"]).says(texts);
        }
        assert_eq!((home.read("out.jsonl"), simulator.stats().requests), before);
    };
    home.run().on(&simulator).args(&["--id-field", "id"]).ends_with(3);
    refused(
        &[],
        &["identified by the field `id`; with their numbers instead", "use `--id-field id` as before"],
    );
    refused(&["--id-field", "key"], &["with the field `key` instead"]);

    home.run().on(&simulator).args(&["--overwrite"]).ends_with(3);
    home.write("in.jsonl", &["{\"id\":\"c\",\"p\":\"C\"}\n", rows].concat());
    refused(
        &["--id-field", "id"],
        &["`--id-field id` cannot be added", "the content of the input has changed"],
    );
    home.write("in.jsonl", rows);
    for _ in 0..2 {
        home.run().on(&simulator).args(&WITH_IDS).ends_with(3).resumed(1, 1, 0);
    }
    let ids: Vec<Value> = home.envelopes().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["a", "b"]);
}
