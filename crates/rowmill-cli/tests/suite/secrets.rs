//! Secrets in unexpected places are not shown anywhere.

use crate::support::{EVERY_FILE, Ended, Place, assert_in_no_file, each, scripted, simulated};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_testkit::{FaultTrigger, SimulatedFault, SimulatorScript};
use serde_json::json;

/// Checks that a text is in no file of the place and in no output.
#[track_caller]
fn assert_nowhere(place: &Place, ended: &[&Ended], secret: &str) {
    for message in ended.iter().flat_map(|ended| [&ended.stdout, &ended.stderr]) {
        assert!(!message.contains(secret), "{secret} is in: {message}");
    }
    assert_in_no_file(&place.path("."), secret);
}

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
        let fault = SimulatedFault::from_status(400).with_body(echo.to_string());
        let (simulator, mut place) = scripted(SimulatorScript::new().fault(FaultTrigger::Always, fault));
        place.set("GENERIC_BASE_URL", &simulator.url().replace("://", &format!("://{login}@")));
        place.write_rows(1);
        let ended = place.run_rows(&[&["-m", "generic.m"], EVERY_FILE].concat()).code(3);
        // The user name comes first in the header, so its beginning must be masked, too.
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
    // If other rows have the field, the rows without it fail.
    place.write("rows.jsonl", format!("{{\"n\":1,\"{secret}\":\"x\"}}\n{{\"n\":2}}\n"));
    let ended = run(&[&["-p", &placeholder][..], EVERY_FILE].concat()).code(3).says("***");
    std::fs::remove_file(place.path("rows.jsonl")).unwrap();
    assert_nowhere(&place, &[&ended], secret);
    // The message about an invalid command line is a different one.
    let ended = place.rowmill(&["run", "--parallel", secret]).code(2).says("***");
    assert_nowhere(&place, &[&ended], secret);
}

#[test]
fn a_secret_in_a_model_string_is_masked_in_every_message_report_and_file() {
    let secret = "sk-PLANTED9secret";
    let (simulator, mut place) =
        scripted(SimulatorScript::new().fault(FaultTrigger::Nth(1), SimulatedFault::from_status(500)));
    place.set("LAB_TOKEN", secret);
    place.set("GENERIC_BASE_URL", &format!("{}/v1", simulator.url()));
    place.write_rows(2);
    let model = format!("generic.{secret}");
    let flags = [&["-m", &model, "-p", "{{n}}", "--progress-every", "1", "--final-summary"][..], EVERY_FILE];
    let run = place.run_rows(&flags.concat()).ok();
    let again = place.run_rows(&[&flags.concat()[..], &["--resume"]].concat()).ok();
    let planned = [&[][..], &["--json"]].map(|more| {
        place.rowmill(&[&["plan", "-i", "rows.jsonl", "-m", &model, "-p", "{{n}}"], more].concat()).ok()
    });
    let results = place.rowmill(&["results", "out.jsonl"]).ok();
    assert_nowhere(&place, &[&run, &again, &planned[0], &planned[1], &results], secret);
    assert_eq!(run.summary()["model"], "generic.***");
    // The provider receives it unmasked.
    assert_eq!(simulator.requests()[0].json()["model"], secret);
    let ended = place.run_rows(&["-m", &format!("nobody.{secret}"), "--overwrite"]).code(1).says("***");
    assert_nowhere(&place, &[&ended], secret);
}

#[test]
fn a_secret_that_rows_are_split_by_is_in_no_message_and_no_name_of_a_file() {
    let mut place = Place::new();
    let secret = "sk-PLANTED9secret";
    place.set("LAB_TOKEN", secret);
    place.write("rows.jsonl", format!("{{\"k\":\"{secret}\"}}\n{{\"k\":\"a\"}}\n"));
    let flags =
        ["-i", "rows.jsonl", "-m", "passthrough", "-p", "{{k}}", "--output-dir", "parts", "--split-by"];
    for field in ["input.k", "result"] {
        let ended = place.run(&[&flags[..], &[field, "--overwrite"]].concat()).ok();
        let mut names = place.names("parts");
        names.retain(|name| !name.starts_with('.'));
        assert!(names.len() == 2 && names.iter().any(|name| name.starts_with("value-")), "{names:?}");
        assert!(!names.concat().contains(secret) && !ended.stderr.contains(secret), "{}", ended.stderr);
    }
}

#[test]
fn a_key_in_the_path_of_a_base_url_is_not_shown_wherever_that_comes_from() {
    let fault = SimulatedFault::from_status(404);
    let (simulator, mut place) = scripted(SimulatorScript::new().fault(FaultTrigger::Always, fault));
    place.write_rows(1);
    for (secret, holder) in [("PLANTED-gateway", true), ("PLANTED9gateway", false), ("sk-PLANTED-key", false)]
    {
        place.unset("GATEWAY_KEY");
        if holder {
            place.set("GATEWAY_KEY", secret);
        }
        for (address, is_configured) in
            [(simulator.url(), false), ("http://127.0.0.1:1".to_owned(), false), (simulator.url(), !holder)]
        {
            place.unset("GENERIC_BASE_URL");
            let url = format!("{address}/gateway/{secret}/v1");
            match is_configured {
                true => place.write("rowmill.toml", format!("[providers.generic]\nbase_url = \"{url}\"\n")),
                false => place.set("GENERIC_BASE_URL", &url),
            }
            let flags = ["-m", "generic.m", "--overwrite", "--max-outage", "0"];
            let run = place.run_rows(&[&flags[..], EVERY_FILE].concat());
            assert_ne!(run.code, 0);
            let listed = [&["models"][..], &["models", "--json"], &["models", "generic.m"]];
            let [all, json, one] = listed.map(|arguments| place.rowmill(arguments).ok());
            std::fs::remove_file(place.path("rowmill.toml")).ok();
            assert!(one.stdout.contains("/gateway/***/v1"), "{}", one.stdout);
            assert_nowhere(&place, &[&run, &all, &json, &one], secret);
            std::fs::remove_dir_all(place.path("traces")).ok();
        }
    }
}

#[test]
fn a_key_in_the_login_or_the_query_of_a_base_url_is_seen_nowhere_wherever_that_comes_from() {
    let secret = "PLANTED9secret";
    let echo = json!({"error": {"message": format!("there is no {secret} here")}});
    for (login, query) in [
        ("PLANTED9secret@", ""),
        ("ann:PLANTED9secret@", ""),
        ("", "?key=PLANTED9secret"),
        ("", "?PLANTED9secret"),
    ] {
        for is_configured in [false, true] {
            let fault = SimulatedFault::from_status(404).with_body(echo.to_string());
            let (simulator, mut place) = scripted(SimulatorScript::new().fault(FaultTrigger::Always, fault));
            place.write_rows(1);
            place.unset("GENERIC_BASE_URL");
            let url = format!("{}/v1{query}", simulator.url().replace("://", &format!("://{login}")));
            match is_configured {
                true => place.write("rowmill.toml", format!("[providers.generic]\nbase_url = \"{url}\"\n")),
                false => place.set("GENERIC_BASE_URL", &url),
            }
            let run = place.run_rows(&[&["-m", "generic.m", "--max-outage", "0"], EVERY_FILE].concat());
            let listed = [&["models"][..], &["models", "--json"], &["models", "generic.m"]];
            let [all, json, one] = listed.map(|arguments| place.rowmill(arguments).ok());
            // There it is meant to be.
            std::fs::remove_file(place.path("rowmill.toml")).ok();
            assert_ne!(run.code, 0);
            assert_nowhere(&place, &[&run, &all, &json, &one], secret);
            assert!(simulator.stats().requests > 0, "{login}{query}: {}", run.stderr);
            run.says("there is no *** here");
        }
    }
}

#[test]
fn a_secret_in_an_id_is_nowhere_to_be_seen_and_its_row_is_known_again() {
    let (simulator, mut place) = simulated();
    let secret = "sk-PLANTED9secret";
    place.set("LAB_TOKEN", secret);
    let rows = format!(
        "{{\"k\":\"{secret}\",\"t\":\"[[400]]\"}}\n{{\"k\":\"of {secret}\",\"t\":\"b\"}}\n{{\"k\":\"c\",\"t\":\"c\"}}\n"
    );
    let run = |more: &[&str]| {
        place.write("rows.jsonl", &rows);
        let flags = ["-m", "openai.m", "-p", "{{t}}", "--id-field", "k", "--final-summary"];
        let ended = place.run_rows(&[&flags[..], more, EVERY_FILE].concat()).code(3);
        std::fs::remove_file(place.path("rows.jsonl")).unwrap();
        assert_nowhere(&place, &[&ended], secret);
        ended
    };
    run(&[]).says("row 1 (id ***#1)");
    assert_eq!(each(&place.json("out.jsonl"), "/id"), ["***#1", "of ***#2", "c"]);
    let before = simulator.stats().requests;
    run(&["--resume"]).says("resuming: skipping 2 finished rows, retrying 1 failed row");
    assert_eq!(each(&place.json("out.jsonl"), "/id"), ["***#1", "of ***#2", "c"]);
    assert_eq!(simulator.stats().requests, before + 1, "only the failed row is sent again");
}

#[test]
fn a_secret_in_a_query_is_in_no_file_of_the_run() {
    let mut place = Place::new();
    let secret = "sk-PLANTED9secret";
    place.set("LAB_TOKEN", secret);
    place.write_rows(2);
    let query = format!("SELECT n FROM input WHERE '{secret}' <> ''");
    let flags = ["-m", "passthrough", "-p", "{{n}}", "--sql", &query];
    let first = place.run_rows(&[&flags[..], EVERY_FILE].concat()).ok();
    let again = place.run_rows(&[&flags[..], &["--resume"], EVERY_FILE].concat()).ok();
    assert_nowhere(&place, &[&first, &again], secret);
}
