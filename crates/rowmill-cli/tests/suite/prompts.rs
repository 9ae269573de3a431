//! The requests that reach the provider.

use crate::support::{KEY, Place, chat_prompts, each, file_url, scripted, simulated};
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::{Value, json};

/// The prompts of a run with these rows and flags.
fn prompts(rows: &str, flags: &[&str]) -> Vec<String> {
    let (simulator, place) = simulated();
    place.write("rows.jsonl", rows);
    place.run_rows(&[&["-m", "openai.m", "--parallel", "1"], flags].concat()).ok();
    chat_prompts(&simulator)
}

/// The system messages of the last chat request.
fn system(simulator: &Simulator) -> Vec<Value> {
    let body = simulator.requests().pop().unwrap().json();
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == "system")
        .map(|message| message["content"].clone())
        .collect()
}

#[test]
fn the_default_template_is_the_whole_row() {
    let rows = "{\"b\":1,\"a\":[\"x\",{\"é\":null}],\"e\":{},\"l\":[],\"s\":\"q\\\"\\n\"}\n{}\n";
    let first = "Input record:\n\n{\n  \"b\": 1,\n  \"a\": [\n    \"x\",\n    {\n      \"é\": null\n    }\n  ],\n  \"e\": {},\n  \"l\": [],\n  \"s\": \"q\\\"\\n\"\n}\n";
    assert_eq!(prompts(rows, &[]), [first, "Input record:\n\n{}\n"]);
}

#[test]
fn fields_are_filled_in_by_the_rules_of_the_template() {
    let rows = "{\"a\":\"x{{b}}\",\"b\":true,\"c d\":null,\"n.k\":1.50,\"o\":{\"k\":[1,\"é\"]}}\n";
    for (template, expected) in [
        ("{{a}}|{{ b }}|{{c d}}|{{n.k}}|{{o}}", "x{{b}}|true|null|1.50|{\"k\": [1, \"é\"]}"),
        ("{{}} {{ }} {a} {{a", "{{}} {{ }} {a} {{a"),
        ("{{a}}{{a}}", "x{{b}}x{{b}}"),
        ("plain", "plain"),
        ("-{{b}}", "-true"),
    ] {
        assert_eq!(prompts(rows, &["-p", template]), [expected], "{template}");
    }
    assert_eq!(prompts("{\"row_json\":\"mine\"}\n", &["-p", "{{row_json}}"]), ["mine"]);
    assert_eq!(prompts("{\"a\":1}\n", &["-p", "<{{row_json}}>"]), ["<{\n  \"a\": 1\n}>"]);
}

#[test]
fn an_empty_prompt_is_sent_as_it_is() {
    let (simulator, place) = simulated();
    place.write_rows(1);
    place.run_rows(&["-m", "openai.m", "-p", ""]).ok();
    assert_eq!(chat_prompts(&simulator), [""]);
}

#[test]
fn missing_fields_send_nothing_and_are_all_named() {
    let (simulator, place) = simulated();
    place.write("rows.jsonl", "{\"a\":1}\n{\"b\":2}\n{\"a\":1,\"b\":2,\"c\":3}\n");
    place.run_rows(&["-m", "openai.m", "-p", "{{a}} {{b}} {{c}} {{b}}"]).code(3);
    let envelopes = place.json("out.jsonl");
    let messages = each(&envelopes, "/error/message");
    assert_eq!(
        messages[..2],
        [json!("Missing template fields: b, c"), json!("Missing template fields: a, c")]
    );
    assert_eq!(each(&envelopes, "/error/type")[0], "MissingTemplateField");
    assert_eq!(envelopes[0]["error"].get("attempts"), None);
    assert_eq!(chat_prompts(&simulator), ["1 2 3 2"]);
    let ended = place.run_rows(&["-m", "openai.m", "-p", "{{{a}}}", "--overwrite"]).code(1);
    ended.says("error[RM1008]: the template names `{{{a}}`, which no row has\n");
}

#[test]
fn without_an_instruction_there_is_no_system_message_in_any_protocol() {
    for (model, places) in [
        ("openai.m", &["/messages/0/role"][..]),
        ("responses.m", &["/instructions"]),
        ("anthropic.m", &["/system"]),
        ("google.m", &["/systemInstruction"]),
    ] {
        let (simulator, place) = simulated();
        place.write_rows(1);
        place.write("instruction.md", "Be brief.\n");
        place.run_rows(&["-m", model, "-p", "hi"]).ok();
        let bare = simulator.requests().pop().unwrap().json();
        for pointer in places {
            assert!(bare.pointer(pointer).is_none_or(|role| role == "user"), "{model}: {bare}");
        }
        assert!(!bare.to_string().contains("system"), "{bare}");
        place.run_rows(&["-m", model, "-p", "hi", "--instruction", "instruction.md", "--overwrite"]).ok();
        let reported = simulator.requests().pop().unwrap().json();
        assert!(reported.to_string().contains("Be brief.\\n"), "{reported}");
        assert!(
            !reported.to_string().contains(place.path("").to_str().unwrap()),
            "no path leaks into the prompt"
        );
    }
}

#[test]
fn an_instruction_is_the_same_for_all_rows_and_comes_before_the_prompt() {
    let (simulator, place) = simulated();
    place.write_rows(3);
    place.write("i.md", "Be {{n}}.");
    place.run_rows(&["-m", "generic.m", "-p", "{{n}}", "--instruction", "i.md", "--parallel", "1"]).ok();
    let bodies: Vec<Value> =
        simulator.requests().iter().map(|request| request.json()["messages"].clone()).collect();
    let messages = |n: u32| json!([{"role": "system", "content": "Be {{n}}."}, {"role": "user", "content": n.to_string()}]);
    assert_eq!(bodies, [messages(1), messages(2), messages(3)]);
}

#[test]
fn variables_fill_the_instruction_and_never_the_template() {
    let (simulator, place) = simulated();
    place.write_rows(1);
    place.write("i.md", "{{tone}}/{{ who }}/{{note}}");
    place.write("note.txt", "from a file {{tone}}");
    place.write("vars.json", r#"{"tone": "json", "who": "json", "note": "json"}"#);
    let files = ["--instruction", "i.md", "--vars-json", "vars.json", "--var-file", "note=note.txt"];
    let run = |more: &[&str]| place.run_rows(&[&["-m", "openai.m", "--overwrite"], more].concat());
    run(&[&files[..], &["--var", "tone=a=b", "--var", "who="]].concat()).ok();
    assert_eq!(system(&simulator), [json!("a=b//from a file {{tone}}")]);
    run(&["--instruction", "i.md", "--vars-json", "vars.json", "--var-file", "tone=note.txt"]).ok();
    assert_eq!(system(&simulator), [json!("from a file {{tone}}/json/json")]);
    let ended = run(&[&files[..], &["-p", "{{tone}}"]].concat());
    ended.code(1).says("the template names `{{tone}}`, which no row has");
}

#[test]
fn variables_that_cannot_be_used_are_reported() {
    let place = Place::new();
    place.write_rows(1);
    place.write("i.md", "{{tone}}");
    place.write("list.json", "[1]");
    place.write("number.json", r#"{"a":1}"#);
    place.write("broken.json", "{");
    for (flags, code, message) in [
        (&["--var", "tone"][..], 2, "--var entries must have the form name=value"),
        (&["--var", "=x"], 2, "--var entries must have the form name=value"),
        (&["--var-file", "tone"], 2, "--var-file entries must have the form name=path"),
        (&["--var-file", "tone=none.txt"], 1, "file not found for `--var-file`: `none.txt`"),
        (&["--vars-json", "none.json"], 1, "file not found for `--vars-json`: `none.json`"),
        (&["--vars-json", "list.json"], 2, "--vars-json must contain a JSON object: `list.json`"),
        (
            &["--vars-json", "broken.json"],
            2,
            "--vars-json must contain a JSON object: `broken.json`\n  cause: EOF while parsing an object at line 1",
        ),
        (
            &["--vars-json", "number.json"],
            2,
            "--vars-json keys and values must be strings: `number.json`, line 1",
        ),
        (&["--var", "other=1"], 1, "tone"),
    ] {
        let ended = place.run_rows(&[&["-m", "passthrough", "--instruction", "i.md"], flags].concat());
        ended.code(code).says(message);
        assert!(!place.exists("out.jsonl"), "{flags:?}");
    }
    let ended = place.run_rows(&["-m", "passthrough", "--var", "tone=x"]);
    ended.code(1).says("variables were given but there is no `--instruction`");
    let ended =
        place.run_rows(&["-m", "passthrough", "--instruction", "i.md", "--var", "tone=x", "--var", "u=1"]);
    ended.ok().says("warning: variable `u` is not used by the instruction\n");
}

#[test]
fn template_instruction_and_schema_come_from_a_path_or_an_address() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
    let texts = [("t.md", "\u{feff}Row {{n}}!"), ("i.md", "Do it."), ("s.json", schema)];
    let script = texts
        .iter()
        .fold(SimulatorScript::new().key(KEY), |script, (name, text)| script.serve_text(*name, *text));
    let (simulator, place) = scripted(script);
    place.write_rows(1);
    for (name, text) in texts {
        place.write(&format!("texts/{name}"), text);
    }
    let from_web = |name: &str| format!("{}/text/{name}", simulator.url());
    let from_file = |name: &str| file_url(&place.path(&format!("texts/{name}")));
    let from_path = |name: &str| format!("texts/{name}");
    let ways: [&dyn Fn(&str) -> String; 3] = [&from_web, &from_file, &from_path];
    for way in ways {
        let (template, instruction, schema) = (way("t.md"), way("i.md"), way("s.json"));
        let ended = place.run_rows(&[
            "-m",
            "openai.m",
            "--overwrite",
            "--template",
            &template,
            "--instruction",
            &instruction,
            "--json-schema",
            &schema,
        ]);
        let summary = ended.ok().summary();
        assert_eq!(
            [&summary["template"], &summary["instruction"], &summary["schema"]],
            [&json!(template), &json!(instruction), &json!(schema)]
        );
        let body = simulator.requests().pop().unwrap().json();
        assert_eq!(
            body["messages"],
            json!([{"role": "system", "content": "Do it."}, {"role": "user", "content": "Row 1!"}])
        );
        assert_eq!(body["response_format"]["json_schema"]["schema"]["required"], json!(["a"]));
    }
}

#[test]
fn texts_that_cannot_be_had_are_reported_before_anything_is_sent() {
    let (simulator, place) = simulated();
    place.write_rows(1);
    place.write("folder/x", "");
    place.write("latin.txt", b"caf\xe9");
    let missing = format!("{}/text/none", simulator.url());
    let not_found = format!("status 404: `{missing}`");
    for flag in ["--template", "--instruction", "--json-schema"] {
        for (source, message) in [
            ("none.md", format!("file not found for `{flag}`: `none.md`")),
            ("folder", format!("path for `{flag}` is not a file: `folder`")),
            ("latin.txt", format!("text for `{flag}` is not valid UTF-8 at byte 4: `latin.txt`")),
            ("file:///none/x", format!("file not found for `{flag}`: `/none/x`")),
            ("ftp://host/x", format!("text for `{flag}` cannot be read from `ftp://`")),
            (missing.as_str(), format!("cannot get the text for `{flag}`, {not_found}")),
            ("http://127.0.0.1:1/x", format!("no response for `{flag}` from `http://127.0.0.1:1/x`")),
        ] {
            place
                .run_rows(&["-m", "openai.m", flag, source])
                .code(1)
                .says(&format!("error[RM1101]: {message}"));
        }
    }
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(place.names("."), ["folder", "latin.txt", "rows.jsonl", "tmp"]);
}

#[test]
fn settings_of_the_model_string_are_sent() {
    let (simulator, place) = simulated();
    place.write_rows(1);
    place.run_rows(&["-m", "openai/gpt-5?temp=0.5&max_tokens=100&reasoning=low&service_tier=flex"]).ok();
    let body = simulator.requests().pop().unwrap().json();
    for (name, value) in [
        ("model", json!("gpt-5")),
        ("temperature", json!(0.5)),
        ("max_completion_tokens", json!(100)),
        ("reasoning_effort", json!("low")),
        ("service_tier", json!("flex")),
    ] {
        assert_eq!(body[name], value, "{name}");
    }
}
