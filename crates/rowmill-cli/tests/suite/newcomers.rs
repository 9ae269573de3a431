//! Situations of users who know other tools, misspell a name, or come back to a run later.

use crate::support::{KEY, Place, finish, scripted, simulated};
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::{Value, json};

#[test]
fn a_flag_of_another_tool_gets_the_one_that_does_the_same_here() {
    let place = Place::new();
    for (flag, tip) in [
        ("--schema", "tip: use `--json-schema` instead\n"),
        ("--input-file", "tip: use `--input` instead\n"),
        ("--out=x.jsonl", "tip: use `--output` instead\n"),
        ("--concurrency", "tip: use `--parallel` instead\n"),
        ("--workers", "tip: use `--parallel` instead\n"),
        ("--dry-run", "tip: `rowmill plan` with the same flags estimates rows, tokens and cost"),
        ("--temperature", "tip: model settings are part of the model string, such as `--model 'openai."),
    ] {
        let ended = place.run(&["-i", "rows.jsonl", flag]).code(2).says(tip);
        assert!(!ended.stderr.contains("a similar argument exists"), "{}", ended.stderr);
    }
    place.run(&["--promt", "x"]).code(2).says("a similar argument exists: '--prompt'");
    let ended = place.rowmill(&["head", "--schema"]).code(2).says("unexpected argument '--schema'");
    assert!(!ended.stderr.contains("as a value"), "{}", ended.stderr);
    let ended = place.rowmill(&["head", "rows.jsonl", "--columns", "id"]).code(2);
    ended.says("tip: `--sql 'SELECT id, text FROM input'` shows only these columns\n");
}

#[test]
fn a_model_name_with_a_slip_is_asked_for_as_it_is_and_the_nearest_are_named() {
    let (simulator, place) = simulated();
    place.write_rows(2);
    let warning = "warning: `openai.gpt-5.4-mni` is not a model that rowmill knows; it is sent as written; \
                   did you mean `openai.gpt-5.4-mini`?\n";
    place.run_rows(&["-m", "openai.gpt-5.4-mni"]).ok().says(warning);
    assert_eq!(simulator.stats().requests, 2);
    for model in ["openai.gpt-5.4-mini", "openai.quite-another-model", "generic.gpt-5.4-mni", "simulated"] {
        let mut place = Place::with(&simulator);
        place.set("GENERIC_BASE_URL", &format!("{}/v1", simulator.url()));
        place.write_rows(1);
        let ended = place.run_rows(&["-m", model]).ok();
        assert!(!ended.stderr.contains("did you mean"), "{model}: {}", ended.stderr);
    }
    place.run_rows(&["-m", "sonet", "--overwrite"]).code(1).says("did you mean `sonnet`?");
}

#[test]
fn failures_that_differ_in_ids_and_numbers_are_one_line_with_their_count() {
    let place = Place::new();
    let row = |n: usize| match n {
        1..=8 => format!("{{\"id\":\"r{n}\",\"t\":\"x\" {}\n", "!".repeat(n)),
        9 => "[1]\n".to_owned(),
        _ => format!("{{\"id\":\"r{n}\",\"t\":\"fine\"}}\n"),
    };
    place.write("rows.jsonl", (1..=20).map(row).collect::<String>());
    let ended = place.run_rows(&["-m", "passthrough", "-p", "{{t}}"]).code(3);
    let ended = ended.says("        InvalidJSON: 8 rows such as row 1: Line 1: ");
    assert_eq!(ended.stderr.matches("        Invalid").count(), 2, "{}", ended.stderr);
}

#[test]
fn a_run_that_is_still_going_is_reported_as_such_when_its_results_are_looked_at() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).hold_after(3));
    place.write_rows(5);
    let run = place.start_rows(&["-m", "openai.m", "-p", "{{n}}", "--parallel", "1"]);
    place.wait_for_lines("out.jsonl", 3);
    let shown = place.rowmill(&["results", "out.jsonl"]).ok().stdout;
    let talk = place.rowmill(&["head", "out.jsonl"]).ok().stderr;
    let json = place.rowmill(&["results", "out.jsonl", "--json"]).ok().summary();
    simulator.release();
    finish(run).ok();
    for text in [shown, talk] {
        assert!(text.contains("the run is still in progress, so rows are missing"), "{text}");
        assert!(!text.contains("--resume") && !text.contains("--overwrite"), "{text}");
    }
    assert_eq!(json["unfinished"], json!({ "missing": null, "running": true }));
}

#[test]
fn a_run_that_was_stopped_says_so_when_its_results_are_looked_at() {
    let (_simulator, place) = simulated();
    let row = |n: usize| format!("{{\"t\":\"row {n}{}\"}}\n", if n == 11 { " [[400]]" } else { "" });
    place.write("rows.jsonl", (1..=40).map(row).collect::<String>());
    let flags = ["-m", "openai.m", "-p", "{{t}}"];
    place.run_rows(&[&flags[..], &["--parallel", "1", "--max-errors", "1"]].concat()).code(4);
    let written = place.json("out.jsonl").len();
    let missing = format!("the run is unfinished: {} rows are missing;", 40 - written);
    let shown = place.rowmill(&["results", "out.jsonl"]).ok().stdout.replace("\n  ", " ");
    assert!(
        shown.contains(&missing) && shown.contains("run its command with `--resume` to continue"),
        "{shown}"
    );
    let whole: Value =
        serde_json::from_str(&place.rowmill(&["results", "out.jsonl", "--json"]).ok().stdout).unwrap();
    assert_eq!(whole["unfinished"], json!({ "missing": 40 - written, "running": false }));
    let talk = place.rowmill(&["head", "out.jsonl"]).ok().stderr.replace("\n  ", " ");
    assert!(talk.contains(&missing), "{talk}");

    // A run that reached its end with failed rows is finished.
    place.run_rows(&[&flags[..], &["--resume"]].concat()).code(3);
    let shown = place.rowmill(&["results", "out.jsonl"]).ok().stdout;
    assert!(shown.contains("40 rows: 39 ok, 1 failed") && !shown.contains("unfinished"), "{shown}");
    assert_eq!(place.rowmill(&["head", "out.jsonl"]).ok().stderr, "");
}

#[test]
fn a_column_of_the_template_without_any_value_is_warned_of_with_the_nearest_one() {
    let place = Place::new();
    let row = |n: usize, t: &str| format!("{{\"n\":{n},\"txt\":{t},\"text\":\"hello\",\"other\":\" \"}}\n");
    let flags = ["-m", "passthrough", "--overwrite", "-p"];
    place.write("rows.jsonl", (1..=30).map(|n| row(n, "null")).collect::<String>());
    place.run_rows(&[&flags[..], &["Say: {{txt}}"]].concat()).ok().says(
        "warning: the template names `{{txt}}`, which is empty in all of the first 20 rows; did you mean `text`?\n",
    );
    place
        .run_rows(&[&flags[..], &["Say: {{other}}{{n}}"]].concat())
        .ok()
        .says("`{{other}}`, which is empty in all of the first 20 rows; columns with values: `n`, `text`\n");
    let sometimes = |n: usize| row(n, if n == 15 { "\"a\"" } else { "\"\"" });
    place.write("rows.jsonl", (1..=30).map(sometimes).collect::<String>());
    let ended = place.run_rows(&[&flags[..], &["Say: {{txt}}"]].concat()).ok();
    assert!(!ended.stderr.contains("empty"), "{}", ended.stderr);
}

#[test]
fn a_plan_says_whether_the_budget_is_enough_and_for_how_many_rows() {
    let place = Place::new();
    place.write_rows(100);
    place.write("rowmill.toml", "[prices.\"openai.gpt-5.4-mini\"]\ninput = 0.0\noutput = 10.0\n");
    let plan = |budget: &[&str]| {
        let flags = ["plan", "-i", "rows.jsonl", "-m", "openai.gpt-5.4-mini?max_tokens=1000", "-p", "{{n}}"];
        place.rowmill(&[&flags[..], budget].concat()).ok().stdout
    };
    // At most a cent for each row.
    assert!(!plan(&[]).contains("budget"));
    assert!(plan(&["--max-cost", "2"]).contains("\nbudget: enough for all 100 rows\n"));
    let shown = plan(&["--max-cost", "0.25"]);
    assert!(
        shown.contains("\nbudget: enough for 25 of 100 rows if all answers have the maximum length"),
        "{shown}"
    );
    let whole: Value = serde_json::from_str(&plan(&["--max-cost", "0.25", "--json"])).unwrap();
    assert_eq!(whole["budget"], json!({ "enough": false, "certain": false, "rows": 25 }));
    assert!(plan(&["--max-tokens", "50500"]).contains("\nbudget: enough for "));
}

#[test]
fn a_plan_of_a_resume_takes_what_was_spent_from_the_budget() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().key(KEY));
    let place = Place::with(&simulator);
    place.write_rows(100);
    place.write("rowmill.toml", "[prices.\"openai.gpt-5.4-mini\"]\ninput = 0.0\noutput = 10000.0\n");
    let flags =
        ["-i", "rows.jsonl", "-o", "out.jsonl", "-m", "openai.gpt-5.4-mini?max_tokens=1000", "-p", "{{n}}"];
    place.rowmill(&[&["run"], &flags[..], &["--limit", "10"]].concat()).ok();
    let plan = |budget: &str| {
        let resume = ["--resume", "--max-cost", budget];
        place.rowmill(&[&["plan"], &flags[..], &resume].concat()).ok().stdout
    };
    let whole = place.rowmill(&[&["plan", "--json"], &flags[..], &["--resume"]].concat()).ok().stdout;
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let (spent, needed) = (&whole["spent_before"]["cost"], &whole["cost_usd"]["expected"]);
    let (spent, needed) = (spent.as_f64().unwrap(), needed.as_f64().unwrap());
    assert!(spent > 0.0 && needed > 0.0, "{whole}");
    // Enough for the remaining rows, if nothing had been spent.
    let shown = plan(&format!("{:.6}", needed + spent / 2.0));
    assert!(
        shown.contains("\nbudget: not enough; exhausted after about ") && shown.contains("already spent"),
        "{shown}"
    );
    assert!(plan(&format!("{:.6}", needed * 2.0 + spent)).contains("\nbudget: enough for all 100 rows"));
}

#[test]
fn a_resume_that_asks_for_a_table_reports_that_envelopes_are_there() {
    let place = Place::new();
    place.write_rows(5);
    let flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "-m", "simulated", "-p", "{{n}}"];
    place.rowmill(&[&["run"], &flags[..], &["--limit", "3"]].concat()).ok();
    let before = place.read("out.jsonl");
    let ended = place.rowmill(&[&["run"], &flags[..], &["--resume", "--flatten"]].concat()).code(1);
    ended.says("`out.jsonl` contains the envelopes of its run, not a table");
    assert_eq!(place.read("out.jsonl"), before);
}

#[test]
fn one_row_is_spoken_of_in_the_singular_wherever_rows_are_counted() {
    let place = Place::new();
    place.write_rows(1);
    let flags = ["-i", "rows.jsonl", "-m", "simulated", "-p", "{{n}}"];
    let head = place.rowmill(&["head", "rows.jsonl"]).ok().stdout;
    let plan = place.rowmill(&[&["plan"], &flags[..]].concat()).ok().stdout;
    place.rowmill(&[&["run"], &flags[..], &["-o", "out.jsonl"]].concat()).ok();
    let results = place.rowmill(&["results", "out.jsonl"]).ok().stdout;
    for (shown, expected) in [(head, "1 row, "), (plan, "1 row, 1 call\n"), (results, "1 row: 1 ok\n")] {
        assert!(shown.contains(expected) && !shown.contains("1 rows"), "{shown}");
    }
}

#[test]
fn the_usage_under_an_unknown_flag_is_that_of_the_command() {
    let place = Place::new();
    for (command, usage) in [
        (&["run", "--paralel", "4"][..], "Usage: rowmill run [OPTIONS] --input <INPUT>"),
        (&["run", "--concurrency", "4"], "Usage: rowmill run [OPTIONS] --input <INPUT>"),
        (&["results", "--jsn"], "Usage: rowmill results [OPTIONS] <OUTPUT>\n"),
        (&["card", "check", "--jsn"], "Usage: rowmill card check [OPTIONS] <CARD>...\n"),
        (&["--vers"], "Usage: rowmill <COMMAND>\n"),
    ] {
        place.rowmill(command).code(2).says(usage).says("For more information, try '--help'.");
    }
}
