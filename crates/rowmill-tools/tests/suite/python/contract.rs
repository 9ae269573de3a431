//! Functions and hooks satisfy the contracts of their ports, as checked by the testkit's suites.

use rowmill_core::ports::HookKind;
use rowmill_testkit::conformance::{
    AfterRelease, CountingTool, HookCase, HookFacts, ToolCase, ToolFacts, check_hooks, check_tool_host,
};
use rowmill_tools::AgentHook;
use serde_json::{Value, json};

use crate::python::support::folder;

const CODE: &str = r#"
import signal
count = 0

def echo(n: int):
    return f"n{n}."

def fails():
    raise ValueError("no")

def counted():
    global count
    count += 1
    return count

def hangs():
    signal.pause()

def look(ctx):
    return None

def shout(ctx):
    return ctx.text.upper()
"#;

#[tokio::test]
async fn python_keeps_the_contracts_of_tool_hosts_and_hooks() {
    let mut folder = folder(CODE, &["echo", "fails", "counted", "hangs"]);
    let hooks =
        [(HookKind::BeforeModel, "look"), (HookKind::AfterModel, "shout"), (HookKind::AfterTurn, "fails")];
    folder.settings.hooks = hooks
        .iter()
        .map(|(kind, function)| {
            let entrypoint = folder.entrypoint(&format!("tools.py:{function}"));
            AgentHook { agent: "writer".into(), kind: *kind, entrypoint }
        })
        .collect();
    let host = folder.try_start().await.unwrap();
    let hook = |kind| HookCase { kind, agent: "writer".into(), about: json!("grün") };
    let facts = HookFacts {
        looks_on: Some(hook(HookKind::BeforeModel)),
        steps_in: Some((hook(HookKind::AfterModel), json!("GRÜN"))),
        fails: Some(hook(HookKind::AfterTurn)),
    };
    assert_eq!(check_hooks(&host, &facts).await, Vec::<String>::new());

    let path = folder.path.path().join("tools.py").display().to_string();
    let case = |function: &str, arguments: Value| ToolCase::new(format!("{path}:{function}"), &arguments);
    let facts = ToolFacts {
        fails: Some(case("fails", json!({}))),
        counts: Some(CountingTool {
            case: case("counted", json!({})),
            after_release: AfterRelease::PassedOn,
        }),
        echoes: Some(Box::new(|number| (case("echo", json!({"n": number})), format!("n{number}.")))),
        hangs: Some(case("hangs", json!({}))),
        ..ToolFacts::of(case("echo", json!({"n": 1})))
    };
    assert_eq!(check_tool_host(&host, &facts).await, Vec::<String>::new());
}
