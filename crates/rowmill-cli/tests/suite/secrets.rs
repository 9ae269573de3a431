//! Secrets that stand where nobody expects them are shown nowhere.

use crate::support::{Ended, Place, scripted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_testkit::{Fault, Script, When};
use serde_json::json;

/// Demands that a text is in no file of the place and was not said.
#[track_caller]
fn assert_nowhere(place: &Place, ended: &[&Ended], secret: &str) {
    for said in ended.iter().flat_map(|ended| [&ended.stdout, &ended.stderr]) {
        assert!(!said.contains(secret), "{secret} is in: {said}");
    }
    let mut folders = vec![place.path(".")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                assert!(!text.contains(secret), "{secret} is in {}: {text}", path.display());
            }
        }
    }
}

/// Flags that have a run write what it can write.
const FILES: &[&str] = &[
    "--retries",
    "0",
    "--keep-temp",
    "--telemetry-output",
    "times.jsonl",
    "--error-output",
    "bad.jsonl",
    "--summary-output",
    "sum.json",
    "--export-traces",
    "traces",
];

#[test]
fn no_part_of_a_login_in_a_base_url_is_seen_when_the_server_echoes_the_header() {
    for (login, meant) in [
        ("ann-the-admin:PLANTED9pw", "ann-the-admin:PLANTED9pw"),
        ("ann-the-admin:pw%2F1", "ann-the-admin:pw/1"),
        ("PLANTED9token", "PLANTED9token:"),
    ] {
        let header = STANDARD.encode(meant);
        let bare = header.trim_end_matches('=');
        let echo = json!({"error": {"message": format!("no such login: Basic {header} ({bare})")}});
        let fault = Fault::status(400).with_body(echo.to_string());
        let (simulator, mut place) = scripted(Script::new().fault(When::Always, fault));
        place.set("GENERIC_BASE_URL", &simulator.url().replace("://", &format!("://{login}@")));
        place.write_rows(1);
        let ended = place.run_rows(&[&["-m", "generic.m"], FILES].concat()).code(3);
        // The user comes first in the header, so its beginning must not be left.
        assert_nowhere(&place, &[&ended], header.get(..10).unwrap());
        let error = &place.json("out.jsonl")[0]["error"]["message"];
        assert!(error.as_str().unwrap().starts_with("no such login: Basic *** (***)"), "{error}");
    }
}

#[test]
fn a_secret_in_the_place_of_a_name_is_not_repeated() {
    let mut place = Place::new();
    let secret = "sk-PLANTED9secret";
    place.set("LAB_TOKEN", secret);
    place.write_rows(2);
    let placeholder = format!("Say {{{{{secret}}}}}");
    let run = |flags: &[&str]| place.run_rows(&[&["-m", "passthrough", "--overwrite"], flags].concat());
    for flags in [["-p", placeholder.as_str()], ["--id-field", secret], ["--columns", secret]] {
        let ended = run(&flags).says("***");
        assert_ne!(ended.code, 0, "{flags:?}");
        assert_nowhere(&place, &[&ended], secret);
    }
    // Where other rows have it, it is those without it that fail.
    place.write("rows.jsonl", format!("{{\"n\":1,\"{secret}\":\"x\"}}\n{{\"n\":2}}\n"));
    let ended = run(&[&["-p", &placeholder][..], FILES].concat()).code(3).says("***");
    std::fs::remove_file(place.path("rows.jsonl")).unwrap();
    assert_nowhere(&place, &[&ended], secret);
    // A command line that cannot be read is told in other words.
    let ended = place.rowmill(&["run", "--parallel", secret]).code(2).says("***");
    assert_nowhere(&place, &[&ended], secret);
}

#[test]
fn a_key_in_the_path_of_a_base_url_is_not_shown_where_a_variable_holds_it() {
    let fault = Fault::status(404);
    let (simulator, mut place) = scripted(Script::new().fault(When::Always, fault));
    let secret = "PLANTED9gateway";
    place.set("GATEWAY_KEY", secret);
    place.write_rows(1);
    for address in [simulator.url(), "http://127.0.0.1:1".to_owned()] {
        place.set("GENERIC_BASE_URL", &format!("{address}/gateway/{secret}/v1"));
        let run = place.run_rows(&[&["-m", "generic.m", "--overwrite", "--max-outage", "0"], FILES].concat());
        assert_ne!(run.code, 0);
        let listed = [&["models"][..], &["models", "--json"], &["models", "generic.m"]];
        let [all, json, one] = listed.map(|arguments| place.rowmill(arguments).ok());
        assert!(one.stdout.contains("/gateway/***/v1"), "{}", one.stdout);
        assert_nowhere(&place, &[&run, &all, &json, &one], secret);
        std::fs::remove_dir_all(place.path("traces")).ok();
    }
}

#[test]
fn a_secret_in_a_query_is_in_no_file_of_the_run() {
    let mut place = Place::new();
    let secret = "sk-PLANTED9secret";
    place.set("LAB_TOKEN", secret);
    place.write_rows(2);
    let query = format!("SELECT n FROM input WHERE '{secret}' <> ''");
    let flags = ["-m", "passthrough", "-p", "{{n}}", "--sql", &query];
    let first = place.run_rows(&[&flags[..], FILES].concat()).ok();
    let again = place.run_rows(&[&flags[..], &["--resume"], FILES].concat()).ok();
    assert_nowhere(&place, &[&first, &again], secret);
}
