//! A run as a file: what `--print-spec` prints, `--spec` runs, and the schema accepts.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use rowmill::{InputLocation, InputSpec, OutputTarget, RunSpec};
use serde_json::{Value, json};

use crate::agents_support::{ruled, write_cards};
use crate::examples::{EXAMPLES, copy, examples, run_with};
use crate::support::{Ended, Place, finish, simulated};

/// The schema of specs in the repository.
fn schema() -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-spec.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn assert_accepted(schema: &jsonschema::Validator, spec: &str) {
    let spec: Value = serde_json::from_str(spec).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(&spec).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Runs a command, and its spec, which must write the same bytes; returns the spec.
#[track_caller]
fn same_by_spec(place: &Place, arguments: &[&str], output: &str) -> String {
    place.run(&[arguments, &["--no-progress"]].concat()).ok();
    let by_flags = fs::read(place.path(output)).unwrap();
    let spec = place.run(&[arguments, &["--print-spec"]].concat()).ok().stdout;
    assert_accepted(&schema(), &spec);
    place.write("spec.json", &spec);
    // A spec is complete, so the file is not needed.
    drop(fs::remove_file(place.path("rowmill.toml")));
    place.run(&["--spec", "spec.json", "--overwrite", "--no-progress"]).ok();
    assert!(fs::read(place.path(output)).unwrap() == by_flags, "{output} differs");
    assert_eq!(place.run(&["--spec", "spec.json", "--print-spec"]).ok().stdout, spec);
    spec
}

#[test]
fn a_run_over_json_lines_is_the_same_from_its_spec_without_the_configuration() {
    let place = Place::new();
    place.write_rows(20);
    place.write("rowmill.toml", "[run]\nmodel = \"short\"\nretries = 2\n[aliases]\nshort = \"simulated\"\n");
    place.write("say.md", "Say it in {{language}}.");
    let flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "--prompt", "Row {{n}}", "--sample", "7"];
    let more = ["--instruction", "say.md", "--var", "language=Welsh", "--include-input", "--max-outage", "0"];
    let spec: Value =
        serde_json::from_str(&same_by_spec(&place, &[&flags[..], &more].concat(), "out.jsonl")).unwrap();
    assert_eq!(spec["version"], 1);
    assert_eq!(spec["work"]["model"], "short");
    assert_eq!(spec["work"]["retries"], 2);
    assert_eq!(spec["work"]["timeout"], "10m");
    assert_eq!(spec["work"]["max_outage"], "0s");
    assert_eq!(spec["work"]["stop_rules"]["same_failure"], 50);
    assert_eq!(spec["selection"]["sample"], json!({"count": 7, "seed": 0}));
}

#[test]
fn a_query_over_csv_is_the_same_from_its_spec() {
    let place = Place::new();
    place.write("t.csv", "zip;n\n01;5\n02;7\n01;9\n");
    let query = "SELECT zip, sum(n) AS n FROM input GROUP BY zip ORDER BY zip";
    let flags = ["-i", "t.csv", "-o", "out.jsonl", "-m", "simulated", "--sql", query, "--delimiter", ";"];
    let more = ["--types", "zip=text", "--id-field", "zip", "--prompt", "{{zip}}: {{n}}"];
    same_by_spec(&place, &[&flags[..], &more].concat(), "out.jsonl");
}

#[test]
fn tables_are_the_same_from_their_specs() {
    let place = Place::new();
    place.write_rows(9);
    place.write(
        "s.json",
        r#"{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"]}"#,
    );
    for output in ["out.parquet", "out.csv"] {
        let flags =
            ["-i", "rows.jsonl", "-o", output, "--flatten", "-m", "simulated", "--json-schema", "s.json"];
        same_by_spec(&place, &[&flags[..], &["-p", "{{n}}"]].concat(), output);
    }
    let split = ["-i", "rows.jsonl", "--output-dir", "parts", "--split-by", "input.n", "-m", "passthrough"];
    same_by_spec(&place, &split, "parts/3.jsonl");
}

#[test]
fn an_agent_with_a_stubbed_tool_is_the_same_from_its_spec() {
    let rules = json!([
        {"when": {"turn": 1, "tool": "find"}, "then": {"calls": [{"name": "find", "arguments": {"q": "{{prompt}}"}}]}},
        {"when": {"turn": 2}, "then": {"text": "so: {{last}}"}}
    ]);
    let (_simulator, place) = ruled(&rules);
    write_cards(&place, &[("solo", "model: generic.m", "Look.")]);
    place.write("rows.jsonl", "{\"p\":\"one\"}\n{\"p\":\"two\"}\n");
    let flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "--agent-card", "cards", "-p", "{{p}}"];
    let more = ["--stub", "find=text:found", "--turns", "4", "--parallel", "1"];
    same_by_spec(&place, &[&flags[..], &more].concat(), "out.jsonl");
    assert_eq!(place.json("out.jsonl")[0]["result"], "so: found");
}

#[test]
fn printing_a_spec_reads_no_rows_and_leaves_nothing_behind() {
    let (simulator, place) = simulated();
    let before = place.names(".");
    // Neither the rows nor the card exist.
    let flags = ["-i", "-", "--input-format", "jsonl", "-o", "out.jsonl", "-m", "openai.m"];
    let ended = place.run(&[&flags[..], &["--agent-card", "none.md", "--print-spec"]].concat()).ok();
    assert_accepted(&schema(), &ended.stdout);
    assert_eq!((ended.stderr.as_str(), place.names(".")), ("", before));
    assert_eq!(simulator.calls().len(), 0);
}

#[test]
fn variables_stay_unexpanded_in_a_spec_and_no_key_gets_into_it() {
    let (simulator, mut place) = simulated();
    place.write_rows(2);
    place.set("TEAM_TOKEN", "planted-team-token-4711");
    place.set("LAB_KEY", "sk-test-key");
    let provider = format!(
        "[providers.lab]\nbase_url = \"{}/v1\"\napi_key_env = \"LAB_KEY\"\nheaders = {{ x-team = \"${{TEAM_TOKEN}}\" }}\n",
        simulator.url()
    );
    let server = "[mcp.servers.shop]\nurl = \"http://h.test\"\naccess_token = \"${TEAM_TOKEN}\"\n";
    place.write("rowmill.toml", provider + server);
    let flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "-m", "lab.m", "-p", "{{n}}"];
    let spec = same_by_spec(&place, &flags, "out.jsonl");
    assert_eq!(spec.matches("${TEAM_TOKEN}").count(), 2, "{spec}");
    assert!(!spec.contains("planted") && !spec.contains("sk-test-key"), "{spec}");
    assert_eq!(simulator.calls().len(), 4);
}

#[test]
fn a_credential_that_the_user_wrote_is_kept_and_warned_of() {
    let mut place = Place::new();
    place.set("LAB_API_KEY", "sk-planted-0123456789abcdef");
    let flags =
        ["-i", "https://h.test/rows.jsonl?token=sk-planted-0123456789abcdef", "-o", "-", "-m", "simulated"];
    let ended = place.run(&[&flags[..], &["--print-spec"]].concat()).ok();
    let ended = ended.says("warning: the spec contains a credential from the environment");
    assert!(ended.stdout.contains("token=sk-planted-0123456789abcdef"));
    assert!(!ended.stderr.contains("planted"));
}

/// A spec that works, for tests of the flags beside it.
fn with_spec() -> Place {
    let place = Place::new();
    place.write_rows(2);
    let spec = place.run_rows(&["-m", "passthrough", "-p", "{{n}}", "--print-spec"]).ok().stdout;
    place.write("spec.json", spec);
    place
}

#[test]
fn flags_that_are_part_of_a_spec_are_refused_beside_it_by_name() {
    let mut place = with_spec();
    for (flag, value) in [
        ("--model", Some("simulated")),
        ("--where", Some("n = 1")),
        ("--limit", Some("1")),
        ("--retries", Some("1")),
        ("--shell", None),
        ("--durable", None),
        ("--summary-output", Some("s.json")),
    ] {
        let arguments: Vec<&str> = ["--spec", "spec.json", flag].into_iter().chain(value).collect();
        place.run(&arguments).code(2).says(&format!("{flag} and --spec cannot be used together"));
    }
    for (flag, value) in [("--input", "rows.jsonl"), ("--output", "out.jsonl")] {
        let messages = place.run(&["--spec", "spec.json", flag, value]).code(2).stderr;
        assert!(messages.contains(flag) && messages.contains("--spec"), "{messages}");
    }
    assert!(!place.exists("out.jsonl"));
    // Nothing on the command line set these, and the spec shows it.
    place.set("ROWMILL_MODEL", "no.such-model");
    place.set("ROWMILL_RETRIES", "9");
    place.run(&["--spec", "spec.json", "--no-progress", "--final-summary"]).ok();
    assert_eq!(place.json("out.jsonl")[0]["result"], "1");
}

#[test]
fn what_becomes_of_what_exists_can_be_set_beside_a_spec() {
    let place = with_spec();
    let spec = |more: &[&str]| place.run(&[&["--spec", "spec.json"], more].concat());
    spec(&[]).ok();
    spec(&[]).code(1).says("error[RM1301]");
    spec(&["--overwrite"]).ok();
    spec(&["--resume"]).ok().says("2");
    let changed = place.read("spec.json").replace("{{n}}", "{{n}}!");
    place.write("spec.json", changed);
    spec(&["--resume"]).code(1).says("error[RM1306]");
    spec(&["--accept-changes"]).code(2).says("--accept-changes requires --resume");
    spec(&["--resume", "--accept-changes"]).ok();
    spec(&["--resume", "--overwrite"]).code(2).says("--resume and --overwrite cannot be used together");
}

/// Runs a command with a text on its standard input.
fn piped(place: &Place, arguments: &[&str], text: &str) -> Ended {
    let mut child = place.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    finish(child)
}

#[test]
fn a_spec_is_taken_from_standard_input_unless_the_rows_come_from_there() {
    let place = with_spec();
    let spec = place.read("spec.json");
    piped(&place, &["run", "--spec", "-"], &spec).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
    let mut rows: Value = serde_json::from_str(&spec).unwrap();
    rows["input"]["location"] = json!("stdin");
    piped(&place, &["run", "--spec", "-"], &rows.to_string())
        .code(2)
        .says("standard input cannot carry both the spec and the rows");
    place.run(&["--spec", "none.json"]).code(1).says("error[RM1204]: cannot read the spec `none.json`");
}

#[test]
fn nothing_is_written_over_the_spec_of_a_run() {
    let place = with_spec();
    let spec: Value = serde_json::from_str(&place.read("spec.json")).unwrap();
    for (field, value) in [
        ("output", json!({"file": "own.json"})),
        ("error_output", json!("own.json")),
        ("telemetry_output", json!("own.json")),
        ("summary_output", json!("own.json")),
    ] {
        let mut own = spec.clone();
        own[field] = value;
        place.write("own.json", own.to_string());
        place.run(&["--spec", "own.json", "--overwrite"]).code(1).says("error[RM1303]").says("own.json");
        assert_eq!(place.read("own.json"), own.to_string(), "{field}");
    }
}

#[test]
fn a_plan_of_a_spec_is_that_of_its_command() {
    let place = with_spec();
    let by_flags =
        place.rowmill(&["plan", "-i", "rows.jsonl", "-m", "passthrough", "-p", "{{n}}", "--json"]).ok();
    let by_spec = place.rowmill(&["plan", "--spec", "spec.json", "--json"]).ok();
    assert_eq!(by_spec.stdout, by_flags.stdout);
    place.rowmill(&["plan", "--spec", "spec.json", "--limit", "1"]).code(2).says("--limit and --spec");
}

#[test]
fn the_short_spec_of_the_docs_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-spec.md");
    let page = fs::read_to_string(page).unwrap();
    let spec = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    assert_accepted(&schema(), spec);
    let place = Place::new();
    place.write("reviews.jsonl", "{\"id\":\"a\",\"review\":\"Good.\"}\n");
    place.write("spec.json", spec);
    place.run(&["--spec", "spec.json"]).ok();
    assert_eq!(place.json("results.jsonl")[0]["id"], "a");
}

/// A minimal spec.
fn short() -> Value {
    json!({
        "version": 1,
        "input": {"location": {"file": "rows.jsonl"}},
        "output": {"file": "out.jsonl"},
        "work": {"model": "passthrough"},
    })
}

#[test]
fn what_a_short_spec_leaves_out_is_as_in_a_short_command() {
    let place = Place::new();
    let by_flags = place.run_rows(&["-m", "passthrough", "--print-spec"]).ok().stdout;
    let by_flags = RunSpec::from_json(&by_flags, "flags").unwrap();
    let mut by_hand = RunSpec::from_json(&short().to_string(), "hand").unwrap();
    let input = InputSpec::new(InputLocation::File("rows.jsonl".into()), None);
    let mut by_code = RunSpec::new(input, OutputTarget::File("out.jsonl".into()));
    by_code.work.model = "passthrough".into();
    by_code.work.stop_rules.same_failure = Some(50);
    assert_eq!(by_hand, by_code);
    // Whether the model was set on the command line matters only to agents.
    by_hand.work.agents.model_given = true;
    assert_eq!(by_hand, by_flags);
}

/// A value to put into a short spec, its position, and the reported position; `null` removes the field.
fn broken() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("/version", json!(2), "`version`"),
        ("/version", json!("1"), "`version`"),
        ("/version", Value::Null, "missing field `version`"),
        ("/input", Value::Null, "missing field `input`"),
        ("/output", Value::Null, "missing field `output`"),
        ("/inptu", json!({}), "`inptu`"),
        ("/input/location", Value::Null, "`input`"),
        ("/input/location", json!({"fil": "rows.jsonl"}), "`input.location.fil`"),
        ("/input/location", json!({"file": 7}), "`input.location.file`"),
        ("/input/format", json!("xml"), "`input.format`"),
        ("/selection", json!({"limit": -1}), "`selection.limit`"),
        ("/selection", json!({"sample": {"seed": 1}}), "`selection.sample`"),
        ("/query", json!({"types": [{"column": "zip"}]}), "`query.types[0]`"),
        ("/prompt", json!("Classify"), "`prompt`"),
        ("/schema", json!({"source": "a", "python_model": "b:C"}), "`schema"),
        ("/existing", json!("always"), "`existing`"),
        ("/output", json!({"table": {"target": "stdout", "format": "xlsx"}}), "`output.table.format`"),
        ("/work/modle", json!("simulated"), "`work.modle`"),
        ("/work/retries", json!("four"), "`work.retries`"),
        ("/work/timeout", json!("soon"), "`work.timeout`"),
        ("/work/row_timeout", json!(-5), "`work.row_timeout`"),
        ("/work/parallel", json!(0), "`work.parallel`"),
        ("/work/budget", json!({"cost": -1}), "`work.budget.cost`"),
        ("/work/on_quota", json!("explode"), "`work.on_quota`"),
        ("/work/rates", json!({"requests": 0}), "`work.rates.requests`"),
        (
            "/work/stop_rules",
            json!({"max_error_rate": {"share": 2}}),
            "`work.stop_rules.max_error_rate.share`",
        ),
        ("/work/agents", json!({"stubs": ["a=b", 3]}), "`work.agents.stubs[1]`"),
        ("/work/agents", json!({"servers": {"s": {"comand": "x"}}}), "`work.agents.servers.s.comand`"),
        ("/work/providers", json!({"lab": {"protocol": "smtp"}}), "`work.providers.lab.protocol`"),
        ("/work/prices", json!({"lab.m": {"input": 1}}), "`work.prices.lab.m`"),
    ]
}

#[test]
fn broken_specs_are_refused_with_the_place_by_the_schema_and_by_the_command() {
    let schema = schema();
    assert_accepted(&schema, &short().to_string());
    let place = Place::new();
    place.write_rows(1);
    for (pointer, value, problem) in broken() {
        let mut spec = short();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let object = spec.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            drop(object.remove(name))
        } else {
            drop(object.insert(name.into(), value))
        }
        let places: Vec<String> =
            schema.iter_errors(&spec).map(|error| error.instance_path().to_string()).collect();
        // A missing or unknown field is reported at the object that contains it.
        assert!(places.iter().any(|place| place.starts_with(parent)), "{pointer} in {places:?}: {spec}");
        place.write("spec.json", serde_json::to_string_pretty(&spec).unwrap());
        place.run(&["--spec", "spec.json"]).code(1).says("error[RM1204]: `spec.json`").says(problem);
        assert!(!place.exists("out.jsonl"), "{spec}");
    }
    assert!(broken().len() >= 20);
}

#[test]
fn what_is_wrong_is_reported_with_its_line_and_what_was_meant() {
    let place = Place::new();
    place.write("spec.json", "{\n  \"version\": 1,\n  \"work\": {\n    \"modle\": \"simulated\"\n  }\n}\n");
    place
        .run(&["--spec", "spec.json"])
        .code(1)
        .says("`spec.json` is not a valid spec at line 4, column 11: `work.modle`")
        .says("unknown field `modle`; did you mean `model`?");
    place.write("spec.json", "{\"version\": 1,\n oops}");
    place.run(&["--spec", "spec.json"]).code(1).says("at line 2, column 2");
    let both = json!({"sql": "SELECT 1", "condition": "n = 1"});
    let mut spec = short();
    spec["query"] = both;
    place.write("spec.json", spec.to_string());
    place.run(&["--spec", "spec.json"]).code(1).says("`query.condition` cannot be used with `query.sql`");
}

/// Prints the spec of every run of an example before the run.
const WRAPPER: &str = r#"#!/usr/bin/env bash
if [ "$1" = run ]; then
  "$ROWMILL_ITSELF" "$@" --print-spec < /dev/null > "$(mktemp "$SPECS/XXXXXX")" || exit
fi
exec "$ROWMILL_ITSELF" "$@"
"#;

#[test]
fn the_schema_accepts_the_spec_of_every_example() {
    let home = tempfile::tempdir().unwrap();
    copy(&examples(), &home.path().join("examples"));
    let wrapper = home.path().join("rowmill");
    fs::write(&wrapper, WRAPPER).unwrap();
    let schema = schema();
    for (name, _) in EXAMPLES {
        let specs = home.path().join(format!("specs-{name}"));
        fs::create_dir(&specs).unwrap();
        let command = format!("bash {}", wrapper.display());
        let variables =
            [("ROWMILL_ITSELF", env!("CARGO_BIN_EXE_rowmill")), ("SPECS", specs.to_str().unwrap())];
        let output = run_with(&home.path().join("examples").join(name).join("run.sh"), &command, &variables);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let found: Vec<_> = fs::read_dir(&specs).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!found.is_empty(), "{name} makes no run");
        for path in found {
            let text = fs::read_to_string(path).unwrap();
            assert_accepted(&schema, &text);
            let spec = RunSpec::from_json(&text, name).unwrap();
            assert_eq!(format!("{}\n", spec.to_json().unwrap()), text);
        }
    }
}
