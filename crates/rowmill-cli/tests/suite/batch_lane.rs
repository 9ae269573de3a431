//! The batch lane gives what the live lane gives, byte for byte.

use rowmill_testkit::SimulatorScript;
use serde_json::json;

use crate::lanes_support::{BATCH, BothLanes, LaneRun, MODEL, MODELS, SCHEMA, provided, write_texts};
use crate::support::{Place, each};

/// What rows are made to do, at most one in a hundred of each kind.
const MARKERS: [&str; 11] = [
    "[[wrongx1]]",
    "[[wrong]]",
    "[[400]]",
    "[[refusal]]",
    "[[length]]",
    "[[empty]]",
    "[[filter]]",
    "[[null]]",
    "[[fenced]]",
    "[[503x2]]",
    "[[429x1]]",
];

/// Writes rows of which some have a marker, and one in a hundred lacks its text.
fn write_rows(place: &Place, rows: usize, every: usize) {
    let line = |row: usize| match row % every {
        0 => "{\"other\":1}\n".to_owned(),
        kind => {
            let marker = MARKERS.get(kind - 1).copied().unwrap_or_default();
            format!("{}\n", json!({"id": format!("r{row}"), "t": format!("Rate review {row}. {marker}")}))
        }
    };
    place.write("rows.jsonl", (1..=rows).map(line).collect::<String>());
    place.write("schema.json", SCHEMA);
}

/// The same rows in both lanes.
fn compare(model: &str, rows: usize, every: usize, more: &[&str]) -> (LaneRun, LaneRun) {
    let flags = ["-m", model, "-p", "{{t}}", "--retries", "3", "--error-output", "bad.jsonl"];
    let flags = [&flags[..], &["--telemetry-output", "times.jsonl", "--include-input"], more].concat();
    let script = || SimulatorScript::new().keep_requests(0);
    let lanes =
        BothLanes { script: &script, prepare: &|place| write_rows(place, rows, every), flags: &flags };
    lanes.give_the_same()
}

#[test]
fn a_thousand_rows_with_a_schema_give_the_same_bytes_live_and_in_jobs() {
    let (live, batch) = compare(MODEL, 1_000, 100, &["--json-schema", "schema.json"]);
    let envelopes = batch.place.json("out.jsonl");
    let kinds = each(&envelopes, "/error/type");
    for kind in [
        "StructuredOutputError",
        "BadRequest",
        "Refusal",
        "OutputTruncated",
        "EmptyAnswer",
        "ContentFilter",
        "MissingTemplateField",
    ] {
        assert!(kinds.contains(&json!(kind)), "{kind}");
    }
    assert!(envelopes.iter().filter(|line| line["ok"] == true).count() > 850);
    assert_eq!(live.place.read("bad.jsonl"), batch.place.read("bad.jsonl"));
    // A repair and each attempt at a row is a request of a further job.
    assert_eq!(batch.jobs().jobs, 3);
    assert!(batch.ended.stderr.contains("batch:  3 jobs in 3 rounds"), "{}", batch.ended.stderr);
}

#[test]
fn every_provider_gives_the_same_bytes_live_and_in_jobs() {
    for model in &MODELS[1..] {
        compare(model, 60, 20, &["--json-schema", "schema.json"]);
    }
}

#[test]
fn every_provider_gives_the_same_texts_live_and_in_jobs() {
    for model in MODELS {
        compare(model, 20, 20, &[]);
    }
}

#[test]
fn rows_whose_attempts_are_used_up_fail_with_the_same_error_in_both_lanes() {
    for model in MODELS {
        for retries in ["0", "2"] {
            let prepare = |place: &mut Place| {
                write_texts(place, ["one", "two [[500]]", "three"]);
            };
            let flags = ["-m", model, "-p", "{{t}}", "--retries", retries, "--max-outage", "0"];
            let (_, batch) =
                BothLanes { script: &SimulatorScript::new, prepare: &prepare, flags: &flags }.give_the_same();
            let attempts = each(&batch.place.json("out.jsonl"), "/error/attempts");
            let made = json!(retries.parse::<u64>().unwrap() + 1);
            assert_eq!(attempts[1], made, "{model}");
        }
    }
}

#[test]
fn every_pass_selects_the_same_rows_as_a_live_run() {
    let prepare = |place: &mut Place| write_texts(place, (0..40).map(|row| format!("text {row} [[503x1]]")));
    for selection in
        [&["--limit", "7"][..], &["--offset", "3", "--limit", "5"], &["--sample", "6", "--seed", "3"]]
    {
        let flags = [&["-m", MODEL, "-p", "{{t}}"], selection].concat();
        let lanes = BothLanes { script: &SimulatorScript::new, prepare: &prepare, flags: &flags };
        let (_, batch) = lanes.give_the_same();
        assert_eq!(batch.jobs().jobs, 2, "each row is sent twice: {selection:?}");
        assert!(batch.jobs().rows <= 14, "{selection:?}");
    }
}

#[test]
fn tables_are_the_same_in_both_lanes() {
    let mut tables = Vec::new();
    for lane in [&["--lane", "live"][..], BATCH] {
        let (_simulator, place) = provided(SimulatorScript::new());
        write_texts(&place, ["a", "b [[wrongx1]]", "c [[400]]", "d"]);
        place.write("schema.json", SCHEMA);
        let flags = ["-i", "rows.jsonl", "-o", "out.csv", "-m", MODEL, "-p", "{{t}}"];
        place.run(&[&flags[..], &["--json-schema", "schema.json"], lane].concat()).code(3);
        tables.push(place.read("out.csv"));
    }
    assert_eq!(tables[0], tables[1]);
    assert_eq!(tables[0].lines().count(), 5);
}

#[test]
fn a_job_in_which_every_row_fails_for_a_passing_reason_ends() {
    let (simulator, place) = provided(SimulatorScript::new());
    write_texts(&place, (0..200).map(|row| format!("{row} [[503]]")));
    let flags = ["-m", MODEL, "-p", "{{t}}", "--retries", "1", "--keep-going"];
    place.run_rows(&[&flags[..], BATCH].concat()).code(3).says("200 rows: 0 ok, 200 failed");
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().batches.rows), (2, 400));
}

#[test]
fn telemetry_names_the_job_of_every_result_failures_included() {
    let (_simulator, place) = provided(SimulatorScript::new());
    write_texts(&place, ["a", "b [[503]]", "c [[429]]", "d [[401]]"]);
    let flags = ["-m", MODEL, "-p", "{{t}}", "--retries", "1", "--telemetry-output", "times.jsonl"];
    place.run_rows(&[&flags[..], BATCH].concat()).code(3);
    let mut lines = place.json("times.jsonl");
    lines.sort_by_key(|line| line["row_number"].as_u64());
    let calls = each(&lines, "/usage/provider_attempts/0");
    let reported: Vec<_> =
        calls.iter().map(|call| (call["lane"].clone(), call["batch"]["attempt"].clone())).collect();
    assert_eq!(reported, [1, 2, 2, 1].map(|attempt| (json!("batch"), json!(attempt))));
    let kinds = each(&place.json("out.jsonl"), "/error/type");
    assert_eq!(kinds[1..], ["ServerError", "RateLimited", "AuthenticationError"].map(|kind| json!(kind)));
}
