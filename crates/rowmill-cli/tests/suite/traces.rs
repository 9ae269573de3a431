//! `--export-traces`: every row is accounted for, everything parses, and no key appears anywhere.

use std::collections::BTreeSet;
use std::fs;

use crate::faults_support::{Home, names};
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::Value;

/// The key of the provider, which prompts, ids and answers contain, too.
const KEY: &str = "sk-planted-4711-secret";

/// Checks every byte of the traces of a finished run; returns the manifest.
fn checked(home: &Home) -> Vec<Value> {
    let folder = home.path("traces");
    let manifest = home.json_lines("traces/manifest.jsonl");
    let message = |lines: &[Value]| -> Vec<(Value, Value)> {
        lines.iter().map(|line| (line["row_number"].clone(), line["ok"].clone())).collect()
    };
    assert_eq!(message(&manifest), message(&home.envelopes()), "one line per row, in input order");
    let mut expected = BTreeSet::from(["manifest.jsonl".to_owned(), "spans.jsonl".to_owned()]);
    for line in &manifest {
        let count = line["record_count"].as_u64().unwrap();
        match line["trace"].as_str() {
            None => assert_eq!(count, 0, "{line}"),
            Some(name) => {
                assert_eq!(home.json_lines(&format!("traces/{name}")).len() as u64, count, "{line}");
                expected.insert(name.to_owned());
            }
        }
        assert_eq!(line["error"].is_object(), line["ok"] == false, "{line}");
    }
    assert_eq!(BTreeSet::from_iter(names(&folder)), expected);
    let spans = home.json_lines("traces/spans.jsonl");
    assert_eq!(spans.len(), manifest.len());
    let ids: BTreeSet<_> = spans.iter().map(|line| root(line)["traceId"].to_string()).collect();
    assert_eq!(ids.len(), manifest.len());
    for name in names(&folder) {
        assert!(!name.contains(KEY), "{name}");
        assert!(!fs::read_to_string(folder.join(&name)).unwrap().contains(KEY), "{name}");
    }
    manifest
}

fn root(line: &Value) -> &Value {
    &line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
}

/// Rows that are answered, refused, cannot be sent and cannot be read; all contain the key.
fn write_rows(home: &Home, count: usize) {
    let rows: String = (1..=count)
        .map(|number| match number % 50 {
            7 => format!("{{\"id\":\"r{number}\",\"p\":\"{KEY} [[400]] {number}\"}}\n"),
            8 => format!("{{\"id\":\"r{number}\",\"q\":\"{KEY}\"}}\n"),
            9 => format!("{{\"id\":\"{KEY} {number}\",\"p\":\"ask {number}\"}}\n"),
            10 => format!("{{\"id\":{number},{KEY}\n"),
            _ => format!("{{\"id\":\"r{number}\",\"p\":\"say {KEY} {number}\"}}\n"),
        })
        .collect();
    home.write("in.jsonl", &rows);
}

const FLAGS: &[&str] = &["--id-field", "id", "--export-traces", "traces", "--parallel", "64"];

#[test]
fn a_thousand_parallel_rows_are_accounted_for_and_the_key_is_nowhere() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    write_rows(&home, 1_000);
    home.run().on(&simulator).key(KEY).args(FLAGS).ends_with(3);
    let manifest = checked(&home);
    assert_eq!(manifest.len(), 1_000);
    assert!(!fs::read_to_string(home.path("out.jsonl")).unwrap().contains(KEY));
    assert_eq!((&home.envelopes()[8]["id"], &manifest[8]["id"]), (&"*** 9#9".into(), &"*** 9#9".into()));
    let unread = &manifest[9]["error"]["type"];
    assert_eq!(
        (unread, &manifest[7]["error"]["type"]),
        (&"InvalidJSON".into(), &"MissingTemplateField".into())
    );
}

#[test]
fn a_thousand_agent_rows_are_reported_with_their_tool_calls_and_without_the_key() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("clerk.md", "---\ndescription: Looks things up.\n---\nLook it up.\n");
    home.write_prompts((1..=1_000).map(|number| format!("***CALL_TOOL find {{\"q\": \"{KEY} {number}\"}}")));
    let stub = format!("find=text:found {KEY}");
    let flags =
        ["--export-traces", "traces", "--parallel", "64", "--agent-card", "clerk.md", "--stub", &stub];
    home.run().on(&simulator).key(KEY).args(&flags).ends_with(0);
    let manifest = checked(&home);
    assert_eq!(manifest.len(), 1_000);
    for (number, line) in (1..).zip(&manifest) {
        assert_eq!(line["agent"], "clerk");
        let session = home.json_lines(&format!("traces/{}", line["trace"].as_str().unwrap()));
        let payloads = |kind: &str| -> Vec<&Value> {
            session
                .iter()
                .map(|record| &record["payload"])
                .filter(|message| message["type"] == kind)
                .collect()
        };
        let (calls, results) = (payloads("function_call"), payloads("function_call_output"));
        assert_eq!((calls.len(), results.len(), payloads("token_count").len()), (1, 1, 2), "{number}");
        let arguments: Value = serde_json::from_str(calls[0]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments["q"], format!("*** {number}"));
        assert_eq!(results[0]["output"], "found ***");
    }
}

#[test]
fn the_trace_of_an_answered_row_holds_prompt_answer_and_tokens() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    write_rows(&home, 60);
    home.write("instruction.md", &format!("Never say {KEY}."));
    let args = [FLAGS, &["--instruction", "instruction.md"]].concat();
    home.run().on(&simulator).key(KEY).args(&args).ends_with(3);
    let manifest = checked(&home);
    assert_eq!(manifest[7]["trace"], Value::Null, "no call was made");
    assert!(manifest[6]["trace"].is_string(), "a refused row was asked");
    let session = home.json_lines(&format!("traces/{}", manifest[0]["trace"].as_str().unwrap()));
    let message: Vec<_> = session
        .iter()
        .map(|record| match record["payload"]["type"].as_str() {
            Some(kind) => kind.to_owned(),
            None => record["type"].as_str().unwrap().to_owned(),
        })
        .collect();
    let expected = [
        "session_meta",
        "message",
        "task_started",
        "user_message",
        "turn_context",
        "message",
        "message",
        "token_count",
        "task_complete",
    ];
    assert_eq!(message, expected);
    assert_eq!(session[1]["payload"]["content"][0]["text"], "Never say ***.");
    assert_eq!(session[3]["payload"]["message"], "say *** 1");
    assert_eq!(session[6]["payload"]["content"][0]["text"], "answer to: say *** 1");
    let chat = &home.json_lines("traces/spans.jsonl")[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][2];
    assert_eq!(chat["name"], "chat generic.m");
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_one_line_per_row() {
    let home = Home::new();
    home.write_prompts((1..=300).map(|number| format!("ask {number}")));
    let flags = ["--export-traces", "traces", "--parallel", "16"];
    for (life, held) in [20, 90, 60].into_iter().enumerate() {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(held));
        let resume: &[&str] = if life == 0 { &[] } else { &["--resume"] };
        let running = home.run().on(&simulator).args(&flags).args(resume).start();
        simulator.wait_until_blocking(|stats| stats.requests > held);
        running.kill();
    }
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    home.run().on(&simulator).args(&flags).args(&["--resume"]).ends_with(0);
    assert_eq!(checked(&home).len(), 300);
}

#[test]
fn failed_rows_get_their_newest_line_and_the_traces_of_another_run_are_left_alone() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400x1]]", "c"]);
    let traced = ["--export-traces", "traces"];
    home.run().on(&simulator).args(&traced).ends_with(3);
    let before = checked(&home);
    assert_eq!(before[1]["ok"], false);
    home.run().on(&simulator).args(&traced).args(&["--resume"]).ends_with(0);
    let after = checked(&home);
    assert_eq!((&after[0], &after[2], &after[1]["ok"]), (&before[0], &before[2], &true.into()));

    let other = |flags: &[&str]| {
        home.run_with(&["-i", "in.jsonl", "-o", "other.jsonl"]).on(&simulator).args(&traced).args(flags)
    };
    other(&[]).ends_with(1).says(&["error[RM1301]: the folder `traces` has the traces", "`--overwrite`"]);
    other(&["--resume"]).ends_with(1).says(&["error[RM1306]: the traces in `traces` belong to another run"]);
    assert_eq!(checked(&home), after);
    other(&["--overwrite"]).ends_with(0);
    assert_ne!(home.json_lines("traces/manifest.jsonl")[0]["run_id"], after[0]["run_id"]);
}

#[test]
fn a_folder_that_cannot_be_used_is_reported_before_anything_is_sent() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(2);
    home.write("file", "x");
    for (folder, output, message) in [
        ("file", "out.jsonl", "error[RM1302]: `file`, given to `--export-traces`, is not a folder"),
        ("file/such", "out.jsonl", "error[RM1302]: `file/such`, given to `--export-traces`, leads through"),
        (
            "traces",
            "traces/manifest.jsonl",
            "error[RM1303]: `--export-traces` must not point to the same file as `--output`",
        ),
        (
            ".",
            "./spans.jsonl",
            "error[RM1303]: `--export-traces` must not point to the same file as `--output`",
        ),
    ] {
        let args = ["-i", "in.jsonl", "-o", output, "--export-traces", folder];
        home.run_with(&args).on(&simulator).ends_with(1).says(&[message]);
    }
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(home.names(), ["file", "in.jsonl"]);
}
