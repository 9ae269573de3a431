//! Messages to users who run a spec: they name its fields, in plain words, and cannot disturb the
//! screen.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Place, finish};

/// A spec of a run over two rows, with this value in place of the usual one.
fn place_with(pointer: &str, value: Value) -> Place {
    let place = Place::new();
    place.write_rows(2);
    let mut spec = json!({
        "version": 1,
        "input": {"location": {"file": "rows.jsonl"}},
        "prompt": {"inline": "{{n}}"},
        "output": {"file": "out.jsonl"},
        "work": {"model": "passthrough"}
    });
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[name] = value;
    place.write("spec.json", spec.to_string());
    place
}

#[test]
fn variables_that_stand_for_flags_are_not_even_looked_at_beside_a_spec() {
    let mut place = place_with("/work/model", json!("passthrough"));
    place.set("ROWMILL_PARALLEL", "many");
    place.set("ROWMILL_RETRIES", "-4");
    place.set("ROWMILL_TIMEOUT", "soon");
    place.run(&["--spec", "spec.json", "--no-progress"]).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
    place.rowmill(&["plan", "--spec", "spec.json"]).ok();
    // Without a spec they are read, and so they are checked.
    place.run_rows(&["-m", "passthrough", "--overwrite"]).code(2).says("invalid value 'many'");
}

#[test]
fn hints_name_fields_of_the_spec_and_no_flags_that_would_be_refused() {
    let missing = place_with("/input/location", json!({"file": "none.xyz"}));
    let messages = missing.run(&["--spec", "spec.json"]).code(1).stderr;
    assert!(!messages.contains("--input"), "{messages}");
    let doubled = place_with("/id_field", json!("n"));
    doubled.write("rows.jsonl", "{\"n\":1}\n{\"n\":1}\n");
    let messages = doubled.run(&["--spec", "spec.json"]).code(1).stderr;
    assert!(
        messages.contains("omit `id_field` in the spec") && !messages.contains("--id-field"),
        "{messages}"
    );
    let summary = place_with("/output", json!("stdout"));
    let ended = summary.run(&["--spec", "spec.json", "--final-summary"]).code(2);
    ended.says("output: \"stdout\"").says("`summary_output` in the spec");
}

#[test]
fn what_a_plan_lacks_is_named_by_the_fields_of_the_spec() {
    let place = place_with("/work/model", json!("generic.m"));
    let message = place.rowmill(&["plan", "--spec", "spec.json"]).ok().stdout;
    assert!(
        message.contains("`work.rates.requests` in the spec")
            && message.contains("`work.prices` of the spec"),
        "{message}"
    );
    assert!(message.contains("`--sample-calls N`") && !message.contains("--rpm"), "{message}");
}

#[test]
fn a_spec_with_control_characters_does_not_reach_the_screen_with_them() {
    let named = place_with("/work/\u{1b}]0;gone\u{7}", json!(1));
    named.run(&["--spec", "spec.json"]).code(1).says(r"\u{1b}]0;gone\u{7}");
    let values = place_with("/input/location", json!({"file": "a\u{1b}[2Jb"}));
    let messages = values.run(&["--spec", "spec.json"]).code(1).says(r"a\u{1b}[2Jb").stderr;
    assert!(!messages.contains('\u{1b}'), "{messages:?}");
}

#[test]
fn what_is_too_large_for_a_spec_is_not_read_to_its_end() {
    let place = place_with("/work/model", json!("passthrough"));
    let text = format!("{}{}", place.read("spec.json"), " ".repeat((16 << 20) + 1));
    place.write("large.json", &text);
    let message = "is not a spec: it is larger than 16 MiB";
    place.run(&["--spec", "large.json"]).code(1).says(&format!("error[RM1204]: `large.json` {message}"));
    let mut child = place.command(&["run", "--spec", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The rest is not read.
    stdin.write_all(text.as_bytes()).and_then(|()| stdin.write_all(text.as_bytes())).unwrap_err();
    drop(stdin);
    finish(child).code(1).says(&format!("`-` {message}"));
    place.write("bytes.json", b"{\"version\": 1, \"\xff\"");
    place.run(&["--spec", "bytes.json"]).code(1).says("it is not valid UTF-8 from byte 17");
}
