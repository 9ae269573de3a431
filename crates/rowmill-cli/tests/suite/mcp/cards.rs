//! Settings for servers in cards and in the configuration take effect in a run.

use std::sync::{Arc, Mutex};

use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::faults_support::{Home, assert_all_ok};
use crate::mcp::kit::{
    MEETING_ROWS, OwnServer, call, calling, card, entry, files, home, most_at_once, own_entry, own_in_card,
    processes, run,
};

const SECRET: &str = "planted-4711-secret";

#[test]
fn each_card_is_offered_what_it_asks_for_and_resources_and_prompts_are_tools() {
    let home = home(4, &own_entry("t", &[], ""), "---\ntype: chain\nsequence: [reader, asker]\n---\n");
    home.write(
        "reader.md",
        "---\nservers: [t]\ntools: {t: [echo]}\nresources: {t: [\"test://notes/*\"]}\n---\nRead.\n",
    );
    // Resources of another card do not concern the reader.
    home.write(
        "asker.md",
        "---\nservers: [t]\ntools: {t: [\"a*\"]}\nresources: {t: [picture]}\nprompts: {t: [greet]}\n---\nAsk.\n",
    );
    let script = SimulatorScript::new().answer_calls(|seen| match (seen.system, seen.turn) {
        ("Read.", 1) => call("t__read_resource", json!({"uri": "test://notes/2"})),
        ("Read.", 2) => call("t__read_resource", json!({"uri": "test://picture.png"})),
        ("Ask.", 1) => call("t__get_prompt", json!({"name": "greet", "arguments": {"who": seen.prompt}})),
        ("Read.", _) => SimulatedAnswer::Text(results(seen.messages)),
        _ => SimulatedAnswer::Text(seen.last.to_owned()),
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
        let message = envelope["result"].as_str().unwrap();
        assert!(message.contains(&format!("Hello, {read}!")), "{message}");
    }
}

/// The tool results in a conversation.
fn results(messages: &[rowmill_testkit::RecordedMessage]) -> String {
    let texts = messages.iter().flat_map(|message| &message.answers).map(|result| result.text.as_str());
    texts.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_call_that_takes_too_long_is_reported_to_the_model_and_others_go_on() {
    let config = own_entry("t", &[], "timeout = \"300ms\"");
    let policy = "servers: [t]\ntool_policy: {t__hang_twice: {timeout: 0.2}}";
    let home = home(9, &config, &card(policy));
    let script = SimulatorScript::new().answer_calls(|seen| {
        match (seen.turn, crate::mcp::kit::number(seen.prompt) % 3) {
            (1, 0) => call("t__hang", json!({})),
            (1, 1) => call("t__hang_twice", json!({})),
            (1, _) => call("t__echo", json!({"text": seen.prompt})),
            _ => SimulatedAnswer::Text(seen.last.to_owned()),
        }
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

/// The files of a folder that contain the secret.
fn with_secret(home: &std::path::Path) -> Vec<std::path::PathBuf> {
    let holds = |path: &std::path::PathBuf| {
        // A file of the run may be removed meanwhile.
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
    let script = SimulatorScript::new().answer_calls({
        let (found, folder) = (Arc::clone(&found), home.path(""));
        move |seen| match seen.turn {
            1 => call("one__echo", json!({"text": seen.prompt})),
            2 => call("two__echo", json!({"text": format!("{} again", seen.last)})),
            _ => {
                found.lock().unwrap().extend(with_secret(&folder));
                SimulatedAnswer::Text(seen.last.to_owned())
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
    let home = home(2, "", &card(&own_in_card(&[], "env: {SHOP: \"${SHOP_NAME}\"}")));
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => SimulatedAnswer::Calls {
            text: String::new(),
            calls: [json!({"name": "SHOP"}), json!({})].map(|which| ("t__env".to_owned(), which)).into(),
        },
        _ => SimulatedAnswer::Text(results(seen.messages)),
    });
    let simulator = Simulator::start_blocking(script);
    run(&home, &simulator).env("SHOP_NAME", "corner").key("k-secret").ends_with(0);
    let reported = result(&home);
    assert!(reported.starts_with("corner; "), "{reported}");
    assert!(
        reported.contains("PATH") && !reported.contains("KEY") && !reported.contains("SHOP_NAME"),
        "{reported}"
    );
}

fn result(home: &Home) -> String {
    let envelopes = home.envelopes();
    let results: Vec<&Value> = envelopes.iter().map(|envelope| &envelope["result"]).collect();
    results[0].as_str().unwrap().to_owned()
}

#[test]
fn flags_deny_a_tool_of_a_server_or_make_its_answer_the_result() {
    let home = home(3, "", &card(&own_in_card(&[], "tools: [echo, add]")));
    let simulator =
        Simulator::start_blocking(calling("t__echo", |row| json!({"text": format!("said {row}")})));
    run(&home, &simulator).args(&["--passthrough", "t__echo"]).ends_with(0);
    assert_eq!(simulator.stats().requests, 3, "no second turn");
    assert_eq!(result(&home), "said 1");

    run(&home, &simulator).args(&["--deny", "t__e*", "--overwrite"]).ends_with(0);
    assert_eq!(result(&home), "the tool `t__echo` is denied in this run");
}

/// Our server in the folder of a package that is known to keep one file.
fn memory_server(home: &Home, more: &str) -> String {
    let folder = home.path("node_modules/@modelcontextprotocol/server-memory");
    std::fs::create_dir_all(&folder).unwrap();
    let words = rowmill_testkit::mcp_server();
    let script = folder.join("index.py");
    std::fs::copy(words.last().unwrap(), &script).unwrap();
    home.write("memory.json", "[]");
    let memory = home.path("memory.json");
    let words =
        [words[0].as_str(), "-I", "-S", script.to_str().unwrap(), "--memory", memory.to_str().unwrap()];
    entry("memory", &words, more)
}

#[test]
fn a_server_that_is_known_to_keep_one_file_is_called_one_at_a_time_and_loses_no_write() {
    let home = home(50, "", &card("servers: [memory]"));
    home.write("rowmill.toml", &memory_server(&home, ""));
    let simulator =
        Simulator::start_blocking(calling("memory__remember", |row| json!({"label": row.to_string()})));
    let ended = run(&home, &simulator).args(&["--parallel", "16"]).ends_with(0);
    ended.says(&["calls of the MCP server `memory` are made one at a time", "server-memory", "max_parallel"]);
    assert_all_ok(&home.envelopes(), 50);
    let kept: Vec<String> = serde_json::from_str(&home.read("memory.json")).unwrap();
    assert_eq!(kept.len(), 50, "no write is lost");
}

#[test]
fn max_parallel_of_an_entry_and_of_a_card_bound_calls_over_all_rows() {
    // Each of the two protects the file by itself: the entry for the tool, and the card for the tool's
    // own name.
    for (entry, fields) in [
        ("max_parallel = { remember = 1 }", "servers: [memory]"),
        ("max_parallel = 16", "servers: [memory]\ntool_policy: {memory__remember: {max_parallel: 1}}"),
    ] {
        let home = home(30, "", &card(fields));
        home.write("rowmill.toml", &memory_server(&home, entry));
        let simulator =
            Simulator::start_blocking(calling("memory__remember", |row| json!({"label": row.to_string()})));
        let ended = run(&home, &simulator).args(&["--parallel", "16"]).ends_with(0);
        assert!(!ended.err.contains("one at a time"), "what the user says needs no notice: {}", ended.err);
        let kept: Vec<String> = serde_json::from_str(&home.read("memory.json")).unwrap();
        assert_eq!(kept.len(), 30, "{entry} {fields}");
    }
}

#[test]
fn max_parallel_of_a_server_is_how_many_of_its_calls_are_made_at_once() {
    // Calls of `meet` wait for a group of this size: with fewer calls at once the run would not
    // succeed.
    for (group, entry, most) in [("3", "max_parallel = 3", 3), ("6", "", MEETING_ROWS)] {
        let home = home(MEETING_ROWS, &own_entry("t", &["--meet", group], entry), &card("servers: [t]"));
        assert_eq!(most_at_once(&home), most, "{entry}");
    }
}

#[test]
fn a_secret_that_a_tool_returns_is_replaced_in_every_file_with_a_notice() {
    let home =
        home(3, "", &card(&own_in_card(&[], "env: {SHOP_TOKEN: \"${SHOP_TOKEN}\", LEVEL: \"12345\"}")));
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => call("t__env", json!({"name": "SHOP_TOKEN"})),
        2 => call("t__env", json!({"name": "LEVEL"})),
        _ => SimulatedAnswer::Text(results(seen.messages)),
    });
    let simulator = Simulator::start_blocking(script);
    let kept =
        ["--checkpoint-turns", "--keep-temp", "--record-tools", "recorded", "--export-traces", "traces"];
    let ended = run(&home, &simulator).env("SHOP_TOKEN", SECRET).args(&kept).ends_with(0);

    ended.says(&["known secrets were replaced by `***`"]);
    assert_eq!(result(&home), "***; 12345", "short values are settings");
    assert_eq!(with_secret(&home.path("")), Vec::<std::path::PathBuf>::new());
    let turns = home.read(".out.jsonl.rowmill/ledger-1.jsonl");
    assert!(turns.contains("\"tool_ended\"") && turns.contains("***"), "{turns}");
}

#[test]
fn secrets_in_arguments_and_headers_of_a_card_are_in_no_file_no_error_and_no_diff() {
    let server = OwnServer::start(&["--token", "planted-header"]);
    let mut words = rowmill_testkit::mcp_server();
    for word in [
        "--token",
        "planted-flagged",
        "--ignore=http://u:planted-password@h/?k=planted-query",
        "--header",
        "Authorization: Bearer planted-bearer",
        "http://u:planted-address@h/",
    ] {
        words.push(word.to_owned());
    }
    let args = |more: &[&str]| {
        let all: Vec<&str> = words[1..].iter().map(String::as_str).chain(more.iter().copied()).collect();
        serde_json::to_string(&all).unwrap()
    };
    let fields = |more: &[&str]| {
        format!(
            "mcp_connect:\n  t:\n    command: {}\n    args: {}\n  two:\n    url: {}?k=planted-url-query\n    \
             headers: {{Authorization: Bearer planted-header, X-Tenant: planted-tenant}}",
            words[0],
            args(more),
            server.url
        )
    };
    let home = home(3, "", &card(&fields(&[])));
    let message = "planted-flagged planted-password planted-query planted-bearer planted-address planted-header \
                planted-tenant planted-url-query";
    let script = SimulatorScript::new().answer_calls(move |seen| match seen.turn {
        1 => call("t__echo", json!({"text": message})),
        2 => call("two__echo", json!({"text": message})),
        _ => SimulatedAnswer::Text(seen.last.to_owned()),
    });
    let simulator = Simulator::start_blocking(script);
    let kept =
        ["--checkpoint-turns", "--keep-temp", "--record-tools", "recorded", "--export-traces", "traces"];
    let more = ["--telemetry-output", "telemetry.jsonl", "--final-summary"];
    let ended = run(&home, &simulator).args(&kept).args(&more).ends_with(0);
    assert!(!ended.out.contains("planted") && !ended.err.contains("planted"), "{}", ended.err);
    assert_eq!(result(&home), "*** *** *** *** *** *** *** ***");
    let holds = |path: &std::path::PathBuf| {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        text.contains("planted") && !path.ends_with("worker.md")
    };
    let leaks = |home: &Home| files(&home.path("")).into_iter().filter(holds).collect::<Vec<_>>();
    assert_eq!(leaks(&home), [] as [std::path::PathBuf; 0]);
    assert!(home.read(".out.jsonl.rowmill/run.json").contains("--token"), "the card is kept");

    home.write("worker.md", &card(&fields(&["--page", "3"])).replace("planted-bearer", "planted-another"));
    let refused = run(&home, &simulator).args(&["--resume"]).ends_with(1);
    refused.says(&["error[RM1306]", "--page"]);
    assert!(!refused.err.contains("planted"), "{}", refused.err);

    home.write("worker.md", &card(&fields(&["--exit", "7"])));
    let failed = run(&home, &simulator).args(&["--overwrite"]).ends_with(1);
    failed.says(&["error[RM1601]", "--token *** --ignore=http://h/ --header Authorization: *** http://h/"]);
    assert!(!failed.err.contains("planted"), "{}", failed.err);
    assert_eq!(leaks(&home), [] as [std::path::PathBuf; 0]);
}

#[test]
fn more_tools_than_the_provider_takes_are_reported_at_the_start_with_how_to_offer_fewer() {
    let home = home(1, &own_entry("t", &["--many", "120"], ""), &card("servers: [t]"));
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let message =
        ["`openai.m` is offered 141 tools, but `openai` accepts at most 128", "`tools` of a server"];
    let openai = |home: &Home| {
        let run = home.run().model(&simulator, "openai.m").env("PATH", env!("PATH"));
        run.env("HOME", home.path("").to_str().unwrap()).args(&["--agent-card", "worker.md"]).ends_with(0)
    };
    openai(&home).says(&message);
    home.remove("out.jsonl");
    home.write("rowmill.toml", &own_entry("t", &["--many", "120"], "tools = [\"more_*\"]"));
    assert!(!openai(&home).err.contains("at most"));
}

#[test]
fn every_provider_that_bounds_tools_is_reported_with_its_own_bound() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let url = simulator.url();
    for (model, many, variables, reported) in [
        ("google.m", "500", None, Some("`google.m` is offered 521 tools, but `google` accepts at most 512")),
        ("google.m", "120", None, None),
        ("anthropic.m", "500", None, None),
        (
            "groq.m",
            "120",
            Some("GROQ"),
            Some("`groq.m` is offered 141 tools, but `groq` accepts at most 128"),
        ),
        ("deepseek.m", "120", Some("DEEPSEEK"), Some("but `deepseek` accepts at most 128")),
        ("xai.m", "120", Some("XAI"), Some("but `xai` accepts at most 128")),
    ] {
        let home = home(1, &own_entry("t", &["--many", many], ""), &card("servers: [t]"));
        let mut run = home.run().model(&simulator, model).env("PATH", env!("PATH"));
        if let Some(provider) = variables {
            run = run.env(&format!("{provider}_BASE_URL"), &format!("{url}/v1"));
            run = run.env(&format!("{provider}_API_KEY"), "k");
        }
        let run = run.env("HOME", home.path("").to_str().unwrap()).args(&["--agent-card", "worker.md"]);
        let ended = run.ends_with(0);
        match reported {
            Some(reported) => {
                ended.says(&[reported]);
            }
            None => assert!(!ended.err.contains("at most"), "{model}: {}", ended.err),
        }
    }
}

#[test]
fn tools_that_can_be_called_only_as_tasks_are_reported_and_not_offered() {
    let home =
        home(1, &own_entry("t", &["--task", "echo"], ""), &card("servers: [t]\ntools: {t: [echo, add]}"));
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let ended = run(&home, &simulator).ends_with(0);
    ended.says(&[
        "the MCP server `t` has tools that can only be called as tasks, which is not supported; they are not \
         offered: `echo`",
    ]);
    assert_eq!(simulator.calls()[0].tools, ["t__add"]);
}
