//! Hooks observe and change steps.

use std::fs;

use rowmill_core::ports::{HookCall, HookKind, HookRunner};
use rowmill_tools::{AgentHook, ProcessMoment, PythonLifecycleHook};
use serde_json::{Value, json};

use crate::python::support::{Folder, Host, folder};

const HOOKS: &str = r#"
import json, pathlib

def note(ctx):
    with open("log.jsonl", "a") as log:
        log.write(json.dumps(vars(ctx), sort_keys=True) + "\n")

def look(ctx):
    note(ctx)

async def shout(ctx):
    return ctx.text.upper()

def cap(ctx):
    return {**ctx.arguments, "limit": 3}

def hide(ctx):
    return ctx.result.replace("secret", "...") if not ctx.is_error else None

def wrong(ctx):
    return 3

def fails(ctx):
    raise KeyError("x")

def value():
    return 1
"#;

fn hook(folder: &Folder, kind: HookKind, function: &str) -> AgentHook {
    let entrypoint = folder.entrypoint(&format!("tools.py:{function}"));
    AgentHook { agent: "writer".into(), kind, entrypoint }
}

async fn called(host: &Host, kind: HookKind, about: Value) -> Result<Option<Value>, String> {
    HookRunner::call(&host.tools, HookCall { kind, row: 7, agent: "writer", turn: 2, about: &about }).await
}

#[tokio::test]
async fn a_hook_may_replace_a_text_or_the_arguments_or_leave_all_as_it_is() {
    let mut folder = folder(HOOKS, &[]);
    folder.settings.hooks = vec![
        hook(&folder, HookKind::BeforeModel, "look"),
        hook(&folder, HookKind::AfterModel, "shout"),
        hook(&folder, HookKind::BeforeTool, "cap"),
        hook(&folder, HookKind::AfterTool, "hide"),
    ];
    let host = folder.start().await;
    assert_eq!(called(&host, HookKind::BeforeModel, json!("hello")).await, Ok(None));
    assert_eq!(called(&host, HookKind::AfterModel, json!("grün")).await, Ok(Some(json!("GRÜN"))));
    let about = json!({"name": "search", "arguments": {"query": "x"}});
    let capped = called(&host, HookKind::BeforeTool, about).await;
    assert_eq!(capped, Ok(Some(json!({"query": "x", "limit": 3}))));
    let about = json!({"name": "search", "arguments": {}, "result": "a secret", "is_error": false});
    assert_eq!(called(&host, HookKind::AfterTool, about).await, Ok(Some(json!("a ..."))));
    assert_eq!(called(&host, HookKind::AfterTurn, json!("x")).await, Ok(None), "there is no such hook");
    assert!(
        host.tools.has_hook("writer", HookKind::AfterTool)
            && !host.tools.has_hook("other", HookKind::AfterTool)
    );
    host.close().await;
    let log: Value =
        serde_json::from_str(&fs::read_to_string(folder.path.path().join("log.jsonl")).unwrap()).unwrap();
    let expected = json!({
        "hook_type": "before_llm_call", "agent_name": "writer", "row_number": 7, "turn": 2, "text": "hello",
        "tool_name": null, "arguments": null, "result": null, "is_error": false,
    });
    assert_eq!(log, expected);
}

#[tokio::test]
async fn a_hook_that_fails_or_returns_something_else_is_an_error() {
    let mut folder = folder(HOOKS, &[]);
    folder.settings.hooks =
        vec![hook(&folder, HookKind::AfterTurn, "fails"), hook(&folder, HookKind::BeforeModel, "wrong")];
    let host = folder.start().await;
    assert_eq!(called(&host, HookKind::AfterTurn, json!("x")).await.unwrap_err(), "KeyError: 'x'");
    let problem = called(&host, HookKind::BeforeModel, json!("x")).await.unwrap_err();
    assert_eq!(problem, "TypeError: the hook returned `int`; it may return None or `str`");
    host.close().await;
}

#[tokio::test]
async fn lifecycle_hooks_run_once_in_each_process() {
    let mut folder = folder(HOOKS, &["value"]);
    let entrypoint = folder.entrypoint("tools.py:note");
    let moment =
        |moment| PythonLifecycleHook { agent: "writer".into(), moment, entrypoint: entrypoint.clone() };
    folder.settings.lifecycle = vec![moment(ProcessMoment::Start), moment(ProcessMoment::Shutdown)];
    let host = folder.start().await;
    for row in [1, 2, 1, 2] {
        host.text(row, "value", json!({})).await;
    }
    host.close().await;
    let log = fs::read_to_string(folder.path.path().join("log.jsonl")).unwrap();
    let count = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("on_start"), count("on_shutdown")), (2, 2), "{log}");
    assert!(log.lines().all(|line| line.contains("\"agent_name\": \"writer\"")), "{log}");
}
