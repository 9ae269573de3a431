//! `rowmill results` summarizes a run, and shows the differences from another one.

use crate::support::{Place, simulated};
use serde_json::json;

/// An output: two labels with scores, and two rows that failed.
const OUTPUT: &str = r#"{"id":"a","row_number":1,"ok":true,"result":{"label":"good","score":0.5,"why":"x"},"error":null}
{"id":"b","row_number":2,"ok":true,"result":{"label":"bad","score":1,"why":"y"},"error":null}
{"id":"c","row_number":3,"ok":false,"result":null,"error":{"type":"Timeout","message":"no answer\nin time"}}
{"id":"d","row_number":4,"ok":true,"result":{"label":"good","score":-3,"why":null},"error":null}
{"id":"e","row_number":5,"ok":false,"result":null,"error":{"type":"Refusal","message":"I cannot help with that, and here is a long explanation of why that is"}}
"#;

#[test]
fn counts_failures_and_values_are_reported() {
    let place = Place::new();
    place.write("out.jsonl", OUTPUT);
    let shown = place.rowmill(&["results", "out.jsonl"]).ok().stdout;
    assert_eq!(
        shown,
        "out.jsonl: 5 rows: 3 ok, 2 failed\n\
         \n\
         failed rows\n\
         \x20 Refusal  1\n\
         \x20 Timeout  1\n\
         \n\
         \x20 row  id  type     message\n\
         \x20   3  c   Timeout  no answer\\nin time\n\
         \x20   5  e   Refusal  I cannot help with that, and here is a long explanation of …\n\
         \n\
         results\n\
         \x20 label  text             good: 2 · bad: 1\n\
         \x20 score  integer, number  min -3, mean -0.5, max 1\n\
         \x20 why    text             null: 1\n"
    );
    let shown = place.rowmill(&["results", "out.jsonl", "--failures", "1"]).ok().stdout;
    assert!(shown.contains("\n  … and 1 more; `--failures 2` shows all\n"), "{shown}");
}

#[test]
fn text_results_with_few_values_are_counted_and_others_are_not() {
    let place = Place::new();
    let line = |n: usize, result: &str| {
        format!("{{\"id\":{n},\"row_number\":{n},\"ok\":true,\"result\":{result},\"error\":null}}\n")
    };
    place.write(
        "few.jsonl",
        (1..=40).map(|n| line(n, if n % 4 == 0 { "\"yes\"" } else { "\"no\"" })).collect::<String>(),
    );
    place.write("many.jsonl", (1..=40).map(|n| line(n, &format!("\"text {n}\""))).collect::<String>());
    for (name, message) in [
        ("few.jsonl", "few.jsonl: 40 rows: 40 ok\n\nresults\n  (whole result)  text  no: 30 · yes: 10\n"),
        ("many.jsonl", "many.jsonl: 40 rows: 40 ok\n\nresults\n  (whole result)  text\n"),
    ] {
        assert_eq!(place.rowmill(&["results", name]).ok().stdout, message);
    }
}

#[test]
fn tokens_and_times_come_from_telemetry_with_histograms() {
    let place = Place::new();
    place.write("out.jsonl", OUTPUT);
    let telemetry = |n: u64| {
        json!({
            "id": n, "row_number": n, "ok": true, "timing": {"duration_ms": 100.0 + n as f64},
            "usage": {"turn": {"input_tokens": 10 * n, "output_tokens": 3}, "cost_usd": 0.25},
        })
    };
    place.write("t.jsonl", (1..=20).map(|n| format!("{}\n", telemetry(n))).collect::<String>());
    let shown = place.rowmill(&["results", "out.jsonl", "--telemetry", "t.jsonl"]).ok().stdout;
    let histograms =
        shown.split_once("why    text             null: 1\n").map(|(_, rest)| rest).unwrap_or_default();
    assert_eq!(
        histograms,
        "\n\
         tokens in: p50 100, p90 180, p99 200, max 200\n\
         \x20   10 – 20   1  ████\n\
         \x20   20 – 50   3  ████████████\n\
         \x20  50 – 100   5  ████████████████████\n\
         \x20 100 – 200  10  ████████████████████████████████████████\n\
         \x20 200 – 500   1  ████\n\
         \n\
         tokens out: p50 3, p90 3, p99 3, max 3\n\
         \x20 3 – 4  20  ████████████████████████████████████████\n\
         \n\
         time per row: p50 110 ms, p90 118 ms, p99 120 ms, max 120 ms\n\
         \x20 100 – 105  4  ████████████████████████████████\n\
         \x20 105 – 110  5  ████████████████████████████████████████\n\
         \x20 110 – 115  5  ████████████████████████████████████████\n\
         \x20 115 – 120  5  ████████████████████████████████████████\n\
         \x20 120 – 125  1  ████████\n\
         \n\
         cost $5.00\n"
    );
}

#[test]
fn the_ledger_tells_tokens_and_times_where_it_was_kept() {
    let (_simulator, place) = simulated();
    place.write_rows(5);
    place.run_rows(&["-m", "openai.gpt-5.4-mini", "--keep-temp"]).ok();
    let found = place.rowmill(&["results", "out.jsonl", "--json"]).ok().summary();
    assert_eq!((&found["rows"], &found["ok"]), (&json!(5), &json!(5)));
    assert_eq!(found["telemetry"]["milliseconds"]["count"], 5);
    assert_eq!(found["telemetry"]["input_tokens"]["count"], 5);
}

#[test]
fn a_table_is_recognised_by_the_envelopes_of_its_run() {
    let place = Place::new();
    place.write("out.csv", "id\n1\n");
    place.rowmill(&["results", "out.csv"]).code(1).says("is a table, and the envelopes of its run are gone");
    place.write(".out.csv.rowmill/envelopes.jsonl", OUTPUT);
    let shown = place.rowmill(&["results", "out.csv"]).ok().stdout;
    assert!(shown.starts_with("out.csv: 5 rows: 3 ok, 2 failed\n"), "{shown}");
}

#[test]
fn what_is_no_output_of_a_run_is_refused() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"n\":1}\n");
    place.rowmill(&["results", "rows.jsonl"]).code(1).says("line 1 of `rows.jsonl` is not an envelope");
    place.rowmill(&["results", "none.jsonl"]).code(1).says("output file not found: `none.jsonl`");
}

#[test]
fn two_runs_are_compared_row_by_row() {
    let place = Place::new();
    place.write("new.jsonl", OUTPUT);
    let old = OUTPUT
        .replace("\"label\":\"bad\",\"score\":1,\"why\":\"y\"", "\"score\":2,\"label\":\"good\"")
        .replace("\"label\":\"good\",\"score\":0.5,\"why\":\"x\"", "\"why\":\"x\",\"score\":0.5,\"label\":\"good\"")
        .replace(
            r#"{"id":"d","row_number":4,"ok":true,"result":{"label":"good","score":-3,"why":null},"error":null}"#,
            r#"{"id":"d","row_number":4,"ok":false,"result":null,"error":{"type":"Timeout","message":"x"}}"#,
        );
    let more = r#"{"id":"f","row_number":9,"ok":true,"result":1,"error":null}"#;
    place.write("old.jsonl", format!("{old}{more}\n"));
    let message = "here:  new.jsonl\n\
                there: old.jsonl\n\
                the runs differ\n\
                \n\
                \x20 same result            1\n\
                \x20 failed in both         2\n\
                \x20 different result       1\n\
                \x20 ok here, failed there  1\n\
                \x20 only there             1\n\
                \n\
                fields with different values\n\
                \x20 label  1\n\
                \x20 score  1\n\
                \x20 why    1\n\
                \n\
                row 2, id b\n\
                \x20 label  here   \"bad\"\n\
                \x20        there  \"good\"\n\
                \x20 score  here   1\n\
                \x20        there  2\n\
                \x20 why    here   \"y\"\n\
                \x20        there  —\n\
                \n\
                row 4, id d\n\
                \x20 error  here   —\n\
                \x20        there  \"Timeout\"\n";
    assert_eq!(place.rowmill(&["results", "new.jsonl", "--diff", "old.jsonl"]).code(3).stdout, message);
    // In another order, and with other numbers, they are found by their ids.
    let mut lines: Vec<String> = format!("{old}{more}").lines().map(str::to_owned).collect();
    lines.reverse();
    place.write("old.jsonl", lines.join("\n").replace("\"row_number\":4", "\"row_number\":7"));
    assert_eq!(place.rowmill(&["results", "new.jsonl", "--diff", "old.jsonl"]).code(3).stdout, message);
    let same = place.rowmill(&["results", "new.jsonl", "--diff", "new.jsonl"]).ok().stdout;
    assert_eq!(
        same,
        "here:  new.jsonl\nthere: new.jsonl\nall rows are identical\n\n  same result     3\n  failed in both  2\n"
    );
}

#[test]
fn rows_that_moved_are_no_difference() {
    let place = Place::new();
    let line = |id: &str, number: u64| {
        format!(
            "{{\"id\":\"{id}\",\"row_number\":{number},\"ok\":true,\"result\":\"r-{id}\",\"error\":null}}\n"
        )
    };
    place.write("here.jsonl", line("a", 1) + &line("b", 2));
    place.write("there.jsonl", line("b", 7) + &line("a", 8) + &line("c", 9));
    let diff = place.rowmill(&["results", "here.jsonl", "--diff", "there.jsonl", "--json"]).code(3).summary();
    assert_eq!((&diff["same"], &diff["only_here"], &diff["only_there"]), (&json!(2), &json!(0), &json!(1)));
    // A row that failed and was retried counts with its final outcome.
    let failed = "{\"id\":\"a\",\"row_number\":1,\"ok\":false,\"result\":null,\"error\":{\"type\":\"Timeout\",\"message\":\"\"}}\n";
    place.write("twice.jsonl", format!("{failed}{}{}", line("b", 2), line("a", 1)));
    let diff = place.rowmill(&["results", "twice.jsonl", "--diff", "here.jsonl", "--json"]).ok().summary();
    assert_eq!(diff["same"], 2);
    let shown = place.rowmill(&["results", "twice.jsonl"]).ok().stdout;
    assert!(shown.contains("1 row appears more than once: the run is unfinished"), "{shown}");
}
