//! Cards that were written for fast-agent: what works unchanged, the messages, and checking them.

use crate::agents_support::{call_text, ruled, run_cards, with_programs, write_cards, write_prompt};
use crate::support::Place;
use serde_json::{Value, json};

#[test]
fn files_that_the_folder_of_a_card_lacks_are_taken_from_the_current_folder_and_that_is_reported() {
    let (simulator, mut place) = ruled(&json!([
        {"when": {"turn": 1}, "then": {"calls": [{"name": "execute", "arguments": {"command": "cat here.txt"}}]}},
        {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
    ]));
    with_programs(&mut place);
    place.write("shared/style.md", "Be brief.");
    place.write("cards/both.md", "The card's own.");
    place.write("both.md", "Not this one.");
    place.write("work/here.txt", "found");
    place.write("skills/one/SKILL.md", "---\nname: one\ndescription: The only skill.\n---\nGuide.\n");
    write_cards(
        &place,
        &[(
            "solo",
            "model: generic.m\nshell: true\ncwd: work\nskills: [skills]",
            "{{file:shared/style.md}} {{file:both.md}}{{file_silent:none.md}}",
        )],
    );
    write_prompt(&place, "x");
    let ended = run_cards(&place, &[]).ok();
    for (path, field) in
        [("shared/style.md", "{{file:shared/style.md}}"), ("work", "cwd"), ("skills", "skills")]
    {
        let notice = format!("`{path}` in `{field}` of `cards/solo.md` is read from the current folder");
        assert_eq!(ended.stderr.matches(&notice).count(), 1, "{notice}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("both.md"), "{}", ended.stderr);
    let calls = simulator.calls();
    assert!(calls[0].system.starts_with("Be brief. The card's own."), "{}", calls[0].system);
    assert!(calls[0].system.contains("The only skill."), "{}", calls[0].system);
    assert!(call_text(&calls[1]).contains("found"), "{}", call_text(&calls[1]));
}

#[test]
fn all_placeholders_that_tell_of_the_machine_are_asked_for_at_once_and_the_advice_works() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(
        &place,
        &[
            ("lead", "model: generic.m\nagents: [helper]", "On {{currentDate}}. {{model_specific}}{{kept}}"),
            ("helper", "tool_only: true", "In {{env}}, on {{currentDate}}."),
        ],
    );
    write_prompt(&place, "x");
    let ended = run_cards(&place, &[]).code(1);
    let message = "`{{currentDate}}` (`cards/lead.md`, line 5)";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    assert!(ended.stderr.contains("`{{env}}` (`cards/helper.md`, line 4)"), "{}", ended.stderr);
    // The flags can be pasted into a shell as they are.
    let flags = ended.stderr.split("set the values: ").nth(1).and_then(|rest| rest.split(';').next());
    let script = format!("for flag in {}; do echo \"$flag\"; done", flags.unwrap_or_default());
    let shell = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let flags = String::from_utf8_lossy(&shell.stdout).into_owned();
    let flags: Vec<&str> = flags.lines().collect();
    assert_eq!(flags.iter().filter(|flag| **flag == "--var").count(), 2, "{flags:?}");
    assert_eq!(simulator.calls().len(), 0);
    run_cards(&place, &flags)
        .ok()
        .says("`{{model_specific}}` of the agent card `lead` has no effect in a batch");
    let system = &simulator.calls()[0].system;
    assert!(system.starts_with("On ") && system.ends_with(". {{kept}}"), "{system}");
}

/// A hook in fast-agent's style, in a file that records when it is run.
const HOOK: &str = "open('imported', 'w').close()\n\n\
    async def guard(ctx: \"HookContext\") -> None:\n    for call in ctx.message.tool_calls.values():\n        \
    call.params.arguments['limit'] = 1\n";

#[test]
fn a_hook_of_fast_agent_is_refused_with_the_difference_before_anything_of_it_is_run() {
    let (simulator, mut place) = ruled(&json!([]));
    with_programs(&mut place);
    place.write("hooks/guard.py", HOOK);
    write_prompt(&place, "x");
    for (field, kind, gets) in [
        ("tool_hooks", "before_tool_call", "one call as `ctx.tool_name` and `ctx.arguments`"),
        ("tool_hooks", "after_turn_complete", "the agent's answer as `ctx.text`"),
        ("lifecycle_hooks", "on_start", "only `ctx.hook_type` and `ctx.agent_name`"),
    ] {
        let front = format!("model: generic.m\n{field}:\n  {kind}: ../hooks/guard.py:guard");
        write_cards(&place, &[("solo", &front, "Hi.")]);
        run_cards(&place, &[])
            .code(1)
            .says("`cards/solo.md`, line 4: the hook `../hooks/guard.py:guard` is written for fast-agent: it uses `ctx.message`")
            .says(&format!("in rowmill, a `{kind}` hook gets {gets}"));
        assert!(!place.exists("imported"), "{kind}");
    }
    // A hook that uses only what exists here works, whatever its argument is called.
    place.write(
        "hooks/guard.py",
        "async def guard(ctx: \"HookContext\"):\n    return ctx.agent_name + ctx.hook_type\n",
    );
    write_cards(
        &place,
        &[("solo", "model: generic.m\ntool_hooks:\n  before_llm_call: ../hooks/guard.py:guard", "Hi.")],
    );
    run_cards(&place, &[]).ok();
    assert_eq!(call_text(&simulator.calls()[0]), "[Hi.]\nuser: solobefore_llm_call");
}

#[test]
fn all_servers_that_nobody_defines_are_reported_at_once_before_anything_is_started() {
    let (_simulator, mut place) = ruled(&json!([]));
    with_programs(&mut place);
    place.write("cards/tools.py", "open('imported', 'w').close()\n\ndef f() -> str:\n    return ''\n");
    place.write("rowmill.toml", "[mcp.servers.notes]\ncommand = \"none-such\"\n");
    write_cards(
        &place,
        &[
            (
                "lead",
                "model: generic.m\nagents: [helper]\nservers: [fetch]\nfunction_tools: tools.py:f",
                "Hi.",
            ),
            ("helper", "tool_only: true\nservers:\n  - notes\n  - time", "Hello."),
        ],
    );
    write_prompt(&place, "x");
    run_cards(&place, &[])
        .code(1)
        .says("`cards/lead.md`, line 4: uses the MCP server `fetch`, which is not in the configuration")
        .says("`cards/helper.md`, line 5: uses the MCP server `time`")
        .says("`[mcp.servers.fetch]` and `[mcp.servers.time]`")
        .says("defined: notes");
    assert!(!place.exists("imported"));
}

#[test]
fn cards_can_be_checked_without_running_anything() {
    let mut place = Place::new();
    with_programs(&mut place);
    place.write("cards/tools.py", "open('imported', 'w').close()\n\ndef f() -> str:\n    return ''\n");
    write_cards(
        &place,
        &[
            (
                "good",
                "model: anthropic.claude-haiku-4-5\nfunction_tools: tools.py:f\nuse_history: true",
                "Hi.",
            ),
            ("late", "model: generic.m\ntool_only: true", "On {{currentDate}}."),
            ("lost", "model: nobody.x", "Hi."),
        ],
    );
    let ended = place.rowmill(&["card", "check", "cards"]).code(1);
    for line in [
        "ok      good (agent, cards/good.md)\n  note: `use_history` of the agent card `good` has no effect",
        "problem late (agent, cards/late.md)\n  error[RM1105]: the instruction uses variables without a \
         value: `{{currentDate}}`",
        "problem lost (agent, cards/lost.md)\n  error[RM1201]: `cards/lost.md`, line 2: unknown provider `nobody`",
        "1 card can be used, 2 problems",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let flags = ["card", "check", "cards", "--json", "--agent", "good"];
    let checked: Value = serde_json::from_str(&place.rowmill(&flags).ok().stdout).expect("JSON");
    assert_eq!((&checked["ok"], &checked["cards"][0]["name"]), (&json!(true), &json!("good")));
    let flags = ["card", "check", "cards", "--var", "currentDate=today", "-m", "simulated"];
    let ended = place.rowmill(&flags).ok();
    assert!(ended.stdout.ends_with("3 cards can be used, 0 problems\n"), "{}", ended.stdout);
    place.write("cards/broken.yaml", "modle: x\nagents: good\n");
    let ended =
        place.rowmill(&["card", "check", "cards", "--var", "currentDate=x", "-m", "simulated"]).code(1);
    assert!(ended.stdout.contains("`cards/broken.yaml`, line 1: unknown field `modle`"), "{}", ended.stdout);
    assert!(ended.stdout.contains("3 cards can be used, 2 problems"), "{}", ended.stdout);
    assert!(!place.exists("imported"));
}

const EXAMPLES: &str = r#"{"messages":[
    {"role":"user","content":[{"type":"text","text":"Where is A-1?"}]},
    {"role":"assistant","content":[],"tool_calls":{
        "toolu/1":{"method":"tools/call","params":{"name":"find","arguments":{"n":"A-1"}}}}},
    {"role":"user","content":[],"tool_results":{"toolu/1":{"content":[{"type":"text","text":"sent"}],"isError":false}}},
    {"role":"assistant","content":[{"type":"text","text":"It was sent."}]}]}"#;

#[test]
fn examples_with_calls_of_tools_are_sent_as_each_provider_writes_them() {
    // The positions of the call's id and of its result's id in the body of a request.
    for (model, call, result) in [
        ("generic.m", "/messages/2/tool_calls/0/id", "/messages/3/tool_call_id"),
        ("responses.gpt-5.4-mini", "/input/1/call_id", "/input/2/call_id"),
        ("anthropic.claude-haiku-4-5", "/messages/1/content/0/id", "/messages/2/content/0/tool_use_id"),
        (
            "google.gemini-2.5-flash",
            "/contents/1/parts/0/functionCall/name",
            "/contents/2/parts/0/functionResponse/name",
        ),
    ] {
        let (simulator, place) = ruled(&json!([]));
        place.write("cards/examples.json", EXAMPLES);
        write_cards(&place, &[("solo", &format!("model: {model}\nmessages: examples.json"), "Hi.")]);
        write_prompt(&place, "Where is B-7?");
        run_cards(&place, &["--stub", "find=text:packed"]).ok();
        let heard = call_text(&simulator.calls()[0]);
        let expected = "[Hi.]\nuser: Where is A-1?\nassistant: \ncall: find{\"n\":\"A-1\"}\nfind: sent\n\
                        assistant: It was sent.\nuser: Where is B-7?";
        assert_eq!(heard, expected, "{model}");
        let body = simulator.requests().pop().map(|request| request.json()).unwrap_or_default();
        let found = [call, result].map(|path| body.pointer(path).and_then(Value::as_str).unwrap_or(""));
        let expected = if model.starts_with("google") { "find" } else { "ex0000001" };
        assert_eq!(found, [expected; 2], "{model}: {body:#}");
    }
}
