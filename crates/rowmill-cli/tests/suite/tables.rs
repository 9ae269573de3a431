//! Tables as results, and `rowmill export`, seen from outside.

use std::fs;

use crate::support::{KEY, Place, each, numbered_rows, scripted};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::support;

const SCHEMA: &str = r#"{"type":"object","properties":{"label":{"enum":["odd","even"]},"n":{"type":"integer"}},"required":["label","n"],"additionalProperties":false}"#;

/// Ten rows, a schema, and a simulator whose answers satisfy it.
fn labelled() -> (Simulator, Place) {
    let script = SimulatorScript::new().key(KEY).answer_prompts(|prompt, _| {
        let n: u64 = prompt.trim().parse().unwrap_or_default();
        SimulatedAnswer::Text(
            json!({"label": if n.is_multiple_of(2) { "even" } else { "odd" }, "n": n}).to_string(),
        )
    });
    let (simulator, place) = scripted(script);
    place.write_rows(10);
    place.write("schema.json", SCHEMA);
    (simulator, place)
}

const ASK: [&str; 8] = ["-i", "rows.jsonl", "-m", "generic.m", "-p", "{{n}}", "--json-schema", "schema.json"];

fn run(place: &Place, arguments: &[&str]) -> support::Ended {
    place.run(&[&ASK, arguments].concat())
}

#[test]
fn the_ending_or_the_flag_tells_the_format() {
    let (_simulator, place) = labelled();
    let summary = run(&place, &["-o", "out.csv"]).ok().says("output: out.csv").summary();
    assert_eq!(summary["output"], "out.csv");
    let csv = place.read("out.csv");
    assert!(
        csv.starts_with("id,row_number,ok,label,n,error_type,error_message\n1,1,true,odd,1,,\n"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 11);
    run(&place, &["-o", "out.tsv"]).ok();
    assert!(place.read("out.tsv").starts_with("id\trow_number\tok\tlabel"));
    run(&place, &["-o", "out.parquet"]).ok();
    assert!(fs::read(place.path("out.parquet")).unwrap().ends_with(b"PAR1"));
    run(&place, &["-o", "table", "--output-format", "csv"]).ok();
    assert_eq!(place.read("table"), csv);
    run(&place, &["-o", "lines.csv", "--output-format", "jsonl"]).ok();
    assert_eq!(place.json("lines.csv").len(), 10);
    assert!(!place.exists(".lines.csv.rowmill/envelopes.jsonl"), "plain envelopes go straight to their file");
}

#[test]
fn a_table_goes_to_standard_output_whole() {
    let (_simulator, place) = labelled();
    let ended = run(&place, &["-o", "-", "--output-format", "csv"]).ok();
    assert_eq!(ended.stdout.lines().count(), 11);
    assert!(ended.stdout.starts_with("id,row_number,ok,label,n,"));
    assert_eq!(place.names("tmp"), [""; 0], "nothing is left of a run that is done");
    let ended = run(&place, &["-o", "-", "--flatten", "--limit", "1"]).ok();
    assert_eq!(
        ended.stdout,
        "{\"input_n\":1,\"label\":\"odd\",\"n\":1,\"_id\":1,\"_row_number\":1,\"_ok\":true,\"_error_type\":null,\"_error_message\":null}\n"
    );
}

#[test]
fn what_may_be_done_with_an_output_holds_for_tables() {
    let (simulator, place) = labelled();
    run(&place, &["-o", "out.parquet"]).ok();
    run(&place, &["-o", "out.parquet"]).code(1).says("output file `out.parquet` already exists");
    let made = simulator.stats().requests;

    fs::remove_file(place.path("out.parquet")).unwrap();
    run(&place, &["-o", "out.parquet"])
        .code(1)
        .says("an earlier run left its results in `.out.parquet.rowmill`")
        .says("`rowmill export`");
    run(&place, &["-o", "out.parquet", "--resume"]).ok();
    assert!(place.exists("out.parquet"), "a resume makes it again");
    assert_eq!(simulator.stats().requests, made, "and sends nothing");

    run(&place, &["-o", "out.parquet", "--overwrite", "--limit", "3"]).ok();
    assert_eq!(simulator.stats().requests, made + 3);
    place.rowmill(&["export", "out.parquet", "-o", "three.jsonl"]).ok();
    assert_eq!(place.json("three.jsonl").len(), 3);

    fs::remove_dir_all(place.path(".out.parquet.rowmill")).unwrap();
    run(&place, &["-o", "out.parquet", "--resume"])
        .code(1)
        .says("the envelopes that `out.parquet` was created from are gone");
    assert_eq!(simulator.stats().requests, made + 3, "nothing is sent twice unasked");
}

#[test]
fn envelopes_and_tables_of_one_name_are_not_mixed() {
    let (_simulator, place) = labelled();
    run(&place, &["-o", "out.jsonl", "--flatten", "--limit", "2"]).ok();
    run(&place, &["-o", "out.jsonl", "--resume"])
        .code(1)
        .says("the output of the run in `.out.jsonl.rowmill` is a table");
    run(&place, &["-o", "out.jsonl", "--overwrite"]).ok();
    assert_eq!(place.json("out.jsonl").len(), 10);
    run(&place, &["-o", "out.jsonl", "--resume"]).ok();
    run(&place, &["-o", "out.jsonl", "--resume", "--flatten"])
        .code(1)
        .says("`out.jsonl` contains the envelopes of its run, not a table");
}

#[test]
fn a_resume_tries_failed_rows_again_and_replaces_the_table() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY));
    place.write("rows.jsonl", "{\"p\":\"a\"}\n{\"p\":\"b [[400x1]]\"}\n{\"p\":\"c\"}\n");
    let ask =
        ["-i", "rows.jsonl", "-m", "generic.m", "-p", "{{p}}", "-o", "out.csv", "--error-output", "bad"];
    place.run(&ask).code(3).says("next:   run the same command with `--resume` to retry the failed rows");
    let failed: Vec<String> =
        place.read("out.csv").lines().filter(|line| line.contains("false")).map(Into::into).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].starts_with("2,2,false,,BadRequest,"), "{failed:?}");
    assert_eq!(place.json("bad").len(), 1);
    place.run(&[&ask[..], &["--resume"]].concat()).ok();
    let table = place.read("out.csv");
    assert_eq!((table.lines().count(), table.matches("true").count()), (4, 3), "{table}");
    assert_eq!(simulator.stats().requests, 4);
    assert_eq!(place.read("bad"), "");
}

#[test]
fn a_split_output_is_a_folder_that_can_be_resumed_and_overwritten() {
    let (_simulator, place) = labelled();
    let split = ["--output-dir", "parts", "--split-by", "result.label", "--output-format", "csv"];
    run(&place, &[&split[..], &["--limit", "1"]].concat()).ok();
    assert_eq!(place.names("parts"), [".rowmill", ".rowmill.parts", "odd.csv"]);
    run(&place, &split).code(1).says("output folder `parts` is not empty");
    run(&place, &[&split[..], &["--resume"]].concat()).ok();
    assert_eq!(place.read("parts/odd.csv").lines().count(), 6);
    assert_eq!(place.read("parts/even.csv").lines().count(), 6);
    place.rowmill(&["export", "parts", "-o", "all.csv"]).ok();
    assert_eq!(place.read("all.csv").lines().count(), 11);

    place
        .rowmill(&["export", "all.csv", "-o", "x.csv"])
        .code(1)
        .says("`all.csv` is not an output of rowmill");
    let by_input = ["--output-dir", "by-n", "--split-by", "input.n", "--limit", "2"];
    run(&place, &by_input).ok();
    assert_eq!(place.json("by-n/1.jsonl")[0].get("input"), None, "it was only needed to split");
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let (_simulator, place) = labelled();
    for (arguments, problem) in [
        (&["-o", "a", "--output-dir", "b", "--split-by", "n"][..], "cannot be used with"),
        (&["--output-dir", "b"], "--split-by"),
        (&["-o", "a", "--split-by", "n"], "--output-dir"),
        (&[], "--output"),
        (&["-o", "a", "--output-format", "xlsx"], "must be jsonl, csv, tsv or parquet"),
        (&["-o", "a.csv.gz"], "outputs are not compressed"),
        (&["-o", "-", "--output-format", "csv", "--final-summary"], "cannot be used together"),
    ] {
        run(&place, arguments).code(2).says(problem);
    }
    run(&place, &["-o", "rows.jsonl/out.csv"]).code(1).says("leads through `rows.jsonl`");
    run(&place, &["--output-dir", "rows.jsonl/parts", "--split-by", "n"])
        .code(1)
        .says("leads through `rows.jsonl`");
    run(&place, &["--output-dir", "rows.jsonl", "--split-by", "n"])
        .code(1)
        .says("must not point to the same");
    run(&place, &["-o", "rows.csv", "--error-output", "rows.csv"]).code(1).says("must not point to the same");
    assert_eq!(place.names(""), ["rows.jsonl", "schema.json", "tmp"], "nothing was touched");
}

#[test]
fn export_makes_any_table_from_any_run() {
    let (simulator, place) = labelled();
    run(&place, &["-o", "out.jsonl", "--include-input"]).ok();
    let requests = simulator.stats().requests;
    place.rowmill(&["export", "out.jsonl", "-o", "out.csv"]).ok().says("10 rows");
    assert!(place.read("out.csv").starts_with("id,row_number,ok,label,n,error_type,error_message,input.n\n"));
    place.rowmill(&["export", "out.jsonl", "-o", "flat.jsonl", "--flatten"]).ok();
    assert_eq!(each(&place.json("flat.jsonl"), "/input_n")[9], Value::from(10));
    place
        .rowmill(&["export", ".out.jsonl.rowmill", "-o", "-", "--no-include-input", "--output-format", "tsv"])
        .ok();
    let split = ["--output-dir", "parts", "--split-by", "label"];
    place.rowmill(&[&["export", "out.jsonl"], &split[..]].concat()).ok().says("10 rows, in 2 files");
    assert_eq!(place.json("parts/even.jsonl").len(), 5);
    let ended = place.rowmill(&["export", "out.jsonl", "-o", "out.csv"]).code(1).says("already exists");
    assert!(!ended.stderr.contains("--resume"), "an export has no such flag: {}", ended.stderr);
    let ended = place.rowmill(&[&["export", "out.jsonl"], &split[..]].concat()).code(1).says("--overwrite");
    assert!(!ended.stderr.contains("--resume"), "{}", ended.stderr);
    place.rowmill(&["export", "out.jsonl", "-o", "out.csv", "--overwrite"]).ok();
    place.rowmill(&["export", "out.jsonl", "-o", "out.jsonl", "--overwrite"]).code(1).says("the run itself");
    assert_eq!(simulator.stats().requests, requests, "nothing is sent");
}

#[test]
fn export_says_what_is_no_run() {
    let (_simulator, place) = labelled();
    let export = |run: &str, more: &[&str]| place.rowmill(&[&["export", run, "-o", "x.csv"], more].concat());
    export("nowhere.jsonl", &[]).code(1).says("there is no run `nowhere.jsonl`");
    export("tmp", &[]).code(1).says("`tmp` does not contain a run");
    export("rows.jsonl", &[]).code(1).says("`rows.jsonl` is not an output of rowmill");
    place.write("empty.jsonl", "");
    export("empty.jsonl", &[]).code(1).says("has no results yet");
    place.run_rows(&["-m", "passthrough"]).ok();
    export("out.jsonl", &["--flatten"]).code(1).says("do not contain their input row");
    export("out.jsonl", &["--json-schema", "none.json"]).code(1).says("none.json");
    assert!(!place.exists("x.csv"));
    place.write("rows.jsonl", numbered_rows(3));
    place
        .run(&["-i", "rows.jsonl", "-o", "o.jsonl", "-m", "passthrough", "--work-dir", "w", "--keep-temp"])
        .ok();
    fs::remove_file(place.path("o.jsonl")).unwrap();
    export("o.jsonl", &["--work-dir", "w"]).ok().says("3 rows");
}

#[test]
fn a_resume_that_wants_input_rows_which_the_run_did_not_keep_is_refused_before_the_first_call() {
    let (simulator, place) = labelled();
    let split = ["--output-dir", "parts", "--split-by", "result.label", "--output-format", "csv"];
    for output in [&["-o", "out.csv"][..], &["-o", "out.parquet"], &split] {
        run(&place, &[output, &["--limit", "2"]].concat()).ok();
        let made = simulator.stats().requests;
        for wanted in ["--flatten", "--include-input"] {
            let ended = run(&place, &[output, &["--resume", wanted]].concat()).code(1);
            ended.says("error[RM1308]: 2 of the 2 finished rows").says(wanted).says("`--overwrite`");
        }
        assert_eq!(simulator.stats().requests, made, "{output:?}");
        run(&place, &[output, &["--resume"]].concat()).ok();
    }
}

#[test]
fn failed_rows_get_the_input_that_a_resume_wants() {
    let (_simulator, place) = scripted(SimulatorScript::new().key(KEY));
    place.write("rows.jsonl", "{\"p\":\"a [[400x1]]\"}\n{\"p\":\"b [[400x1]]\"}\n");
    let ask = ["-i", "rows.jsonl", "-m", "generic.m", "-p", "{{p}}", "-o", "out.csv"];
    place.run(&ask).code(3);
    place.run(&[&ask[..], &["--resume", "--flatten"]].concat()).ok();
    assert!(place.read("out.csv").starts_with("p,"), "{}", place.read("out.csv"));
}
