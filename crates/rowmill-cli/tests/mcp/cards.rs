//! What cards and the configuration say of servers holds in a run.

use std::sync::{Arc, Mutex};

use rowmill_testkit::{Answer, Script, Simulator};
use serde_json::{Value, json};

use crate::faults_support::{Home, assert_all_ok};
use crate::kit::{OwnServer, call, calling, card, files, home, own_entry, processes, run};

const SECRET: &str = "planted-4711-secret";

#[test]
fn each_card_is_offered_what_it_asks_for_and_resources_and_prompts_are_tools() {
    let home = home(4, &own_entry("t", &[], ""), "---\ntype: chain\nsequence: [reader, asker]\n---\n");
    home.write(
        "reader.md",
        "---\nservers: [t]\ntools: {t: [echo]}\nresources: {t: [\"test://notes/*\"]}\n---\nRead.\n",
    );
    // What another card may read is none of the reader's business.
    home.write(
        "asker.md",
        "---\nservers: [t]\ntools: {t: [\"a*\"]}\nresources: {t: [picture]}\nprompts: {t: [greet]}\n---\nAsk.\n",
    );
    let script = Script::new().reply(|seen| match (seen.system, seen.turn) {
        ("Read.", 1) => call("t__read_resource", json!({"uri": "test://notes/2"})),
        ("Read.", 2) => call("t__read_resource", json!({"uri": "test://picture.png"})),
        ("Ask.", 1) => call("t__get_prompt", json!({"name": "greet", "arguments": {"who": seen.prompt}})),
        ("Read.", _) => Answer::Text(results(seen.messages)),
        _ => Answer::Text(seen.last.to_owned()),
    });
    let simulator = Simulator::start_blocking(script);

    run(&home, &simulator)
        .args(&["--agent-card", "reader.md", "--agent-card", "asker.md", "--agent", "worker"])
        .ends_with(0);

    for seen in simulator.calls() {
        let expected: &[&str] = match seen.system.as_str() {
            "Read." => &["t__echo", "t__read_resource"],
            _ => &["t__add", "t__ask", "t__read_resource", "t__get_prompt"],
        };
        assert_eq!(seen.tools, expected, "{}", seen.system);
    }
    let read = "text of test://notes/2; there is no resource `test://picture.png` that may be read";
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, 4);
    for envelope in envelopes {
        let said = envelope["result"].as_str().unwrap();
        assert!(said.contains(&format!("Hello, {read}!")), "{said}");
    }
}

/// What tools gave in a conversation.
fn results(messages: &[rowmill_testkit::SeenMessage]) -> String {
    let texts = messages.iter().flat_map(|message| &message.answers).map(|result| result.text.as_str());
    texts.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_call_that_takes_too_long_is_told_to_the_model_and_others_go_on() {
    let config = own_entry("t", &[], "timeout = \"300ms\"");
    let policy = "servers: [t]\ntool_policy: {t__hang_twice: {timeout: 0.2}}";
    let home = home(9, &config, &card(policy));
    let script = Script::new().reply(|seen| match (seen.turn, crate::kit::number(seen.prompt) % 3) {
        (1, 0) => call("t__hang", json!({})),
        (1, 1) => call("t__hang_twice", json!({})),
        (1, _) => call("t__echo", json!({"text": seen.prompt})),
        _ => Answer::Text(seen.last.to_owned()),
    });
    let simulator = Simulator::start_blocking(script);

    run(&home, &simulator).ends_with(0);

    assert_eq!(processes(&home), []);
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, 9);
    for (row, envelope) in (1..).zip(&envelopes) {
        let expected =
            match row % 3 {
                0 => "the tool failed: `t` did not answer within 300 ms; whether it took effect is unknown"
                    .into(),
                1 => "the tool failed: `t` did not answer within 200 ms; whether it took effect is unknown"
                    .into(),
                _ => format!("row {row}"),
            };
        assert_eq!(envelope["result"], expected, "row {row}");
    }
}

/// The files of a folder that hold the secret.
fn with_secret(home: &std::path::Path) -> Vec<std::path::PathBuf> {
    let holds = |path: &std::path::PathBuf| {
        // A file of the run may go away meanwhile.
        std::fs::read(path)
            .is_ok_and(|bytes| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()))
    };
    files(home).into_iter().filter(holds).collect()
}

#[test]
fn secrets_in_headers_reach_servers_over_http_and_no_file() {
    let server = OwnServer::start(&["--token", SECRET]);
    let url = &server.url;
    let config = format!("[mcp.servers.one]\nurl = \"{url}\"\naccess_token = \"${{SHOP_TOKEN}}\"\n");
    let fields = format!(
        "servers: [one]\nmcp_connect:\n  two:\n    url: {url}\n    headers: {{Authorization: \"Bearer ${{SHOP_TOKEN}}\"}}"
    );
    let home = home(20, &config, &card(&fields));
    let found = Arc::new(Mutex::new(Vec::new()));
    let script = Script::new().reply({
        let (found, folder) = (Arc::clone(&found), home.path(""));
        move |seen| match seen.turn {
            1 => call("one__echo", json!({"text": seen.prompt})),
            2 => call("two__echo", json!({"text": format!("{} again", seen.last)})),
            _ => {
                found.lock().unwrap().extend(with_secret(&folder));
                Answer::Text(seen.last.to_owned())
            }
        }
    });
    let simulator = Simulator::start_blocking(script);
    let kept = ["--checkpoint-turns", "--record-tools", "recorded", "--export-traces", "traces"];
    let more = ["--telemetry-output", "telemetry.jsonl", "--include-input", "--final-summary"];

    let ended = run(&home, &simulator).env("SHOP_TOKEN", SECRET).args(&kept).args(&more).ends_with(0);

    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, 20);
    for (row, envelope) in (1..).zip(&envelopes) {
        assert_eq!(envelope["result"], format!("row {row} again"));
    }
    assert!(home.exists("recorded") && home.exists("traces"));
    found.lock().unwrap().extend(with_secret(&home.path("")));
    assert!(found.lock().unwrap().is_empty(), "{found:?}");
    assert!(!ended.out.contains(SECRET) && !ended.err.contains(SECRET));
}

#[test]
fn a_program_gets_the_variables_of_its_entry_and_no_key_of_the_run() {
    let home = home(2, "", &card(&own_in_card("env: {SHOP: \"${SHOP_NAME}\"}")));
    let script = Script::new().reply(|seen| match seen.turn {
        1 => Answer::Calls {
            text: String::new(),
            calls: [json!({"name": "SHOP"}), json!({})].map(|which| ("t__env".to_owned(), which)).into(),
        },
        _ => Answer::Text(results(seen.messages)),
    });
    let simulator = Simulator::start_blocking(script);
    run(&home, &simulator).env("SHOP_NAME", "corner").key("k-secret").ends_with(0);
    let told = result(&home);
    assert!(told.starts_with("corner; "), "{told}");
    assert!(told.contains("PATH") && !told.contains("KEY") && !told.contains("SHOP_NAME"), "{told}");
}

/// The entry of our server in a card.
fn own_in_card(more: &str) -> String {
    let words = rowmill_testkit::mcp_server();
    let args = serde_json::to_string(&words[1..]).unwrap();
    format!("mcp_connect:\n  t:\n    command: {}\n    args: {args}\n    {more}", words[0])
}

fn result(home: &Home) -> String {
    let envelopes = home.envelopes();
    let results: Vec<&Value> = envelopes.iter().map(|envelope| &envelope["result"]).collect();
    results[0].as_str().unwrap().to_owned()
}

#[test]
fn flags_deny_a_tool_of_a_server_or_make_its_answer_the_result() {
    let home = home(3, "", &card(&own_in_card("tools: [echo, add]")));
    let simulator =
        Simulator::start_blocking(calling("t__echo", |row| json!({"text": format!("said {row}")})));
    run(&home, &simulator).args(&["--passthrough", "t__echo"]).ends_with(0);
    assert_eq!(simulator.stats().requests, 3, "no second turn");
    assert_eq!(result(&home), "said 1");

    run(&home, &simulator).args(&["--deny", "t__e*", "--overwrite"]).ends_with(0);
    assert_eq!(result(&home), "the tool `t__echo` is denied in this run");
}
