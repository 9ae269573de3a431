//! Results that must satisfy a schema.

use std::os::unix::fs::PermissionsExt;

use crate::support::{KEY, Place, each, scripted, simulated};
use rowmill_testkit::{SimulatedAnswer, SimulatorScript};
use serde_json::{Value, json};

use crate::support;

const MODELS: &[&str] = &["openai.m", "generic.m", "responses.m", "anthropic.m", "google.m"];

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"label": {"enum": ["good", "bad"]}, "score": {"type": "integer", "minimum": 0, "maximum": 9}},
  "required": ["label", "score"],
  "additionalProperties": false
}"#;

/// Runs one row per text with a schema.
fn run(place: &Place, texts: &[&str], schema: &str, flags: &[&str]) -> support::Ended {
    let rows: String = texts.iter().map(|text| format!("{}\n", json!({"t": text}))).collect();
    place.write("rows.jsonl", rows);
    place.write("schema.json", schema);
    let always = ["-p", "{{t}}", "--json-schema", "schema.json", "--retry-wait", "1ms", "--overwrite"];
    place.run_rows(&[&always[..], flags].concat())
}

fn satisfies(result: &Value) -> bool {
    let label = result["label"].as_str();
    matches!(label, Some("good" | "bad")) && result["score"].as_u64().is_some_and(|score| score <= 9)
}

#[test]
fn every_protocol_gives_results_that_satisfy_the_schema() {
    for model in MODELS {
        for setting in ["", "?stream=true"] {
            let (simulator, place) = simulated();
            let ended = run(&place, &["a", "b", "c"], SCHEMA, &["-m", &format!("{model}{setting}")]).ok();
            let results = each(&place.json("out.jsonl"), "/result");
            assert!(results.iter().all(satisfies), "{model}{setting}: {results:?}");
            assert_eq!(
                (simulator.stats().requests, &ended.summary()["output_mode"]),
                (3, &json!("structured"))
            );
        }
    }
}

#[test]
fn each_protocol_gets_the_schema_in_its_own_strict_way() {
    for (model, place_of_schema, strict) in [
        ("openai.m", "/response_format/json_schema/schema", Some("/response_format/json_schema/strict")),
        ("generic.m", "/response_format/json_schema/schema", None),
        ("responses.m", "/text/format/schema", Some("/text/format/strict")),
        ("anthropic.m", "/tools/0/input_schema", None),
        ("google.m", "/generationConfig/responseJsonSchema", None),
        ("openai.m?structured=tool_use", "/tools/0/function/parameters", None),
    ] {
        let (simulator, place) = simulated();
        run(&place, &["a"], SCHEMA, &["-m", model]).ok();
        let body = simulator.requests().pop().unwrap().json();
        let sent = body.pointer(place_of_schema).unwrap_or(&Value::Null);
        assert_eq!(sent["required"], json!(["label", "score"]), "{model}: {body}");
        if let Some(strict) = strict {
            assert_eq!(body.pointer(strict), Some(&json!(true)), "{model}");
        }
    }
}

#[test]
fn a_schema_whose_root_is_no_object_gives_the_bare_value() {
    for model in MODELS {
        for (schema, expected) in
            [(r#"{"enum":["only"]}"#, json!("only")), (r#"{"type":"array","maxItems":0}"#, json!([]))]
        {
            let (_simulator, place) = simulated();
            run(&place, &["a"], schema, &["-m", model]).ok();
            assert_eq!(each(&place.json("out.jsonl"), "/result"), [expected], "{model}");
        }
    }
}

#[test]
fn code_fences_are_no_fault() {
    for model in MODELS {
        let (simulator, place) = simulated();
        run(&place, &["[[fenced]]"], SCHEMA, &["-m", model, "--repairs", "0"]).ok();
        assert!(satisfies(&place.json("out.jsonl")[0]["result"]), "{model}");
        assert_eq!(simulator.stats().requests, 1, "{model}");
    }
}

#[test]
fn a_violation_is_sent_back_once_with_what_is_wrong() {
    for model in MODELS {
        let (simulator, place) = simulated();
        let ended = run(&place, &["[[wrongx1]]"], SCHEMA, &["-m", model]).ok();
        let ended = ended.says("repairs: 1 answer violated the schema and was requested again");
        assert_eq!(ended.summary()["calls"]["repairs"], 1);
        let envelope = &place.json("out.jsonl")[0];
        assert!(satisfies(&envelope["result"]), "{model}: {envelope}");
        let requests = simulator.requests();
        assert_eq!(requests.len(), 2, "{model}");
        let reported = requests[1].json();
        let reported = ["messages", "input", "contents"]
            .iter()
            .find_map(|field| reported[*field].as_array())
            .unwrap()
            .clone();
        assert_eq!(reported.len(), 3, "{model}");
        assert!(["assistant", "model"].contains(&reported[1]["role"].as_str().unwrap()), "{model}");
        let feedback = reported[2].to_string();
        assert!(
            feedback.contains("does not satisfy the required JSON Schema") && feedback.contains("label"),
            "{feedback}"
        );
    }
}

#[test]
fn when_repairs_are_used_up_the_row_fails_and_keeps_what_the_model_answered() {
    for model in MODELS {
        for (flags, calls) in [(&[][..], 2), (&["--repairs", "0"], 1), (&["--repairs", "3"], 4)] {
            let (simulator, place) = simulated();
            run(&place, &["[[wrong]]", "fine"], SCHEMA, &[&["-m", model, "--parallel", "1"], flags].concat())
                .code(3);
            let envelopes = place.json("out.jsonl");
            let error = &envelopes[0]["error"];
            assert_eq!(
                (&error["type"], &error["attempts"]),
                (&json!("StructuredOutputError"), &json!(calls))
            );
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with("the answer does not satisfy the JSON schema: "), "{message}");
            let raw: Value = serde_json::from_str(error["raw_text"].as_str().unwrap()).unwrap();
            assert!(!satisfies(&raw), "{model}: {raw}");
            assert_eq!((&envelopes[1]["ok"], simulator.stats().requests), (&json!(true), calls + 1));
        }
    }
}

#[test]
fn an_answer_that_is_no_json_or_is_cut_never_passes() {
    for text in [
        "sorry, no",
        "{\"label\": \"good\", \"score\": 3",
        "{\"label\": \"good\", \"sco",
        "{\"label\":\"good\",\"score\":3} and more",
    ] {
        let answer = text.to_owned();
        let script =
            SimulatorScript::new().key(KEY).answer_prompts(move |_, _| SimulatedAnswer::Text(answer.clone()));
        let (_simulator, place) = scripted(script);
        run(&place, &["a"], SCHEMA, &["-m", "openai.m"]).code(3);
        let error = &place.json("out.jsonl")[0]["error"];
        assert_eq!((&error["type"], &error["raw_text"]), (&json!("StructuredOutputError"), &json!(text)));
        assert!(error["message"].as_str().unwrap().contains("the answer is not JSON"), "{error}");
    }
}

#[test]
fn the_text_of_numbers_and_the_order_of_keys_are_those_of_the_model() {
    let script = SimulatorScript::new().key(KEY).answer_prompts(|_, _| {
        SimulatedAnswer::Text("{ \"z\": 1.50,\n \"a\": 12345678901234567890 }".into())
    });
    let (_simulator, place) = scripted(script);
    run(&place, &["a"], r#"{"type":"object"}"#, &["-m", "openai.m"]).ok();
    assert!(place.read("out.jsonl").contains(r#""result":{"z":1.50,"a":12345678901234567890},"#));
}

#[test]
fn null_is_a_result_where_the_schema_allows_it_and_a_violation_where_not() {
    for model in MODELS {
        // A strict mode whose root must be an object wraps the value in one.
        let answer = if *model == "google.m" { Value::Null } else { json!({"value": null}) };
        let (_simulator, place) = scripted(
            SimulatorScript::new().answer_prompts(move |_, _| SimulatedAnswer::Json(answer.clone())),
        );
        run(&place, &["a"], r#"{"type":["object","null"]}"#, &["-m", model]).ok();
        let line = r#"{"id":1,"row_number":1,"ok":true,"result":null,"error":null}"#;
        assert_eq!(place.read("out.jsonl"), format!("{line}\n"), "{model}");
        run(&place, &["a"], SCHEMA, &["-m", model]).code(3);
        assert_eq!(place.json("out.jsonl")[0]["error"]["type"], "StructuredOutputError", "{model}");
    }
    let (_simulator, place) = simulated();
    run(&place, &["[[null]]"], r#"{"type":["object","null"]}"#, &["-m", "openai.m"]).ok();
    assert_eq!(place.json("out.jsonl")[0]["result"], Value::Null);
}

#[test]
fn a_schema_that_is_not_valid_is_refused_before_the_first_call_and_names_the_place() {
    for (schema, message) in [
        ("{", "invalid JSON schema in `schema.json`: EOF while parsing an object at line 1 column 1"),
        ("[]", "invalid JSON schema in `schema.json`: it must be a JSON object"),
        (
            r#"{"properties":{"a":{"type":"text"}}}"#,
            "invalid JSON schema in `schema.json`: at `/properties/a/type`: ",
        ),
        (r#"{"required":"a"}"#, "invalid JSON schema in `schema.json`: at `/required`: "),
        (r##"{"$ref":"#/$defs/none"}"##, "invalid JSON schema in `schema.json`: "),
    ] {
        let (simulator, place) = simulated();
        let ended = run(&place, &["a"], schema, &["-m", "openai.m"]);
        ended.code(1).says(&format!("error[RM1102]: {message}"));
        assert_eq!((simulator.stats().connections, place.exists("out.jsonl")), (0, false), "{schema}");
    }
}

/// A place with a Python module, and the machine's Python if it has one.
fn with_python() -> Place {
    let mut place = Place::new();
    place.set("PATH", &std::env::var_os("PATH").unwrap().into_string().unwrap());
    place.write_rows(1);
    place.write(
        "shapes.py",
        "class Outer:\n    class Inner:\n        @classmethod\n        def model_json_schema(cls):\n            \
         return {'enum': [1, 2]}\nplain = 1\n",
    );
    place.write("broken.py", "raise ValueError('no such luck')\n");
    place
}

#[test]
fn a_schema_model_is_asked_of_the_machines_python() {
    let place = with_python();
    let run = |spec: &str| place.run_rows(&["-m", "passthrough", "-p", "{{n}}", "--schema-model", spec]);
    for (spec, code, message) in [
        (
            "shapes",
            2,
            "error[RM0001]: expected `--schema-model` in the form `module.path:ClassName`, got `shapes`",
        ),
        ("none:C", 1, "error[RM1103]: could not import schema model module none: No module named 'none'"),
        ("broken:C", 1, "error[RM1103]: could not import schema model module broken: no such luck"),
        ("shapes:Outer.C", 1, "error[RM1103]: could not resolve schema model shapes:Outer.C: missing C"),
        (
            "shapes:plain",
            1,
            "error[RM1103]: schema model shapes:plain must point to a pydantic BaseModel subclass",
        ),
    ] {
        run(spec).code(code).says(message);
        assert!(!place.exists("out.jsonl"));
    }
    let summary = run("shapes:Outer.Inner").ok().summary();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), [json!(1)]);
    assert_eq!([&summary["schema"], &summary["schema_model"]], [&Value::Null, &json!("shapes:Outer.Inner")]);
}

#[test]
fn the_python_that_is_first_on_the_path_is_the_one_that_is_asked() {
    let (simulator, mut place) = simulated();
    let script = "#!/bin/sh\nprintf '{\"type\":\"object\",\"title\":\"%s\"}' \"$3\"\n";
    place.write("bin/python3", script);
    std::fs::set_permissions(place.path("bin/python3"), PermissionsExt::from_mode(0o755)).unwrap();
    place.set("PATH", &place.path("bin").display().to_string());
    place.write_rows(1);
    place.run_rows(&["-m", "openai.m", "--schema-model", "my.shapes:Review"]).ok();
    let body = simulator.requests().pop().unwrap().json();
    assert_eq!(body.pointer("/response_format/json_schema/schema/title"), Some(&json!("my.shapes:Review")));

    place.write("bin/python3", "#!/bin/sh\necho '{\"type\": 7}'\n");
    let ended = place.run_rows(&["-m", "openai.m", "--schema-model", "a:B", "--overwrite"]);
    ended.code(1).says("error[RM1102]: invalid JSON schema in `a:B`: at `/type`: ");
}

#[test]
fn without_python_a_schema_model_is_refused_with_the_remedy() {
    let (simulator, mut place) = simulated();
    place.set("PATH", &place.path("tmp").display().to_string());
    place.write_rows(1);
    let ended = place.run_rows(&["-m", "openai.m", "--schema-model", "shapes:Review"]);
    let ended = ended
        .code(1)
        .says("error[RM1103]: `--schema-model` needs Python, but neither `python3` nor `python` was found\n");
    ended.says("help: install Python, or write the schema to a file and use `--json-schema`\n");
    assert_eq!((simulator.stats().connections, place.exists("out.jsonl")), (0, false));
}
