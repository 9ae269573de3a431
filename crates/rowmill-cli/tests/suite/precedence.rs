//! A flag overrides the environment, which overrides `rowmill.toml`, which overrides the default.

use crate::support;

use crate::support::{Place, finish, scripted, simulated};
use rowmill_testkit::SimulatorScript;
use serde_json::json;

#[test]
fn the_model_comes_from_the_flag_else_the_environment_else_the_file() {
    let mut place = Place::new();
    place.write_rows(1);
    place.write("rowmill.toml", "[run]\nmodel = \"playback\"\n");
    let result = |place: &Place, more: &[&str]| {
        place.run_rows(&[&["-p", "said", "--overwrite"], more].concat());
        place.json("out.jsonl")[0].clone()
    };
    assert_eq!(result(&place, &[])["result"], "HISTORY LOADED (1) messages");
    place.set("ROWMILL_MODEL", "silent");
    assert_eq!(result(&place, &[])["error"]["type"], "EmptyAnswer");
    assert_eq!(result(&place, &["-m", "passthrough"])["result"], "said");
}

#[test]
fn the_number_of_rows_at_once_follows_the_same_order() {
    for (file, variable, flag, most) in [
        (None, None, None, 8),
        (Some("5"), None, None, 5),
        (Some("5"), Some("4"), None, 4),
        (Some("5"), Some("4"), Some("3"), 3),
        (Some("\"auto\""), Some("4"), None, 4),
        (Some("5"), Some("4"), Some("auto"), 8),
    ] {
        let (simulator, mut place) = scripted(SimulatorScript::new().hold_after(0));
        place.write_rows(12);
        if let Some(rows) = file {
            place.write("rowmill.toml", format!("[run]\nparallel = {rows}\n"));
        }
        if let Some(rows) = variable {
            place.set("ROWMILL_PARALLEL", rows);
        }
        let flag: Vec<&str> = flag.iter().flat_map(|rows| ["--parallel", rows]).collect();
        let child = place.start_rows(&[&["-m", "openai.m"], flag.as_slice()].concat());
        simulator.wait_until_blocking(|stats| stats.in_flight == most);
        simulator.release();
        let ended = finish(child).ok();
        assert_eq!(simulator.stats().max_in_flight, most);
        // By default, few calls are sent before the first answer.
        let message = if most == 8 { json!("auto") } else { json!(most) };
        assert_eq!(ended.summary()["parallel"], message);
    }
}

#[test]
fn retries_and_repairs_follow_the_same_order() {
    let (simulator, mut place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"[[503]]\"}\n");
    place.write("rowmill.toml", "[run]\nretries = 1\nretry_wait = \"1ms\"\nrepairs = 0\n");
    let mut seen = 0;
    let mut calls = |place: &Place, more: &[&str]| {
        place.run_rows(&[&["-m", "openai.m", "--overwrite"], more].concat()).code(3);
        let before = std::mem::replace(&mut seen, simulator.stats().requests);
        simulator.stats().requests - before
    };
    assert_eq!(calls(&place, &[]), 2);
    place.set("ROWMILL_RETRIES", "2");
    assert_eq!(calls(&place, &[]), 3);
    assert_eq!(calls(&place, &["--retries", "0"]), 1);

    place.write("schema.json", r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#);
    place.write("rows.jsonl", "{\"t\":\"[[wrong]]\"}\n");
    assert_eq!(calls(&place, &["--json-schema", "schema.json"]), 1);
    assert_eq!(calls(&place, &["--json-schema", "schema.json", "--repairs", "2"]), 3);
}

#[test]
fn the_timeout_follows_the_same_order() {
    let (_simulator, mut place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"[[hang]]\"}\n");
    place.write("rowmill.toml", "[run]\ntimeout = \"40ms\"\nretries = 0\n");
    let message = |place: &Place, more: &[&str]| {
        place.run_rows(&[&["-m", "openai.m", "--overwrite"], more].concat()).code(3);
        place.json("out.jsonl")[0]["error"]["message"].clone()
    };
    assert_eq!(message(&place, &[]), "no complete answer within 0.04 s");
    place.set("ROWMILL_TIMEOUT", "30ms");
    assert_eq!(message(&place, &[]), "no complete answer within 0.03 s");
    assert_eq!(message(&place, &["--timeout", "20ms"]), "no complete answer within 0.02 s");
}

#[test]
fn values_of_the_environment_are_checked_like_flags() {
    for (name, value, reason) in [
        ("ROWMILL_PARALLEL", "0", "must be greater than zero"),
        ("ROWMILL_RETRIES", "-1", "must be non-negative"),
        ("ROWMILL_TIMEOUT", "later", "must be a duration such as"),
    ] {
        let mut place = Place::new();
        place.write_rows(1);
        place.set(name, value);
        place.run_rows(&["-m", "passthrough"]).code(2).says(reason);
    }
}

#[test]
fn the_file_is_found_upward_and_the_nearest_one_counts() {
    let place = Place::new();
    place.write("rowmill.toml", "[run]\nmodel = \"silent\"\n");
    place.write("a/rowmill.toml", "[run]\nmodel = \"passthrough\"\n");
    place.write("a/b/c/rows.jsonl", "{\"n\":1}\n");
    place.write("d/rows.jsonl", "{\"n\":1}\n");
    let arguments = ["run", "-i", "rows.jsonl", "-o", "out.jsonl"];
    place.rowmill_in("a/b/c", &arguments).ok();
    place.rowmill_in("d", &arguments).code(3);
    assert_eq!(place.json("d/out.jsonl")[0]["error"]["type"], "EmptyAnswer");
}

#[test]
fn a_file_that_is_not_valid_names_its_place() {
    for (text, message) in [
        ("[run]\nmodle = \"x\"\n", "rowmill.toml` is not valid at line 2\n  cause: unknown field `modle`"),
        ("[run\n", "rowmill.toml` is not valid at line 1\n"),
        ("[run]\ntimeout = \"soon\"\n", "`timeout` in `"),
        ("[run]\nparallel = \"many\"\n", "rowmill.toml` must be a whole number or `auto`\n"),
    ] {
        let place = Place::new();
        place.write_rows(1);
        place.write("rowmill.toml", text);
        place.run_rows(&["-m", "passthrough"]).code(1).says("error[RM1203]: ").says(message);
        assert!(!place.exists("out.jsonl"));
    }
}

#[test]
fn nothing_in_the_file_may_be_out_of_the_range_that_flags_have() {
    let place = Place::new();
    place.write_rows(1);
    place.write("rowmill.toml", "[run]\nparallel = 0\n");
    place.run_rows(&["-m", "passthrough"]).code(1).says("parallel").says("must be greater than zero");
}

#[test]
fn a_provider_of_the_file_has_its_address_key_and_headers() {
    let (simulator, mut place) = simulated();
    place.unset("GENERIC_BASE_URL");
    place.set("LAB_KEY", support::KEY);
    place.set("TEAM", "blue");
    let url = simulator.url();
    let file = format!(
        "[providers.lab]\nbase_url = \"{url}/v1\"\napi_key_env = \"LAB_KEY\"\nheaders = {{ x-team = \"${{TEAM}}\" }}\n\
         [providers.generic]\nbase_url = \"{url}/v1\"\n"
    );
    place.write("rowmill.toml", file);
    place.write_rows(1);
    place.run_rows(&["-m", "lab.some-model"]).ok();
    let request = simulator.requests().pop().unwrap();
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.json()["model"], "some-model");
    place.run_rows(&["-m", "generic.m", "--overwrite"]).ok();
    // The environment overrides the file.
    place.set("GENERIC_BASE_URL", "http://127.0.0.1:1/v1");
    place.run_rows(&["-m", "generic.m", "--overwrite", "--retries", "0"]).code(1).says("127.0.0.1:1");
}
