//! Python functions as tools and hooks, and images that tools return.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::agents_support::{
    call_texts, results, row_error, ruled, run_cards, with_programs, write_cards, write_prompt,
};
use crate::faults_support::{Home, PROTOCOLS};
use crate::support::Place;
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::support;

const TOOLS: &str = r#"
from typing import Literal

def convert(amount: float, currency: Literal["EUR", "USD"] = "EUR") -> dict:
    """Converts an amount.

    Args:
        amount: How much.
        currency: Into what.
    """
    if amount < 0:
        raise ValueError("no debts")
    return {"amount": amount * 2, "currency": currency}

def picture() -> bytes:
    """Draws."""
    import base64
    return base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
"#;

/// A folder whose card calls these functions, with the prompt of every row.
fn with_card(place: &mut Place, front: &str) {
    with_programs(place);
    place.write("cards/tools.py", TOOLS);
    write_cards(place, &[("solo", front, "Work.")]);
    write_prompt(place, "hello");
}

#[test]
fn functions_are_offered_with_their_schemas_and_what_they_give_or_raise_is_reported() {
    let (simulator, mut place) = ruled(&json!([
        {"when": {"turn": 1, "tool": "convert"}, "then": {"calls": [
            {"name": "convert", "arguments": {"amount": 1.5}},
            {"name": "convert", "arguments": {"amount": -1, "currency": "USD"}},
            {"name": "convert", "arguments": {"amount": 1, "currency": "GBP"}},
            {"name": "convert"}]}},
        {"when": {"turn": 2}, "then": {"text": "done"}}
    ]));
    with_card(&mut place, "model: generic.m\nfunction_tools: [tools.py:convert]");
    run_cards(&place, &["--telemetry-output", "t.jsonl"]).ok();
    let offered = &simulator.requests()[0].json()["tools"][0]["function"];
    assert_eq!(offered["name"], "convert");
    assert_eq!(offered["description"], "Converts an amount.");
    let schema = &offered["parameters"]["properties"];
    assert_eq!(schema["amount"], json!({"type": "number", "description": "How much."}));
    assert_eq!(schema["currency"]["enum"], json!(["EUR", "USD"]));
    assert_eq!(offered["parameters"]["required"], json!(["amount"]));
    let message: Vec<String> =
        simulator.calls()[1].results.iter().map(|result| result.text.clone()).collect();
    assert_eq!(message[..2], [r#"{"amount":3.0,"currency":"EUR"}"#, "ValueError: no debts"]);
    for message in &message[2..] {
        assert!(message.starts_with("the arguments of `convert` do not satisfy its schema: "), "{message}");
    }
    let tools = &place.json("t.jsonl")[0]["tool_calls"];
    let ok: Vec<&Value> = tools.as_array().into_iter().flatten().map(|call| &call["ok"]).collect();
    assert_eq!(ok, [&json!(true), &json!(false)], "calls with wrong arguments are not made");
}

#[test]
fn functions_that_cannot_be_used_are_one_problem_before_the_first_row() {
    for (front, problem) in [
        ("function_tools: [none.py:f]", "none.py"),
        ("function_tools: [tools.py:unknown]", "unknown"),
        ("tool_hooks: {before_llm_call: tools.py:unknown}", "unknown"),
        (
            "function_tools: [tools.py:convert]\nagents: [convert]",
            "`cards/solo.md` has two tools with the name `convert`",
        ),
    ] {
        let (simulator, mut place) = ruled(&json!([]));
        with_card(&mut place, &format!("model: generic.m\n{front}"));
        write_cards(&place, &[("convert", "tool_only: true", "Convert.")]);
        run_cards(&place, &[]).code(1).says(problem).says("solo.md");
        assert_eq!(simulator.calls().len(), 0);
    }
}

const HOOKS: &str = r#"
def before_llm(ctx):
    return f"{ctx.text} +before{ctx.turn}"

def after_llm(ctx):
    return f"{ctx.text} +after{ctx.turn}"

def before_tool(ctx):
    return {"amount": ctx.arguments["amount"] + 1, "currency": "USD"}

def after_tool(ctx):
    return f"{ctx.tool_name}/{ctx.arguments['currency']}/{ctx.is_error}: {ctx.result}"

def end(ctx):
    return f"{ctx.text} by {ctx.agent_name} in row {ctx.row_number}"

def breaks(ctx):
    raise RuntimeError("hook gave up")
"#;

/// One call of `convert`, then `done`.
fn one_call() -> Value {
    json!([
        {"when": {"turn": 1, "tool": "convert"}, "then": {"text": "wait", "calls": [{"name": "convert", "arguments": {"amount": 1}}]}},
        {"when": {}, "then": {"text": "done"}}
    ])
}

#[test]
fn each_hook_acts() {
    let plain =
        "assistant: wait\ncall: convert{\"amount\":1}\nconvert: {\"amount\":2.0,\"currency\":\"EUR\"}";
    // The hooks, the messages of the second turn after the prompt, and the result.
    for (hooks, message, result) in [
        ("before_llm_call: hooks.py:before_llm", format!("hello +before1\n{plain} +before2"), "done"),
        (
            "after_llm_call: hooks.py:after_llm",
            format!("hello\n{}", plain.replace("wait", "wait +after1")),
            "done +after2",
        ),
        (
            "before_tool_call: hooks.py:before_tool",
            format!(
                "hello\n{}",
                plain.replace(
                    "{\"amount\":2.0,\"currency\":\"EUR\"}",
                    "{\"amount\":4.0,\"currency\":\"USD\"}"
                )
            ),
            "done",
        ),
        (
            "before_tool_call: hooks.py:before_tool\n  after_tool_call: hooks.py:after_tool",
            format!(
                "hello\n{}",
                plain.replace(
                    "{\"amount\":2.0,\"currency\":\"EUR\"}",
                    "convert/USD/False: {\"amount\":4.0,\"currency\":\"USD\"}"
                )
            ),
            "done",
        ),
        ("after_turn_complete: hooks.py:end", format!("hello\n{plain}"), "done by solo in row 1"),
    ] {
        let (simulator, mut place) = ruled(&one_call());
        with_card(
            &mut place,
            &format!("model: generic.m\nfunction_tools: [tools.py:convert]\ntool_hooks:\n  {hooks}"),
        );
        place.write("cards/hooks.py", HOOKS);
        run_cards(&place, &[]).ok();
        assert_eq!(call_texts(&simulator)[1], format!("[Work.]\nuser: {message}"), "{hooks}");
        assert_eq!(results(&place), [json!(result)], "{hooks}");
    }
}

#[test]
fn a_hook_that_fails_fails_its_row_and_no_other() {
    for hook in
        ["before_llm_call", "after_llm_call", "before_tool_call", "after_tool_call", "after_turn_complete"]
    {
        let (_simulator, mut place) = ruled(&one_call());
        let front = format!(
            "model: generic.m\nfunction_tools: [tools.py:convert]\ntool_hooks: {{{hook}: hooks.py:odd}}"
        );
        with_card(&mut place, &front);
        place.write(
            "cards/hooks.py",
            "def odd(ctx):\n    if ctx.row_number % 2:\n        raise RuntimeError('gave up')\n",
        );
        place.write("rows.jsonl", "{\"p\":\"a\"}\n{\"p\":\"b\"}\n{\"p\":\"c\"}\n");
        run_cards(&place, &[]).code(3);
        let rows = place.json("out.jsonl");
        assert_eq!(support::each(&rows, "/ok"), [json!(false), json!(true), json!(false)], "{hook}");
        assert_eq!(rows[0]["error"]["type"], "HookError", "{hook}");
        let message = rows[0]["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with("a hook of `solo` failed: ") && message.contains("gave up"),
            "{hook}: {message}"
        );
    }
}

#[test]
fn hooks_work_without_tools_and_for_their_own_agent_only() {
    let (simulator, mut place) = ruled(&json!([{"when": {}, "then": {"text": "done"}}]));
    with_card(
        &mut place,
        "tool_only: true\ntool_hooks: {after_turn_complete: hooks.py:end}\nlifecycle_hooks: {on_start: hooks.py:start}",
    );
    place.write(
        "cards/hooks.py",
        format!("{HOOKS}\ndef start(ctx):\n    open('started.txt', 'a').write(ctx.agent_name)\n"),
    );
    write_cards(
        &place,
        &[("other", "tool_only: true", "Other."), ("line", "type: chain\nsequence: [solo, other]", "")],
    );
    run_cards(&place, &["-m", "generic.m"]).ok();
    assert_eq!(call_texts(&simulator)[1], "[Other.]\nuser: done by solo in row 1");
    assert_eq!(results(&place), [json!("done")]);
    let started = place.exists("started.txt") || place.exists("cards/started.txt");
    assert!(started, "the lifecycle hook did not run");
}

#[test]
fn pictures_of_tools_reach_models_that_take_them_and_others_are_reported_them() {
    let rules = json!([
        {"when": {"turn": 1, "tool": "picture"}, "then": {"calls": [{"name": "picture"}]}},
        {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
    ]);
    for model in PROTOCOLS.into_iter().chain(["openai.gpt-5-mini", "deepseek.deepseek-chat"]) {
        let (simulator, mut place) = ruled(&rules);
        place.set("DEEPSEEK_BASE_URL", &format!("{}/v1", simulator.url()));
        place.set("DEEPSEEK_API_KEY", support::KEY);
        with_card(&mut place, "function_tools: [tools.py:picture]");
        run_cards(&place, &["-m", model]).ok();
        let last = simulator.calls().pop();
        let files: Vec<String> =
            last.iter().flat_map(|call| &call.files).map(|file| file.media_type.clone()).collect();
        let text = call_texts(&simulator).pop().unwrap_or_default();
        let cannot = text.contains("image/png, 70 bytes, which this model cannot be shown]");
        match model {
            "deepseek.deepseek-chat" => assert!(files.is_empty() && cannot, "{model}: {files:?} {text}"),
            _ => assert!(files == ["image/png"] && !cannot, "{model}: {files:?} {text}"),
        }
    }
}

#[test]
fn a_recorded_function_can_be_replayed_without_it() {
    let (_simulator, mut place) = ruled(&one_call());
    with_card(&mut place, "model: generic.m\nfunction_tools: [tools.py:convert]");
    run_cards(&place, &["--record-tools", "tape"]).ok();
    assert_eq!(place.names("tape"), ["convert.jsonl"]);
    let line = &place.json("tape/convert.jsonl")[0];
    assert_eq!(
        line,
        &json!({"row": 1, "arguments": {"amount": 1}, "result": "{\"amount\":2.0,\"currency\":\"EUR\"}"})
    );
    let first = results(&place);
    write_cards(&place, &[("solo", "model: generic.m", "Work.")]);
    place.unset("PATH");
    run_cards(&place, &["--stub", "convert=tape/convert.jsonl", "--overwrite"]).ok();
    assert_eq!(results(&place), first);
}

#[test]
fn a_tool_that_takes_too_long_is_reported_to_the_model() {
    for (policy, flags) in
        [("tool_policy: {hang: {timeout: 0.3}}", &[][..]), ("", &["--tool-timeout", "300ms"])]
    {
        let (simulator, mut place) = ruled(&json!([
            {"when": {"turn": 1, "tool": "hang"}, "then": {"calls": [{"name": "hang"}]}},
            {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
        ]));
        with_card(&mut place, &format!("model: generic.m\nfunction_tools: [slow.py:hang]\n{policy}"));
        place.write("cards/slow.py", "import threading\ndef hang():\n    threading.Event().wait()\n");
        run_cards(&place, flags).ok();
        let events = call_texts(&simulator).pop().unwrap_or_default();
        assert!(events.contains("0.3 s") && events.contains("whether it took effect is unknown"), "{events}");
        assert!(row_error(&place).0.is_empty());
    }
}

const PRYING: &str = r#"
import os

def pry() -> str:
    """Looks for keys."""
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as file:
            return "read: " + file.read().decode()
    except OSError as error:
        return type(error).__name__

def own() -> str:
    """Tells which keys it was given."""
    return " ".join(sorted(name for name in os.environ if "KEY" in name))

seen = []

def which() -> str:
    """Tells its process and how often it was asked."""
    seen.append(1)
    return f"{os.getpid()}/{len(seen)}"
"#;

/// A folder that everyone may use, with functions that try to read secrets.
fn prying(rows: usize, config: &str) -> Home {
    let home = Home::with_rows(rows);
    fs::set_permissions(home.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    home.write("rowmill.toml", config);
    home.write("tools.py", PRYING);
    home.write("solo.md", "---\nfunction_tools: [tools.py:pry, tools.py:own, tools.py:which]\n---\nPry.\n");
    home
}

/// A model that calls these tools one after the other and then answers with their results.
fn calls_each(tools: &'static [&'static str]) -> SimulatorScript {
    SimulatorScript::new().answer_calls(move |seen| match tools.get(seen.turn as usize - 1) {
        Some(tool) => {
            SimulatedAnswer::Calls { text: String::new(), calls: vec![((*tool).to_owned(), json!({}))] }
        }
        None => {
            let texts: Vec<_> = seen.messages.iter().flat_map(|message| &message.answers).collect();
            SimulatedAnswer::Text(
                texts.iter().map(|result| result.text.as_str()).collect::<Vec<_>>().join("; "),
            )
        }
    })
}

#[test]
fn a_function_gets_no_key_of_the_models_and_cannot_read_it_from_the_process_that_started_it() {
    let simulator = Simulator::start_blocking(calls_each(&["pry", "own"]));
    for (config, given) in
        [("", "OTHER_KEY"), ("[run]\npython_env = [\"GENERIC_API_KEY\"]", "GENERIC_API_KEY OTHER_KEY")]
    {
        let home = prying(1, config);
        // Root may read every process, so the command runs as another user.
        let program = home.path("rowmill");
        fs::copy(env!("CARGO_BIN_EXE_rowmill"), &program).unwrap();
        let mut command = Command::new(program);
        if rustix::process::getuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        command
            .current_dir(home.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TMPDIR", home.path("")).env("OTHER_KEY", "another-key-value");
        command
            .env("GENERIC_API_KEY", "sk-planted-4711")
            .env("GENERIC_BASE_URL", format!("{}/v1", simulator.url()));
        command.args(["run", "-i", "in.jsonl", "-o", "out.jsonl", "-p", "{{p}}", "-m", "generic.m"]);
        let ended = command.args(["--agent-card", "solo.md"]).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(home.envelopes()[0]["result"], format!("PermissionError; {given}"));
        let messages =
            String::from_utf8_lossy(&ended.stderr).contains("Python functions do not get `GENERIC_API_KEY`");
        assert_eq!(messages, config.is_empty());
    }
}

#[test]
fn there_are_no_more_python_processes_than_were_asked_for_and_rows_keep_theirs() {
    let simulator = Simulator::start_blocking(calls_each(&["which", "which"]));
    let home = prying(40, "");
    let flags = ["--agent-card", "solo.md", "--parallel", "16", "--python-processes", "2"];
    home.run().on(&simulator).env("PATH", env!("PATH")).args(&flags).ends_with(0);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), 40);
    let mut processes = std::collections::BTreeSet::new();
    for envelope in envelopes {
        let (first, second) = envelope["result"].as_str().unwrap().split_once("; ").unwrap();
        let ((process, count), (same, next)) =
            (first.split_once('/').unwrap(), second.split_once('/').unwrap());
        let (count, next): (u64, u64) = (count.parse().unwrap(), next.parse().unwrap());
        assert_eq!((process, count + 1), (same, next), "no other row came between");
        processes.insert(process.to_owned());
    }
    assert!(processes.len() <= 2, "{processes:?}");
}
