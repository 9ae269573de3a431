//! Servers of cards that the configuration completes, and servers that fast-agent's files define.

use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::json;

use crate::faults_support::assert_all_ok;
use crate::mcp::kit::{MEETING_ROWS, OwnServer, call, calling, card, home, most_at_once, own_in_card, run};

const SECRET: &str = "planted-4711-secret";

#[test]
fn the_configuration_completes_a_server_of_a_card_and_the_card_wins() {
    let server = OwnServer::start(&["--token", SECRET]);
    let url = &server.url;
    let brings = |more: &str| card(&format!("mcp_connect:\n  shop:\n    url: {url}\n{more}"));
    let credential = "access_token = \"${SHOP_TOKEN}\"\n";
    let elsewhere = format!("url = \"http://127.0.0.1:1/mcp\"\n{credential}");
    let header = "headers = { Authorization = \"Bearer ${SHOP_TOKEN}\" }\ntimeout = \"2s\"\n";
    for (fields, entry, code) in [
        (String::new(), "", 1),
        (String::new(), credential, 0),
        (String::new(), header, 0),
        // The card has its own credentials.
        ("    access_token: another-token\n".to_owned(), credential, 1),
        ("    headers: {authorization: Bearer another-token}\n".to_owned(), header, 1),
        // A credential for one address is not sent to another.
        (String::new(), elsewhere.as_str(), 1),
    ] {
        let home = home(2, &format!("[mcp.servers.shop]\n{entry}"), &brings(&fields));
        let simulator = Simulator::start_blocking(calling("shop__echo", |_| json!({"text": "hello"})));
        let ended = run(&home, &simulator).env("SHOP_TOKEN", SECRET).ends_with(code);
        assert!(!ended.err.contains(SECRET), "{}", ended.err);
        if code == 0 {
            assert_all_ok(&home.envelopes(), 2);
        } else {
            ended.says(&["the MCP server `shop` asks for a credential"]);
        }
    }
}

#[test]
fn the_configuration_completes_variables_folder_and_time_of_a_program() {
    let entry = "[mcp.servers.t]\nenv = { SHOP = \"${SHOP_NAME}\", OWN = \"configuration\" }\n\
                 cwd = \"shop\"\ntimeout = \"300ms\"\n";
    let home = home(1, entry, &card(&own_in_card(&["--count", "calls.txt"], "env: {OWN: card}")));
    std::fs::create_dir(home.path("shop")).unwrap();
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => call("t__env", json!({"name": "SHOP"})),
        2 => call("t__env", json!({"name": "OWN"})),
        3 => call("t__hang", json!({})),
        _ => {
            let texts = seen.messages.iter().flat_map(|message| &message.answers);
            SimulatedAnswer::Text(texts.map(|result| result.text.as_str()).collect::<Vec<_>>().join("; "))
        }
    });
    let simulator = Simulator::start_blocking(script);
    run(&home, &simulator).env("SHOP_NAME", "corner").ends_with(0);
    let reported = home.envelopes()[0]["result"].as_str().unwrap().to_owned();
    assert!(
        reported.starts_with("corner; card; the tool failed: `t` did not answer within 300 ms"),
        "{reported}"
    );
    assert_eq!(
        home.read("shop/calls.txt"),
        "\n",
        "the call that hangs is noted in the folder of the program"
    );
}

#[test]
fn the_configuration_completes_how_many_calls_are_made_at_once_and_the_card_wins() {
    for (entry, own) in [
        ("max_parallel = 3", ""),
        ("max_parallel = { \"me*\" = 3 }", ""),
        ("max_parallel = 1", "max_parallel: 3"),
        ("max_parallel = 6", "max_parallel: {meet: 3}"),
    ] {
        let card = card(&own_in_card(&["--meet", "3"], own));
        let home = home(MEETING_ROWS, &format!("[mcp.servers.t]\n{entry}\n"), &card);
        assert_eq!(most_at_once(&home), 3, "{entry} {own}");
    }
}

#[test]
fn servers_and_models_that_only_fast_agent_defines_are_taken_from_its_files() {
    let words = rowmill_testkit::mcp_server();
    let args = serde_json::to_string(&words[1..]).unwrap();
    let home = home(2, "", &card("servers: [t]\nmodel: $system.fast"));
    home.write(
        "fastagent.config.yaml",
        &format!(
            "default_model: haiku\nmodel_references:\n  system:\n    fast: generic.quick\nlogger: {{level: info}}\n\
             mcp:\n  servers:\n    t:\n      command: {}\n      args: {args}\n      env:\n        SHOP: \
             \"${{SHOP_NAME:corner}}\"\n      roots:\n        - uri: file:///data\n    unused:\n      command: nothing\n      \
             args: [\"${{NOT_SET}}\"]\n",
            words[0]
        ),
    );
    home.write("fastagent.secrets.yaml", "mcp:\n  servers:\n    t:\n      env:\n        PIN: \"4711\"\n");
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => call("t__env", json!({"name": "SHOP"})),
        2 => call("t__env", json!({"name": "PIN"})),
        _ => {
            let texts = seen.messages.iter().flat_map(|message| &message.answers);
            SimulatedAnswer::Text(texts.map(|result| result.text.as_str()).collect::<Vec<_>>().join("; "))
        }
    });
    let simulator = Simulator::start_blocking(script);
    let begin = || {
        let begun = home.run().at(&simulator.url()).env("PATH", env!("PATH"));
        begun.env("HOME", home.path("").to_str().unwrap()).args(&["--agent-card", "worker.md"])
    };
    let ended = begin().ends_with(0);
    assert_all_ok(&home.envelopes(), 2);
    assert_eq!(home.envelopes()[0]["result"], "corner; 4711");
    assert!(simulator.calls().iter().all(|call| call.model == "quick"));
    let reported =
        "taken from `fastagent.config.yaml`: the MCP server `t`, `$system.fast`; ignored: `roots` of `t`";
    assert_eq!(ended.err.matches(reported).count(), 1, "{}", ended.err);

    home.write("worker.md", &card("servers: [unused]\nmodel: generic.m"));
    let refused = begin().args(&["--overwrite"]).ends_with(1);
    refused.says(&["`fastagent.config.yaml`: the MCP server `unused` needs `NOT_SET`, which is not set"]);
}
