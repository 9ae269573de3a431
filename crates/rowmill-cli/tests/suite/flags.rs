//! Every flag of `rowmill run` does what its help says, and rejects invalid values.

use crate::support;

use crate::support::{KEY, Place, each, finish, row_numbers, scripted, simulated};
use rowmill_testkit::SimulatorScript;
use serde_json::json;

/// Runs `rows.jsonl` with ten rows through the built-in echo.
fn echo(arguments: &[&str]) -> (Place, support::Ended) {
    let place = Place::new();
    place.write_rows(10);
    let ended = place.run_rows(&[&["-m", "passthrough", "-p", "{{n}}"], arguments].concat());
    (place, ended)
}

fn echoed_rows(arguments: &[&str]) -> Vec<u64> {
    let (place, ended) = echo(arguments);
    ended.ok();
    row_numbers(&place.json("out.jsonl"))
}

#[test]
fn values_out_of_range_are_refused_with_the_flag_and_the_reason() {
    for (flag, metavar, value, reason) in [
        ("--limit", "N", "-1", "must be non-negative"),
        ("--offset", "N", "-1", "must be non-negative"),
        ("--sample", "N", "-3", "must be non-negative"),
        ("--seed", "N", "-1", "must be non-negative"),
        ("--max-errors", "N", "-1", "must be non-negative"),
        ("--retries", "N", "-1", "must be non-negative"),
        ("--repairs", "N", "-1", "must be non-negative"),
        ("--parallel", "N|auto", "0", "must be greater than zero"),
        ("--parallel", "N|auto", "-2", "must be greater than zero"),
        ("--progress-every", "N", "0", "must be greater than zero"),
        ("--limit", "N", "ten", "must be a whole number"),
        ("--parallel", "N|auto", "1.5", "must be a whole number or `auto`"),
        ("--limit", "N", "18446744073709551616", "is too large"),
        ("--retries", "N", "4294967296", "is too large"),
        ("--timeout", "TIME", "soon", "must be a duration such as `30` (seconds), `500ms`, `90s` or `5m`"),
        ("--timeout", "TIME", "0s", "must be a duration such as `30` (seconds), `500ms`, `90s` or `5m`"),
        (
            "--retry-wait",
            "TIME",
            "7 or so",
            "must be a duration such as `30` (seconds), `500ms`, `90s` or `5m`",
        ),
        (
            "--input-format",
            "FORMAT",
            "xml",
            "must be one of `jsonl`, `csv`, `tsv`, `json`, `parquet`, `documents`",
        ),
    ] {
        let (place, ended) = echo(&[flag, value]);
        let message = format!("error: invalid value '{value}' for '{flag} <{metavar}>': {reason}\n");
        ended.code(2).says(&message);
        assert!(!place.exists("out.jsonl"), "{flag}");
    }
}

#[test]
fn flags_that_exclude_or_need_each_other_are_reported() {
    for (arguments, message) in [
        (&["-p", "x", "--template", "t"][..], "--prompt and --template cannot be used together"),
        (&["--resume", "--overwrite"], "--resume and --overwrite cannot be used together"),
        (
            &["--json-schema", "s", "--schema-model", "m:C"],
            "--json-schema and --schema-model cannot be used together",
        ),
        (&["--accept-changes"], "--accept-changes requires --resume"),
        (&["--seed", "1"], "--seed requires --sample"),
    ] {
        let place = Place::new();
        // The input does not exist, but this must not be reported first.
        let ended =
            place.run(&[&["-i", "none.jsonl", "-o", "out.jsonl", "-m", "passthrough"], arguments].concat());
        ended.code(2).says(&format!("error[RM0001]: {message}\n"));
        assert!(!place.exists("out.jsonl"));
    }
    let place = Place::new();
    let ended = place.run(&["-i", "none.jsonl", "-o", "-", "-m", "passthrough", "--final-summary"]);
    ended.code(2).says("error[RM0001]: --final-summary and --output - cannot be used together\n");
}

#[test]
fn input_output_and_model_are_required() {
    let place = Place::new();
    place.write_rows(1);
    place.run(&["-o", "out.jsonl", "-m", "passthrough"]).code(2).says("--input <INPUT>\n");
    place.run(&["-i", "rows.jsonl", "-m", "passthrough"]).code(2).says("--output <FILE>");
    place.run_rows(&[]).code(2).says("error[RM0001]: no model given\n").says("ROWMILL_MODEL");
    place.run_rows(&["--nonsense"]).code(2).says("unexpected argument '--nonsense'");
    assert!(!place.exists("out.jsonl"));
}

#[test]
fn batch_run_is_the_same_command() {
    let place = Place::new();
    place.write_rows(3);
    let flags = ["-i", "rows.jsonl", "-m", "passthrough", "-p", "{{n}}", "--limit", "2"];
    place.rowmill(&[&["run", "-o", "a.jsonl"], &flags[..]].concat()).ok();
    place.rowmill(&[&["batch", "run", "-o", "b.jsonl"], &flags[..]].concat()).ok();
    assert_eq!(place.read("a.jsonl"), place.read("b.jsonl"));
    place.rowmill(&["batch", "run", "-i", "rows.jsonl"]).code(2).says("--output <FILE>");
}

#[test]
fn limit_offset_sample_and_seed_choose_rows() {
    assert_eq!(echoed_rows(&["--limit", "3"]), [1, 2, 3]);
    assert_eq!(echoed_rows(&["--limit", "99"]).len(), 10);
    assert!(echoed_rows(&["--limit", "0"]).is_empty());
    assert_eq!(echoed_rows(&["--offset", "8"]), [9, 10]);
    assert!(echoed_rows(&["--offset", "99"]).is_empty());
    assert_eq!(echoed_rows(&["--offset", "2", "--limit", "2"]), [3, 4]);
    assert!(echoed_rows(&["--sample", "0"]).is_empty());
    assert_eq!(echoed_rows(&["--sample", "10"]).len(), 10);
    let sampled = echoed_rows(&["--sample", "4", "--seed", "7"]);
    assert_eq!(sampled, echoed_rows(&["--sample", "4", "--seed", "7"]));
    assert_ne!(sampled, echoed_rows(&["--sample", "4", "--seed", "8"]));
    assert_eq!(echoed_rows(&["--sample", "4"]), echoed_rows(&["--sample", "4", "--seed", "0"]));
    assert_eq!(echoed_rows(&["--sample", "4", "--seed", "7", "--limit", "2"]), sampled[..2]);
    assert!(echoed_rows(&["--sample", "4", "--offset", "5"]).iter().all(|&number| number > 5));
}

#[test]
fn an_input_format_overrules_the_name_and_a_name_that_tells_nothing_needs_one() {
    let place = Place::new();
    place.write("rows.txt", "n\n7\n");
    let run = |more: &[&str]| {
        place
            .run(&[&["-i", "rows.txt", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"], more].concat())
    };
    run(&[])
        .code(1)
        .says("error[RM1003]: the format of the input cannot be determined from its name: `rows.txt`");
    run(&["--input-format", "csv"]).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), [json!("7")]);
    place.write("rows.csv", "{\"n\":\"8\"}\n");
    let ended =
        place.run(&["-i", "rows.csv", "-o", "o.jsonl", "-m", "passthrough", "--input-format", "ndjson"]);
    ended.ok();
}

#[test]
fn an_output_that_exists_is_refused_resumed_or_overwritten() {
    let place = Place::new();
    place.write_rows(2);
    let run = |more: &[&str]| place.run_rows(&[&["-m", "passthrough"], more].concat());
    run(&["-p", "a"]).ok();
    let before = place.read("out.jsonl");
    run(&["-p", "b"]).code(1).says("error[RM1301]: output file `out.jsonl` already exists\n");
    assert_eq!(place.read("out.jsonl"), before);
    run(&["-p", "a", "--resume"]).ok().says("skipping 2 finished rows");
    assert_eq!(place.read("out.jsonl"), before);
    run(&["-p", "b", "--overwrite"]).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), [json!("b"), json!("b")]);
}

#[test]
fn changed_settings_stop_a_resume_unless_they_are_accepted() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"a\"}\n{\"t\":\"b [[400x1]]\"}\n");
    let run = |more: &[&str]| place.run_rows(&[&["-m", "openai.m"], more].concat());
    run(&["-p", "one {{t}}"]).code(3);
    run(&["-p", "two {{t}}", "--resume"]).code(1).says("error[RM1306]").says("prompt");
    run(&["-p", "two {{t}}", "--resume", "--accept-changes"]).code(3);
    run(&["-p", "two {{t}}", "--resume"]).ok();
    let results = each(&place.json("out.jsonl"), "/result");
    assert_eq!(results, [json!("answer to: one a"), json!("answer to: two b [[400x1]]")]);
}

#[test]
fn no_two_flags_may_name_one_file() {
    for (flag, other, path) in [
        ("--error-output", "--output", "out.jsonl"),
        ("--telemetry-output", "--output", "./out.jsonl"),
        ("--summary-output", "--input", "rows.jsonl"),
    ] {
        let (place, ended) = echo(&[flag, path]);
        let message = format!("`{flag}` must not point to the same file as `{other}`: `{path}`");
        ended.code(1).says(&message);
        assert!(!place.exists("out.jsonl"));
        assert_eq!(place.read("rows.jsonl"), support::numbered_rows(10));
    }
    let (_place, ended) = echo(&["--error-output", "side", "--telemetry-output", "side"]);
    ended.code(1).says("`--telemetry-output` must not point to the same file as `--error-output`: `side`");
}

#[test]
fn parallel_bounds_the_calls_in_flight_and_without_it_eight_go_before_the_first_answer() {
    let auto = &["--parallel", "auto"];
    for (flags, most) in [(&["--parallel", "3"][..], 3), (&["--parallel", "1"], 1), (auto, 8), (&[], 8)] {
        let (simulator, place) = scripted(SimulatorScript::new().hold_after(0));
        place.write_rows(20);
        let child = place.start_rows(&[&["-m", "openai.m"], flags].concat());
        simulator.wait_until_blocking(|stats| stats.in_flight == most);
        if most < 8 {
            simulator.release();
        } else {
            // Later there may be more, if more calls have been answered.
            assert_eq!(simulator.stats().max_in_flight, most);
            simulator.release();
        }
        finish(child).ok();
        let stats = simulator.stats();
        assert!(stats.answers == 20 && (stats.max_in_flight == most || most == 8), "{stats:?}");
    }
}

#[test]
fn retries_bound_the_tries_of_a_row_and_are_four_without_it() {
    for (flags, attempts) in [(&["--retries", "0"][..], 1), (&["--retries", "2"], 3), (&[], 5)] {
        let (simulator, place) = simulated();
        place.write("rows.jsonl", "{\"t\":\"[[503]]\"}\n");
        place.run_rows(&[&["-m", "openai.m", "--retry-wait", "1ms"], flags].concat()).code(3);
        assert_eq!(simulator.stats().requests, attempts);
        let error = &place.json("out.jsonl")[0]["error"];
        assert_eq!((&error["type"], &error["attempts"]), (&json!("ServerError"), &json!(attempts)));
    }
}

#[test]
fn a_call_that_takes_longer_than_the_timeout_fails() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"[[hang]]\"}\n");
    place.run_rows(&["-m", "openai.m", "--timeout", "50ms", "--retries", "1", "--retry-wait", "1ms"]).code(3);
    let error = &place.json("out.jsonl")[0]["error"];
    assert_eq!((&error["type"], &error["attempts"]), (&json!("Timeout"), &json!(2)));
    assert_eq!(error["message"], "no complete answer within 0.05 s");
}

#[test]
fn max_errors_stops_the_run_at_that_many_failed_rows() {
    let (simulator, place) = simulated();
    let rows: String = (1..=9).map(|n| format!("{{\"t\":\"{n} [[400]]\"}}\n")).collect();
    place.write("rows.jsonl", rows);
    let run = |most: &str| {
        place.run_rows(&["-m", "openai.m", "--parallel", "1", "--overwrite", "--max-errors", most])
    };
    let ended = run("0").code(4);
    assert_eq!((simulator.stats().requests, place.read("out.jsonl").as_str()), (0, ""));
    assert_eq!(ended.summary()["status"], "max_errors");
    run("2").code(4).says("stopped after 2 failed rows");
    assert_eq!(row_numbers(&place.json("out.jsonl")), [1, 2]);
    run("10").code(3);
    assert_eq!(place.json("out.jsonl").len(), 9);
}

#[test]
fn the_ledger_lies_in_the_work_folder_and_stays_only_if_kept() {
    let (simulator, place) = scripted(SimulatorScript::new().hold_after(1));
    place.write_rows(2);
    let child = place.start_rows(&["-m", "openai.m", "--parallel", "1", "--work-dir", "work"]);
    simulator.wait_until_blocking(|stats| stats.requests == 2);
    assert!(place.read("work/ledger-1.jsonl").contains("\"row_number\":1"));
    assert!(!place.exists(".out.jsonl.rowmill"));
    simulator.release();
    finish(child).ok();
    assert_eq!(place.names("work"), ["run.json"]);

    let again = |more: &[&str]| place.run_rows(&[&["-m", "openai.m", "--overwrite"], more].concat()).ok();
    again(&["--keep-temp", "--work-dir", "work"]);
    // The ledger of a replaced run stays until the new run is sure to start.
    assert_eq!(place.names("work"), ["ledger-3.jsonl", "run.json"]);
    again(&["--keep-temp"]);
    assert!(place.names(".out.jsonl.rowmill").contains(&"ledger-1.jsonl".to_owned()));
    again(&["--keep-temp", "--no-keep-temp"]);
    assert!(!place.exists(".out.jsonl.rowmill"), "nothing is left where that was asked for");
}

#[test]
fn of_a_flag_and_its_opposite_the_last_one_counts() {
    for (flags, has_input) in [
        (&["--include-input", "--no-include-input"][..], false),
        (&["--no-include-input", "--include-input"], true),
        (&["--include-input"], true),
        (&[], false),
    ] {
        let (place, ended) = echo(flags);
        ended.ok();
        assert_eq!(place.json("out.jsonl")[0].get("input").is_some(), has_input, "{flags:?}");
    }
    let (_place, ended) = echo(&["--final-summary", "--no-final-summary"]);
    assert_eq!(ended.ok().stdout, "");
    let (_place, ended) = echo(&["--no-final-summary", "--final-summary"]);
    assert_eq!(ended.ok().summary()["processed_rows"], 10);
    let (_place, ended) = echo(&["--progress-every", "5", "--no-progress", "--progress"]);
    assert_eq!(ended.ok().stderr.matches(" rows/s, ").count(), 2);
}

#[test]
fn parallel_combines_with_sample_max_errors_offset_limit_ids_and_standard_input() {
    let (simulator, place) = simulated();
    let rows: String = (1..=20).map(|n| format!("{{\"id\":\"r{n}\",\"t\":\"{n} [[400]]\"}}\n")).collect();
    let flags = ["-m", "openai.m", "--parallel", "4", "--input-format", "jsonl", "--id-field", "id"];
    let choose = ["--offset", "2", "--sample", "9", "--seed", "3", "--limit", "6", "--include-input"];
    let outputs = ["-o", "out.jsonl", "--error-output", "bad.jsonl", "--telemetry-output", "times.jsonl"];
    let ended =
        place.pipe(rows.as_bytes(), &[&flags[..], &choose, &outputs, &["--max-errors", "99"]].concat());
    ended.code(3);
    let envelopes = place.json("out.jsonl");
    let numbers = row_numbers(&envelopes);
    assert_eq!(numbers.len(), 6);
    assert!(numbers.is_sorted() && numbers[0] > 2, "{numbers:?}");
    let ids: Vec<_> = numbers.iter().map(|number| json!(format!("r{number}"))).collect();
    assert_eq!((each(&envelopes, "/id"), each(&envelopes, "/input/id")), (ids.clone(), ids));
    assert_eq!(place.read("bad.jsonl"), place.read("out.jsonl"));
    assert_eq!((place.json("times.jsonl").len(), simulator.stats().requests), (6, 6));

    place.write("rows.jsonl", &rows);
    let ended = place.run_rows(&[
        "-m",
        "openai.m",
        "--parallel",
        "4",
        "--sample",
        "15",
        "--max-errors",
        "2",
        "--overwrite",
    ]);
    ended.code(4);
    let failed = place.json("out.jsonl").len();
    assert!((2..=5).contains(&failed), "calls in flight are finished, and no more: {failed}");
}

#[test]
fn an_unknown_field_of_the_environment_is_no_flag() {
    let (_simulator, mut place) = simulated();
    place.set("ROWMILL_LIMIT", "1");
    place.set("OPENAI_API_KEY", KEY);
    place.write_rows(2);
    place.run_rows(&["-m", "openai.m"]).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
}
