//! Resuming an earlier run: what is skipped, what is sent again, what is repaired and what is rejected.

use std::collections::{BTreeMap, BTreeSet};

use crate::faults_support::{Home, Run, assert_all_ok, attempts};
use rowmill_testkit::{FaultTrigger, SimulatedFault, Simulator, SimulatorScript};

/// Prompts whose rows fail in their first run and succeed afterwards.
fn ten_rows_two_of_which_fail_once() -> Home {
    let prompts = (1..=10).map(|number| match number {
        3 | 7 => format!("row {number} [[400x1]]"),
        _ => format!("row {number}"),
    });
    Home::with_prompts(prompts)
}

#[test]
fn only_failed_rows_are_tried_again_and_take_their_place_in_input_order() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = ten_rows_two_of_which_fail_once();
    let files = ["--error-output", "errors.jsonl", "--telemetry-output", "telemetry.jsonl"];
    home.run().on(&simulator).args(&files).ends_with(3).says(&["`--resume` to retry the failed rows"]);
    assert_eq!(home.json_lines("errors.jsonl").len(), 2);
    assert_eq!(simulator.stats().requests, 10);

    let ended = home.run().on(&simulator).args(&files).args(&["--resume", "--final-summary"]).ends_with(0);
    ended.resumed(8, 2, 0);
    assert_eq!(ended.summary()["skipped_rows"], 8);
    assert_eq!(ended.summary()["processed_rows"], 2);
    assert_all_ok(&home.envelopes(), 10);
    assert_eq!(simulator.stats().requests, 12);
    let answers: BTreeMap<String, u64> = simulator.stats().answers_by_prompt;
    assert!(answers.len() == 10 && answers.values().all(|&count| count == 1), "{answers:?}");
    assert_eq!(home.read("errors.jsonl"), "", "no failure is left");
    // Telemetry reports every attempt that was made, so rows that were attempted twice have two lines.
    let telemetry = home.json_lines("telemetry.jsonl");
    assert_eq!(telemetry.len(), 12);
    assert_eq!(telemetry.iter().filter(|line| line["ok"] == true).count(), 10);
    assert_eq!(telemetry.iter().map(attempts).sum::<usize>(), 12);
    assert_eq!(home.names(), ["errors.jsonl", "in.jsonl", "out.jsonl", "telemetry.jsonl"]);
}

#[test]
fn errors_that_are_left_after_a_resume_are_in_the_error_file_once() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400]]", "c [[400x1]]", "d"]);
    let files = ["--error-output", "errors.jsonl"];
    home.run().on(&simulator).args(&files).ends_with(3);
    home.run().on(&simulator).args(&files).args(&["--resume"]).ends_with(3).resumed(2, 2, 0);
    let envelopes = home.envelopes();
    assert_eq!(
        envelopes.iter().map(|line| line["ok"] == true).collect::<Vec<_>>(),
        [true, false, true, true]
    );
    assert_eq!(home.json_lines("errors.jsonl"), [envelopes[1].clone()]);
}

#[test]
fn a_resume_with_nothing_to_do_sends_nothing_and_changes_nothing() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(20);
    home.run().on(&simulator).ends_with(0);
    let before = home.read("out.jsonl");
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(20, 0, 0);
    assert_eq!(home.read("out.jsonl"), before);
    assert_eq!(simulator.stats().requests, 20);
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl"]);
}

#[test]
fn a_torn_line_a_missing_newline_and_blank_lines_are_mended() {
    type Damage = fn(&str) -> String;
    let damages: [(&str, Damage, usize); 5] = [
        ("torn last line", |text| text.get(..text.len() - 20).unwrap().to_owned(), 1),
        ("missing newline", |text| text.trim_end().to_owned(), 0),
        ("blank lines", |text| text.replace('\n', "\n\n  \n"), 0),
        ("blank lines at the end", |text| format!("{text}\n\n"), 0),
        (
            "a torn line after a missing row",
            |text| format!("{}{{\"id\":4", text.get(..text.len() / 2).unwrap()),
            3,
        ),
    ];
    for (what, damage, lost) in damages {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::with_rows(5);
        home.run().on(&simulator).ends_with(0);
        let whole = home.read("out.jsonl");
        home.write("out.jsonl", &damage(&whole));
        home.run().on(&simulator).args(&["--resume"]).ends_with(0);
        assert_all_ok(&home.envelopes(), 5);
        assert_eq!(simulator.stats().requests, 5 + lost as u64, "{what}");
    }
}

#[test]
fn a_foreign_line_in_the_middle_is_refused_and_nothing_is_changed() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = ten_rows_two_of_which_fail_once();
    home.run().on(&simulator).ends_with(3);
    let lines: Vec<String> = home.read("out.jsonl").lines().map(str::to_owned).collect();
    for foreign in ["my notes", "{\"id\":1}", "[1,2]"] {
        let text = format!("{}\n{foreign}\n{}\n", lines[0], lines[1..].join("\n"));
        home.write("out.jsonl", &text);
        let ended = home.run().on(&simulator).args(&["--resume"]).ends_with(1);
        ended.says(&["error[RM1305]: line 2 of the existing output", "help: correct or remove the line"]);
        assert_eq!(home.read("out.jsonl"), text);
    }
    assert_eq!(simulator.stats().requests, 10);
}

#[test]
fn an_output_that_was_deleted_is_made_again_from_the_ledger() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(6));
    let home = Home::with_rows(10);
    let running = home.run().on(&simulator).args(&["--parallel", "2"]).start();
    simulator.wait_until_blocking(|stats| stats.requests == 8);
    running.kill();
    home.remove("out.jsonl");
    simulator.release();
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(6, 0, 2);
    assert_all_ok(&home.envelopes(), 10);
    assert_eq!(simulator.stats().requests, 12);
}

#[test]
fn without_its_ledger_a_run_goes_on_from_the_output_with_a_warning() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = ten_rows_two_of_which_fail_once();
    home.run().on(&simulator).ends_with(3);
    home.remove(".out.jsonl.rowmill");
    let ended = home.run().on(&simulator).args(&["--resume"]).ends_with(0);
    ended.resumed(8, 2, 0).says(&["warning: the earlier run's work folder is gone"]);
    assert_all_ok(&home.envelopes(), 10);
    assert_eq!(simulator.stats().requests, 12);
}

/// The settings of a run that these tests change.
struct Settings {
    input: &'static str,
    model: &'static str,
    prompt: &'static str,
}

const SETTINGS: Settings = Settings { input: "in.jsonl", model: "generic.m", prompt: "{{p}}" };

fn run_with(home: &Home, simulator: &Simulator, settings: &Settings) -> Run {
    let Settings { input, model, prompt } = settings;
    home.run_with(&["-i", input, "-o", "out.jsonl", "-p", prompt]).model(simulator, model).args(&[
        "--instruction",
        "instruction.md",
        "--json-schema",
        "schema.json",
    ])
}

#[test]
fn a_changed_setting_is_refused_by_name_and_accepted_when_the_user_says_so() {
    type Change = fn(&Home) -> Settings;
    let changes: [(&str, Change); 6] = [
        ("\n  model: `generic.m` -> `generic.other`\n", |_| Settings { model: "generic.other", ..SETTINGS }),
        ("\n    - {{p}}\n    + Say {{p}}\n", |_| Settings { prompt: "Say {{p}}", ..SETTINGS }),
        ("instruction:\n    - Be kind.\n    + Be short.\n", |home| {
            home.write("instruction.md", "Be short.");
            SETTINGS
        }),
        ("\n    + {\"type\":\"object\",\"properties\":{\"b\":", |home| {
            home.write("schema.json", r#"{"type":"object","properties":{"b":{"type":"string"}}}"#);
            SETTINGS
        }),
        ("content of the input: ", |home| {
            home.append("in.jsonl", "{\"p\":\"row 11\"}\n");
            SETTINGS
        }),
        ("/other.jsonl`\n", |home| {
            home.write("other.jsonl", &(home.read("in.jsonl") + "{\"p\":\"row 11\"}\n"));
            Settings { input: "other.jsonl", ..SETTINGS }
        }),
    ];
    for (difference, change) in changes {
        let refused = SimulatedFault::from_status(400);
        let script = SimulatorScript::new()
            .fault(FaultTrigger::Nth(3), refused.clone())
            .fault(FaultTrigger::Nth(7), refused);
        let simulator = Simulator::start_blocking(script);
        let home = Home::with_rows(10);
        home.write("instruction.md", "Be kind.");
        home.write("schema.json", r#"{"type":"object","properties":{"a":{"type":"string"}}}"#);
        run_with(&home, &simulator, &SETTINGS).ends_with(3);
        let before = home.read("out.jsonl");

        let changed = change(&home);
        let ended = run_with(&home, &simulator, &changed).args(&["--resume"]).ends_with(1);
        ended.says(&[
            "error[RM1306]",
            difference,
            "help: add `--accept-changes` to continue: rows that are ok are kept",
        ]);
        assert_eq!((home.read("out.jsonl"), simulator.stats().requests), (before, 10), "{difference}");

        let args = ["--resume", "--accept-changes"];
        run_with(&home, &simulator, &changed).args(&args).ends_with(0).resumed(8, 2, 0);
        assert_all_ok(&home.envelopes(), home.read(changed.input).lines().count());
    }
}

/// Sends the three rows of a folder, is killed while nothing is answered, and gives the keys of the requests.
fn keys_until_killed(home: &Home, model: &str, args: &[&str]) -> BTreeSet<String> {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let run = home.run_with(&[&["-i", "in.jsonl", "-o", "out.jsonl", "--parallel", "3"], args].concat());
    let running = run.model(&simulator, model).start();
    simulator.wait_until_blocking(|stats| stats.requests == 3);
    running.kill();
    let requests = simulator.requests();
    requests.iter().map(|request| request.header("idempotency-key").unwrap().to_owned()).collect()
}

#[test]
fn a_request_has_the_same_key_after_every_kill() {
    let home = Home::with_rows(3);
    let first = keys_until_killed(&home, "openai.m", &[]);
    assert_eq!(first.len(), 3);
    for _ in 0..2 {
        assert_eq!(keys_until_killed(&home, "openai.m", &["--resume"]), first);
    }
}

#[test]
fn no_key_names_two_different_requests_although_settings_change_between_kills() {
    let home = Home::with_rows(3);
    home.write("instruction.md", "Be kind.");
    home.write("schema.json", r#"{"type":"object","properties":{"a":{"type":"string"}}}"#);
    let mut all = keys_until_killed(&home, "openai.m", &[]);
    for (model, args) in [
        ("openai.other", &[][..]),
        ("openai.m?temperature=0.5", &[]),
        ("openai.m", &["--instruction", "instruction.md"]),
        ("openai.m", &["--json-schema", "schema.json"]),
        ("openai.m", &["-p", "Say {{p}}"]),
    ] {
        let keys = keys_until_killed(&home, model, &[&["--resume", "--accept-changes"], args].concat());
        assert!(keys.len() == 3 && keys.is_disjoint(&all), "{model} {args:?}: {keys:?} {all:?}");
        all.extend(keys);
    }
}

/// What a run says is to be done next, up to the end of the line.
fn advice(text: &str) -> &str {
    text.split("next:").nth(1).unwrap().lines().next().unwrap()
}

#[test]
fn a_corrected_template_is_taken_for_the_failed_rows_as_the_advice_says() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", "{\"reveiw\":\"good\"}\n{\"review\":\"bad\"}\n{\"review\":\"so so\"}\n");
    let prompt =
        |field: &str| format!("Be fair.\nClassify {{{{{field}}}}} with secret-token-value\nThank you.\n");
    let run = |field: &str| {
        let io = home.run_with(&["-i", "in.jsonl", "-o", "out.jsonl", "-p", &prompt(field)]);
        io.on(&simulator).env("MY_TOKEN", "secret-token-value")
    };
    let ended = run("reveiw").ends_with(3);
    assert!(advice(&ended.err).contains("`--resume --accept-changes`"), "{}", ended.err);
    let first = home.envelopes()[0].clone();
    assert_eq!(first["ok"], true);

    let refused = run("review").args(&["--resume"]).ends_with(1);
    let shown = "  prompt:\n    - Classify {{reveiw}} with ***\n    + Classify {{review}} with ***\n";
    refused.says(&["error[RM1306]", shown, "help: add `--accept-changes`"]);
    let header = home.read(".out.jsonl.rowmill/run.json");
    assert!(header.contains("{{reveiw}}") && !header.contains("secret-token-value"), "{header}");

    let ended = run("review").args(&["--resume", "--accept-changes"]).ends_with(0);
    ended
        .resumed(1, 2, 0)
        .says(&["continuing with changed settings; finished rows are kept as they are", shown]);
    assert_all_ok(&home.envelopes(), 3);
    assert_eq!(home.envelopes()[0], first, "it is not asked again");
    assert_eq!(simulator.stats().requests, 3);
}

#[test]
fn as_long_as_no_row_is_ok_a_resume_takes_other_words_and_models_without_being_asked_to() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().model("m"));
    let home = Home::with_rows(3);
    let stopped = home.run().model(&simulator, "generic.nope").ends_with(1);
    stopped
        .says(&["error[RM2002]", "help: correct `--model` and run again with `--resume --accept-changes`"]);
    let ended = home.run().model(&simulator, "generic.m").args(&["--resume"]).ends_with(0);
    ended.says(&["continuing with changed settings", "  model: `generic.nope` -> `generic.m`"]);
    assert_all_ok(&home.envelopes(), 3);
    // Different rows are another matter: results of the old ones would stay in the output.
    home.write("in.jsonl", "{\"p\":\"[[400]]\"}\n");
    let again = ["-i", "in.jsonl", "-o", "new.jsonl", "-p", "{{p}}"];
    home.run_with(&again).model(&simulator, "generic.m").ends_with(3);
    home.write("in.jsonl", "{\"p\":\"[[400]]\"}\n{\"p\":2}\n");
    let refused = home.run_with(&again).model(&simulator, "generic.m").args(&["--resume"]).ends_with(1);
    refused.says(&["error[RM1306]", "content of the input: 16 bytes -> 24 bytes"]);
}

#[test]
fn a_resume_counts_only_the_rows_that_are_selected() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = ten_rows_two_of_which_fail_once();
    home.run().on(&simulator).args(&["--limit", "9"]).ends_with(3);
    let failed: Vec<u64> = home
        .envelopes()
        .iter()
        .filter(|envelope| envelope["ok"] == false)
        .map(|envelope| envelope["row_number"].as_u64().unwrap())
        .collect();
    let offset = (failed[0] - 1).to_string();
    let ended =
        home.run().on(&simulator).args(&["--resume", "--offset", &offset, "--limit", "1"]).ends_with(0);
    ended.resumed(0, 1, 0);
    let ended = home.run().on(&simulator).args(&["--resume", "--where", "1 = 0"]).ends_with(0);
    ended.resumed(0, 0, 0);
    assert!(!ended.err.contains("nothing to resume"), "{}", ended.err);
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(8, 1, 0);
    assert_all_ok(&home.envelopes(), 10);
}
