//! Tools that fail in every way: the model receives the error, and no row disturbs another.

use std::fs;
use std::path::Path;

use crate::faults_support::{Home, assert_all_ok, attempts};
use rowmill_testkit::{
    RecordedRole, SimulatedAnswer, SimulatedCallView, SimulatedFault, Simulator, SimulatorScript,
};
use serde_json::{Value, json};

const ROWS: usize = 300;
/// The maximum size in bytes of a result that a model receives.
const LIMIT: usize = 2_000;

const CARD: &str = "---
servers: [shared, slow, own]
function_tools: [tools.py:double, tools.py:boom, tools.py:sleepy, tools.py:huge, tools.py:raw, tools.py:die]
tool_policy: {sleepy: {timeout: 0.5}}
---
You work.";

const TOOLS: &str = r#"
import os, time

def double(n: int) -> int:
    return 2 * n

def boom(label: str) -> str:
    raise ValueError(f"no luck with {label}")

def sleepy(label: str) -> str:
    time.sleep(3600)

def huge(label: str) -> str:
    return label + "y" * 10_000_000

def raw(label: str) -> bytes:
    return bytes(range(256))

def die(label: str) -> str:
    os._exit(3)
"#;

/// The tool call of a kind of row, and what the model receives for it.
struct Kind {
    call: fn(usize) -> (&'static str, Value),
    /// Texts in the result.
    expected: fn(usize) -> Vec<String>,
    /// Whether telemetry counts the call, and whether as a success.
    counts: Option<bool>,
}

const HEALTHY: [Kind; 2] = [
    Kind {
        call: |row| ("shared__echo", json!({"text": format!("own {row}")})),
        expected: |row| vec![format!("\"own {row}\"")],
        counts: Some(true),
    },
    Kind {
        call: |row| ("double", json!({"n": row})),
        expected: |row| vec![format!("\"{}\"", 2 * row)],
        counts: Some(true),
    },
];

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn label(row: usize) -> Value {
    json!({"label": format!("l{row}")})
}

const BROKEN: [Kind; 17] = [
    Kind {
        call: |row| ("shared__fail", json!({"message": format!("bad day {row}")})),
        expected: |row| vec![format!("bad day {row}")],
        counts: Some(false),
    },
    Kind {
        call: |row| ("shared__refuse", json!({"message": format!("refused {row}")})),
        expected: |row| vec![format!("refused {row}")],
        counts: Some(false),
    },
    Kind {
        call: |row| ("slow__hang", label(row)),
        expected: |_| texts(["`slow` did not answer within 500 ms", "whether it took effect is unknown"]),
        counts: Some(false),
    },
    Kind {
        call: |_| ("shared__big", json!({"bytes": 10_485_760})),
        expected: |_| texts(["xxxx", "[cut: the first 2000 of 10485760 bytes]"]),
        counts: Some(true),
    },
    Kind {
        call: |_| ("shared__binary", json!({})),
        expected: |_| texts(["application/octet-stream, 256 bytes, which this model cannot be shown"]),
        counts: Some(true),
    },
    Kind {
        call: |_| ("shared__structured", json!({})),
        expected: |_| texts(["{\\\"answer\\\":42}"]),
        counts: Some(true),
    },
    Kind { call: |_| ("shared__odd", json!({})), expected: |_| texts(["strange"]), counts: Some(true) },
    Kind {
        call: |row| ("own__crash", label(row)),
        expected: |_| texts(["the tool failed", "whether it took effect is unknown"]),
        counts: Some(false),
    },
    Kind {
        call: |row| ("boom", label(row)),
        expected: |row| vec![format!("ValueError: no luck with l{row}")],
        counts: Some(false),
    },
    Kind {
        call: |row| ("sleepy", label(row)),
        expected: |_| texts(["no answer within 0.5 s", "whether it took effect is unknown"]),
        counts: Some(false),
    },
    Kind {
        call: |row| ("huge", label(row)),
        expected: |row| vec![format!("l{row}yyyy"), "[cut: the first 2000 of 100000".to_owned()],
        counts: Some(true),
    },
    Kind {
        call: |row| ("raw", label(row)),
        expected: |_| texts(["256 bytes, which this model cannot be shown"]),
        counts: Some(true),
    },
    Kind {
        call: |row| ("die", label(row)),
        expected: |_| texts(["the tool failed", "whether it took effect is unknown"]),
        counts: Some(false),
    },
    Kind {
        call: |_| ("double", json!({"n": "many"})),
        expected: |_| texts(["the arguments of `double` do not satisfy its schema"]),
        counts: None,
    },
    Kind {
        call: |_| ("double", json!("no object")),
        expected: |_| texts(["the arguments of `double` must be a JSON object"]),
        counts: None,
    },
    Kind {
        call: |_| ("double", Value::Null),
        expected: |_| texts(["the arguments of `double` are not JSON"]),
        counts: None,
    },
    Kind {
        call: |_| ("nonsense", json!({})),
        expected: |_| texts(["there is no tool `nonsense`; there are: ", "shared__echo", "double"]),
        counts: None,
    },
];

/// The kind of a row; every third row is a healthy one.
fn kind(row: usize) -> &'static Kind {
    if row.is_multiple_of(3) { &HEALTHY[row / 3 % 2] } else { &BROKEN[(row - row / 3) % BROKEN.len()] }
}

/// Calls the tool of the row, then answers with what it received.
fn reply(seen: &SimulatedCallView<'_>) -> SimulatedAnswer {
    let row = seen.prompt.split(' ').nth(1).unwrap().parse().unwrap();
    if seen.turn == 1 {
        let (name, arguments) = (kind(row).call)(row);
        return match arguments {
            Value::Null => {
                SimulatedAnswer::Fail(SimulatedFault::from_status(200).with_body(broken_call(name)))
            }
            arguments => {
                SimulatedAnswer::Calls { text: String::new(), calls: vec![(name.to_owned(), arguments)] }
            }
        };
    }
    let results = seen.messages.iter().filter(|message| message.role == RecordedRole::Tool);
    let reported: Vec<&str> =
        results.flat_map(|message| &message.answers).map(|answer| answer.text.as_str()).collect();
    assert!(reported.iter().all(|text| text.len() < 2 * LIMIT), "a result was not cut");
    SimulatedAnswer::Text(format!("row {row} was sent {}", json!(reported)))
}

/// An answer of the provider with arguments that are not valid JSON.
fn broken_call(name: &str) -> String {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{\"n\": "}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
        .to_string()
}

fn prepare(home: &Home) {
    let words = rowmill_testkit::mcp_server();
    let server = |name: &str, more: &str| {
        let counted = home.path(&format!("counted-{name}"));
        let args: Vec<&str> =
            words[1..].iter().map(String::as_str).chain(["--count", counted.to_str().unwrap()]).collect();
        format!("[mcp.servers.{name}]\ncommand = {:?}\nargs = {args:?}\n{more}\n", words[0])
    };
    let servers = [
        server("shared", ""),
        server("slow", "timeout = 0.5\ntools = [\"hang\"]"),
        server("own", "per_row = true\ntools = [\"crash\"]"),
    ];
    home.write("rowmill.toml", &servers.concat());
    home.write("worker.md", CARD);
    home.write("tools.py", TOOLS);
}

/// The processes that run in a folder or were started with a path in it.
fn processes(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()) {
        // A process may end while it is inspected.
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let works_there = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        if works_there || words.contains(folder.to_str().unwrap()) {
            found.push(format!("{}: {words}", process.display()));
        }
    }
    found
}

#[test]
fn tools_that_go_wrong_are_reported_to_the_model_and_disturb_no_other_row() {
    let simulator = Simulator::start_blocking(
        SimulatorScript::new().forget_prompts().keep_requests(0).answer_calls(reply),
    );
    let home = Home::with_rows(ROWS);
    prepare(&home);
    let limit = LIMIT.to_string();
    let ended = home
        .run()
        .on(&simulator)
        .env("PATH", env!("PATH"))
        .args(&["--agent-card", "worker.md", "--parallel", "32", "--telemetry-output", "telemetry.jsonl"])
        .args(&["--tool-result-limit", &limit])
        .ends_with(0);

    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, ROWS);
    let counted = |ok: bool| (1..=ROWS).filter(|row| kind(*row).counts == Some(ok)).count();
    let (failed, made) = (counted(false), counted(false) + counted(true));
    ended.says(&[&format!("tools:  {failed} of {made} tool calls failed")]);
    let mut wrong = Vec::new();
    for (row, envelope) in (1..).zip(&envelopes) {
        let result = envelope["result"].as_str().unwrap();
        assert!(result.starts_with(&format!("row {row} was sent [\"")), "{result}");
        let lacking = (kind(row).expected)(row).into_iter().filter(|text| !result.contains(text));
        wrong.extend(lacking.map(|text| format!("`{text}` is not in: {result}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for line in home.json_lines("telemetry.jsonl") {
        let row = line["row_number"].as_u64().unwrap() as usize;
        let called: Vec<bool> =
            line["tool_calls"].as_array().into_iter().flatten().map(|call| call["ok"] == true).collect();
        assert_eq!(called, kind(row).counts.into_iter().collect::<Vec<_>>(), "{line}");
        assert_eq!(attempts(&line), 2, "{line}");
    }
    for (name, tool) in [("slow", "slow__hang"), ("own", "own__crash")] {
        let mut labels: Vec<String> =
            home.read(&format!("counted-{name}")).lines().map(str::to_owned).collect();
        let rows = (1..=ROWS).filter(|row| (kind(*row).call)(*row).0 == tool);
        let mut expected: Vec<String> = rows.map(|row| format!("l{row}")).collect();
        labels.sort();
        expected.sort();
        assert_eq!(labels, expected, "what must not run twice ran once");
    }
    assert_eq!(simulator.stats().answers, 2 * ROWS as u64, "{}", ended.err);
    let folder = fs::canonicalize(home.path(".")).unwrap();
    assert_eq!(processes(&folder), Vec::<String>::new());
}
