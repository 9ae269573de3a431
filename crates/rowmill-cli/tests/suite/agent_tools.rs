//! Where tool calls go: to recorded answers, to the result, nowhere; the shell and skills.

use crate::support;

use crate::agents_support::{
    call_texts, results, row_error, ruled, run_cards, script, with_programs, write_cards, write_prompt,
};
use crate::support::scripted;
use serde_json::{Value, json};

/// Calls `find` with the prompt, then answers with the result.
fn finder() -> Value {
    json!([
        {"when": {"turn": 1, "tool": "find"}, "then": {"calls": [{"name": "find", "arguments": {"q": "{{prompt}}"}}]}},
        {"when": {"turn": 2}, "then": {"text": "so: {{last}}"}}
    ])
}

const SOLO: (&str, &str, &str) = ("solo", "model: generic.m", "Look.");

#[test]
fn stubs_answer_in_the_place_of_tools_by_row_and_arguments() {
    let lines = r#"{"result": "anything"}
{"row": 2, "result": "second row"}
{"arguments": {"q": "three"}, "result": {"n": 3}}
{"row": 4, "arguments": {"q": "four"}, "result": "broken", "is_error": true}
"#;
    let (simulator, place) = ruled(&finder());
    write_cards(&place, &[SOLO]);
    place.write("answers.jsonl", lines);
    place.write("rows.jsonl", "{\"p\":\"one\"}\n{\"p\":\"two\"}\n{\"p\":\"three\"}\n{\"p\":\"four\"}\n");
    run_cards(&place, &["--stub", "find=answers.jsonl", "--telemetry-output", "t.jsonl"]).ok();
    let expected = ["so: anything", "so: second row", "so: {\"n\":3}", "so: broken"];
    assert_eq!(results(&place), expected.map(|text| json!(text)));
    assert_eq!(
        call_texts(&simulator)[1],
        "[Look.]\nuser: one\nassistant: \ncall: find{\"q\":\"one\"}\nfind: anything"
    );
    let ok: Vec<Value> = place.json("t.jsonl").iter().map(|row| row["tool_calls"][0]["ok"].clone()).collect();
    assert_eq!(ok, [json!(true), json!(true), json!(true), json!(false)]);
}

#[test]
fn stubs_that_cannot_be_used_are_reported_before_the_first_row() {
    let (simulator, place) = ruled(&finder());
    write_cards(&place, &[SOLO]);
    write_prompt(&place, "x");
    place.write("empty.jsonl", "\n");
    place.write("wrong.jsonl", "{\"result\": 1}\n{\"reslt\": 1}\n");
    for (stub, message) in [
        ("find=none.jsonl", "cannot read the answers for the tool `find`: `none.jsonl`"),
        ("find=empty.jsonl", "`empty.jsonl` has no answers for the tool `find`"),
        ("find=wrong.jsonl", "line 2 of `wrong.jsonl` is not an answer"),
    ] {
        run_cards(&place, &["--stub", stub]).code(1).says(message);
    }
    assert_eq!(simulator.calls().len(), 0);
}

#[test]
fn a_denied_tool_is_offered_but_never_called_and_the_model_is_reported() {
    let denied =
        "[Look.]\nuser: x\nassistant: \ncall: find{\"q\":\"x\"}\nfind: the tool `find` is denied in this run";
    let policy = "model: generic.m\ntool_policy: {find: deny}";
    for (front, flags) in [
        ("model: generic.m", &["--deny", "find"][..]),
        ("model: generic.m", &["--deny", "f*", "--passthrough", "find"]),
        (policy, &[]),
    ] {
        let (simulator, place) = ruled(&finder());
        write_cards(&place, &[("solo", front, "Look.")]);
        write_prompt(&place, "x");
        run_cards(&place, &[&["--stub", "find=text:found"], flags].concat()).ok();
        assert_eq!(call_texts(&simulator)[1], denied, "{front}");
        assert_eq!(results(&place), [json!("so: the tool `find` is denied in this run")]);
    }
}

#[test]
fn what_a_tool_gives_becomes_the_result_without_another_turn() {
    for (front, flags) in [
        ("", &["--passthrough", "find"][..]),
        ("\ntool_policy: {find: passthrough}", &[]),
        ("\ntool_policy: {find: {route: passthrough, timeout: 5}}", &[]),
        ("\nrequest_params: {tool_result_mode: passthrough}", &[]),
        ("\nrequest_params: {max_iterations: 1}", &["--passthrough", "find"]),
    ] {
        let (simulator, place) = ruled(&finder());
        write_cards(&place, &[("solo", &format!("model: generic.m{front}"), "Look.")]);
        write_prompt(&place, "x");
        run_cards(&place, &[&["--stub", "find=text:found"], flags].concat()).ok();
        assert_eq!(results(&place), [json!("found")], "{front}");
        assert_eq!(simulator.calls().len(), 1, "{front}");
    }
}

#[test]
fn a_passed_result_must_satisfy_the_schema_and_a_failed_tool_does_not_pass() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    for (answer, code, calls) in [
        (r#"{"result": {"n": 3}}"#, 0, 1),
        (r#"{"result": "three"}"#, 3, 1),
        (r#"{"result": "no", "is_error": true}"#, 0, 2),
    ] {
        let mut rules = finder();
        rules[1] = json!({"when": {"schema": true}, "then": {"json": {"n": 3}}});
        let (simulator, place) = ruled(&rules);
        write_cards(&place, &[SOLO]);
        write_prompt(&place, "x");
        place.write("schema.json", schema);
        place.write("answers.jsonl", answer);
        let flags = ["--stub", "find=answers.jsonl", "--passthrough", "find", "--json-schema", "schema.json"];
        run_cards(&place, &flags).code(code);
        assert_eq!(simulator.calls().len(), calls, "{answer}");
        if code == 0 {
            assert_eq!(results(&place), [json!({"n": 3})], "{answer}");
        } else {
            let (kind, message) = row_error(&place);
            assert_eq!(kind, "StructuredOutputError");
            assert!(message.starts_with("the result of the tool does not satisfy the JSON schema: "));
            assert_eq!(place.json("out.jsonl")[0]["error"]["raw_text"], "three");
        }
    }
}

#[test]
fn a_policy_for_a_tool_that_the_agent_does_not_have_is_an_error() {
    let (simulator, place) = ruled(&finder());
    write_cards(&place, &[("solo", "model: generic.m\ntool_policy: {fnid: deny}", "Look.")]);
    write_prompt(&place, "x");
    run_cards(&place, &["--stub", "find=text:found"])
        .code(1)
        .says("`cards/solo.md`, line 3: `tool_policy` names a tool that the agent does not have: `fnid`")
        .says("`find`");
    assert_eq!(simulator.calls().len(), 0);
}

#[test]
fn long_results_are_cut_with_a_note() {
    let (simulator, place) = ruled(&finder());
    write_cards(&place, &[SOLO]);
    write_prompt(&place, "x");
    run_cards(&place, &["--stub", "find=text:ab\u{e9}def", "--tool-result-limit", "3"]).ok();
    let events = call_texts(&simulator).pop().unwrap_or_default();
    assert!(events.ends_with("find: ab\n[cut: the first 2 of 7 bytes]"), "{events}");
}

#[test]
fn the_shell_is_offered_where_it_is_wanted_and_sees_no_keys() {
    let rules = json!([
        {"when": {"turn": 1, "tool": "execute"}, "then": {"calls": [
            {"name": "execute", "arguments": {"command": "cat note.txt; echo key:$GENERIC_API_KEY; exit 3"}}]}},
        {"when": {"turn": 2}, "then": {"text": "{{last}}"}},
        {"when": {"turn": 1}, "then": {"text": "no shell"}}
    ]);
    for (front, flags, has_shell) in [
        ("shell: true", &[][..], true),
        ("shell: true\ncwd: inner", &[], true),
        ("", &["--shell"], true),
        ("", &["-x"], true),
        ("", &[], false),
    ] {
        let (simulator, mut place) = ruled(&rules);
        with_programs(&mut place);
        place.write("note.txt", "outer");
        place.write("cards/inner/note.txt", "inner");
        write_cards(&place, &[("solo", &format!("model: generic.m\n{front}"), "Work.")]);
        write_prompt(&place, "x");
        run_cards(&place, flags).ok();
        let events = call_texts(&simulator).pop().unwrap_or_default();
        if has_shell {
            let note = if front.contains("cwd") { "inner" } else { "outer" };
            assert!(
                events.contains(note) && events.contains("key:") && !events.contains(support::KEY),
                "{events}"
            );
            assert!(events.contains('3'), "{events}");
        } else {
            assert_eq!(results(&place), [json!("no shell")]);
        }
    }
}

#[test]
fn skills_are_listed_in_the_instruction_and_read_with_a_tool() {
    let rules = json!([
        {"when": {"turn": 1, "tool": "read_skill"}, "then": {"calls": [
            {"name": "read_skill", "arguments": {"name": "letters"}},
            {"name": "read_skill", "arguments": {"name": "letters", "file": "forms/short.txt"}},
            {"name": "read_skill", "arguments": {"name": "letters", "file": "../../solo.md"}},
            {"name": "read_skill", "arguments": {"name": "poems"}}]}},
        {"when": {"turn": 2}, "then": {"text": "done"}}
    ]);
    let list = "# Skills\n\nThere are written guides for some tasks. When one fits what you are asked to do, read it \
                with the tool `read_skill` before you begin, and follow it. Where a guide mentions another file of its \
                folder, read that with the same tool and the argument `file`.\n\n- `letters`: How to write letters.";
    for (instruction, system) in [
        ("Write.", format!("Write.\n\n{list}\n")),
        ("Before.\n{{agentSkills}}\nAfter.", format!("Before.\n{list}\n\nAfter.")),
    ] {
        let (simulator, place) = ruled(&rules);
        let skill = "---\nname: letters\ndescription: How to write letters.\n---\nBegin with Dear.\n";
        place.write("cards/skills/letters/SKILL.md", skill);
        place.write("cards/skills/letters/forms/short.txt", "Hi.");
        write_cards(&place, &[("solo", "model: generic.m\nskills: [skills]", instruction)]);
        write_prompt(&place, "x");
        run_cards(&place, &[]).ok();
        let calls = simulator.calls();
        assert_eq!(calls[0].system, system);
        assert_eq!(calls[0].tools, ["read_skill"]);
        let texts: Vec<&str> = calls[1].results.iter().map(|result| result.text.as_str()).collect();
        assert_eq!(texts[..2], ["Begin with Dear.", "Hi."]);
        assert_eq!(texts[2], "`../../solo.md` is not in the folder of the skill `letters`");
        assert!(
            texts[3].starts_with("the arguments of `read_skill` do not satisfy its schema: "),
            "{}",
            texts[3]
        );
    }
}

#[test]
fn what_was_recorded_stands_in_for_the_tool_with_the_same_results() {
    let rules = json!([
        {"when": {"turn": 1, "tool": "execute"}, "then": {"calls": [
            {"name": "execute", "arguments": {"command": "echo {{prompt}} >> log.txt; wc -l < log.txt"}},
            {"name": "execute", "arguments": {"command": "echo {{prompt}}"}}]}},
        {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
    ]);
    let (simulator, mut place) = scripted(script(&rules));
    with_programs(&mut place);
    write_cards(&place, &[("solo", "model: generic.m\nshell: true", "Work.")]);
    place.write("rows.jsonl", "{\"p\":\"one\"}\n{\"p\":\"two\"}\n{\"p\":\"one\"}\n");
    run_cards(&place, &["--record-tools", "tape"]).ok();
    let (first, message) = (results(&place), call_texts(&simulator));
    assert_eq!(place.names("tape"), ["execute.jsonl"]);
    assert_eq!(place.read("log.txt"), "one\ntwo\none\n");
    let tape = place.read("tape/execute.jsonl");
    run_cards(&place, &["--stub", "execute=tape/execute.jsonl", "--record-tools", "again", "--overwrite"])
        .ok();
    assert_eq!(results(&place), first);
    assert_eq!(call_texts(&simulator)[message.len()..], message);
    assert_eq!(place.read("log.txt"), "one\ntwo\none\n");
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&place.read("again/execute.jsonl")), sorted(&tape));
}

#[test]
fn recorded_results_follow_the_id_of_their_row_when_rows_change_places() {
    let rules = json!([
        {"when": {"turn": 1, "tool": "execute"}, "then": {"calls": [
            {"name": "execute", "arguments": {"command": "echo x >> log.txt; wc -l < log.txt"}}]}},
        {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
    ]);
    let (_simulator, mut place) = scripted(script(&rules));
    with_programs(&mut place);
    write_cards(&place, &[("solo", "model: generic.m\nshell: true", "Work.")]);
    let rows =
        ["{\"id\":\"a\",\"p\":\"go\"}\n", "{\"id\":\"b\",\"p\":\"go\"}\n", "{\"id\":\"c\",\"p\":\"go\"}\n"];
    place.write("rows.jsonl", rows.concat());
    run_cards(&place, &["--id-field", "id", "--record-tools", "tape"]).ok();
    let first = results(&place);
    // Every row makes the same call, so only the row distinguishes the results.
    assert!(first[0] != first[1] && first[1] != first[2], "{first:?}");
    place.write("rows.jsonl", rows.iter().rev().copied().collect::<String>());
    run_cards(&place, &["--id-field", "id", "--stub", "execute=tape/execute.jsonl", "--overwrite"]).ok();
    let again: Vec<_> = results(&place).into_iter().rev().collect();
    assert_eq!(again, first);
}
