//! The same run with every provider, and the messages if one cannot be used.

use std::io::{Read, Write, copy};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::support::{EVERY_FILE, KEY, Place, assert_in_no_file, each, finish, scripted, simulated};
use rowmill_testkit::{FaultTrigger, RecordedRequest, SimulatedFault, SimulatorScript};
use serde_json::{Value, json};

/// How requests of a protocol contain the key and the path, and how they request streaming.
struct Protocol {
    model: &'static str,
    path: &'static str,
    stream_path: &'static str,
    key: (&'static str, &'static str),
}

const CHAT: &str = "/v1/chat/completions";
const BEARER: (&str, &str) = ("authorization", "Bearer sk-test-key");

const PROTOCOLS: &[Protocol] = &[
    Protocol { model: "openai.m", path: CHAT, stream_path: CHAT, key: BEARER },
    Protocol { model: "generic.m", path: CHAT, stream_path: CHAT, key: BEARER },
    Protocol { model: "responses.m", path: "/v1/responses", stream_path: "/v1/responses", key: BEARER },
    Protocol {
        model: "anthropic.m",
        path: "/v1/messages",
        stream_path: "/v1/messages",
        key: ("x-api-key", KEY),
    },
    Protocol {
        model: "google.m",
        path: "/v1beta/models/m:generateContent",
        stream_path: "/v1beta/models/m:streamGenerateContent?alt=sse",
        key: ("x-goog-api-key", KEY),
    },
];

fn last(simulator: &rowmill_testkit::Simulator) -> RecordedRequest {
    simulator.requests().pop().unwrap()
}

#[test]
fn a_plain_run_goes_through_every_protocol_whole_and_streamed() {
    for protocol in PROTOCOLS {
        for (setting, path) in
            [("", protocol.path), ("?stream=false", protocol.path), ("?stream=true", protocol.stream_path)]
        {
            let (simulator, place) = simulated();
            place.write_rows(3);
            let model = format!("{}{setting}", protocol.model);
            let flags = ["-p", "é {{n}}", "--parallel", "1", "--telemetry-output", "times.jsonl"];
            place.run_rows(&[&["-m", model.as_str()], &flags[..]].concat()).ok();
            let results = [json!("answer to: é 1"), json!("answer to: é 2"), json!("answer to: é 3")];
            assert_eq!(each(&place.json("out.jsonl"), "/result"), results, "{model}");
            let request = last(&simulator);
            assert_eq!(
                (request.path.as_str(), request.header(protocol.key.0)),
                (path, Some(protocol.key.1)),
                "{model}"
            );
            let streams = setting.ends_with("true");
            for line in place.json("times.jsonl") {
                assert_eq!(line["timing"]["ttft_ms"].is_number(), streams, "{model}: {line}");
            }
            assert_eq!(simulator.stats().connections, 1, "{model}: one connection serves all rows");
        }
    }
}

#[test]
fn usage_is_the_same_for_every_provider() {
    for protocol in PROTOCOLS {
        for setting in ["", "?stream=true"] {
            let (_simulator, place) = simulated();
            place.write_rows(2);
            place.write("i.md", "four".repeat(1_200));
            let model = format!("{}{setting}", protocol.model);
            let flags = [
                "-p",
                "prompt {{n}}",
                "--instruction",
                "i.md",
                "--parallel",
                "1",
                "--telemetry-output",
                "times.jsonl",
            ];
            let ended = place.run_rows(&[&["-m", model.as_str()], &flags[..]].concat()).ok();
            // Vendors count their caches in different ways, and one reports what it writes.
            let (written, cached) = match protocol.model {
                "anthropic.m" => (1_200, 1_200),
                "google.m" => (0, 1_200),
                _ => (0, 1_152),
            };
            let turn = |written: u32, cached: u32| json!({"input_tokens": 1_202, "cached_tokens": cached, "cache_write_tokens": written, "output_tokens": 5, "reasoning_tokens": 0});
            let turns = [turn(written, 0), turn(0, cached)];
            assert_eq!(each(&place.json("times.jsonl"), "/usage/turn"), turns, "{model}");
            let summary = ended.summary();
            assert_eq!(
                (&summary["usage"]["prompt_tokens"], &summary["cache"]["read_tokens"]),
                (&json!(2_404), &json!(cached))
            );
        }
    }
}

#[test]
fn responses_can_be_streamed_as_events() {
    let (simulator, place) = simulated();
    place.write_rows(1);
    place.run_rows(&["-m", "responses.m?transport=sse"]).ok();
    let request = last(&simulator);
    assert_eq!((request.method.as_str(), &request.json()["stream"]), ("POST", &json!(true)));
    assert_eq!(
        (request.json()["store"].clone(), request.header("accept")),
        (json!(false), Some("text/event-stream"))
    );
}

#[test]
fn one_websocket_per_call_in_flight_serves_all_rows() {
    for transport in ["ws", "auto"] {
        for (parallel, sockets) in [("1", 1), ("3", 3)] {
            let (simulator, place) = scripted(SimulatorScript::new().key(KEY).hold_after(0));
            place.write_rows(12);
            let model = format!("responses.m?transport={transport}");
            let child = place.start_rows(&["-m", &model, "-p", "{{n}}", "--parallel", parallel]);
            simulator.wait_until_blocking(|stats| stats.in_flight == sockets);
            simulator.release();
            let ended = finish(child).ok();
            let results: Vec<Value> = (1..=12).map(|n| json!(format!("answer to: {n}"))).collect();
            assert_eq!(each(&place.json("out.jsonl"), "/result"), results);
            let stats = simulator.stats();
            assert_eq!((stats.connections, stats.answers), (sockets, 12), "{model}");
            assert_eq!(last(&simulator).method, "WEBSOCKET");
            assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
        }
    }
}

/// Forwards connections to `target`, but rejects those that request a WebSocket. Returns the address;
/// the threads end with the test.
fn without_websockets(target: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move |mut client: TcpStream| -> std::io::Result<()> {
        let mut first = [0; 4];
        client.read_exact(&mut first)?;
        if &first == b"GET " {
            return client.write_all(
                b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
        let mut server = TcpStream::connect(&target)?;
        server.write_all(&first)?;
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || copy(&mut from_client, &mut to_server));
        copy(&mut server, &mut client).map(drop)
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(client));
        }
    });
    format!("http://{address}")
}

#[test]
fn without_websockets_the_automatic_transport_goes_on_with_events_and_warns_once() {
    let (simulator, mut place) = simulated();
    let address = without_websockets(simulator.url().replace("http://", ""));
    place.set("OPENAI_BASE_URL", &format!("{address}/v1"));
    place.write_rows(9);
    let ended = place.run_rows(&["-m", "responses.m?transport=auto", "--parallel", "3"]).ok();
    assert_eq!(ended.stderr.matches("warning: ").count(), 1, "{}", ended.stderr);
    let ended = ended.says("warning: cannot open a WebSocket");
    ended.says("falling back to `transport=sse`\n");
    assert_eq!((simulator.stats().answers, last(&simulator).json()["stream"].clone()), (9, json!(true)));

    let ended = place.run_rows(&["-m", "responses.m?transport=ws", "--retries", "0", "--overwrite"]);
    assert_ne!(ended.code, 0);
    assert_eq!(simulator.stats().answers, 9);
}

#[test]
fn model_strings_that_cannot_be_used_list_what_exists() {
    for (model, message, help) in [
        (
            "opena.m",
            "unknown provider `opena` in `opena.m`",
            "did you mean `openai.m`? providers: responses, openai, anthropic, google,",
        ),
        (
            "nowhere.m",
            "unknown provider `nowhere` in `nowhere.m`",
            "providers: responses, openai, anthropic, google,",
        ),
        (
            "something",
            "no provider is known for the model `something`",
            "e.g. `generic.something`; providers: responses,",
        ),
        ("openai", "`openai` is a provider; the model is missing", "`openai.MODEL`"),
        ("openai.", "`openai.` does not name a model", "`openai.MODEL`"),
        (
            "openai.m?temprature=1",
            "`openai` has no key `temprature`",
            "did you mean `temperature`? `openai` takes: reasoning,",
        ),
        ("openai.m?temperature=9", "`temperature=9` is not valid for `openai`", "`temperature` takes:"),
        ("openai.m?temperature", "`temperature` is not of the form `key=value`", "`openai` takes:"),
        ("passthrough?seed=1", "`passthrough` has no key `seed`", "`passthrough` takes no keys"),
        ("openai.m.high", "`openai.m.high` ends in `.high`", "`openai.m?reasoning=high`"),
    ] {
        let (simulator, place) = simulated();
        place.write_rows(1);
        place.run_rows(&["-m", model]).code(1).says(&format!("error[RM1201]: {message}")).says(help);
        assert_eq!((simulator.stats().connections, place.exists("out.jsonl")), (0, false), "{model}");
    }
}

#[test]
fn a_model_that_is_set_to_nothing_counts_as_not_named() {
    let mut place = Place::new();
    place.write_rows(1);
    place.set("ROWMILL_MODEL", "");
    place.run_rows(&[]).code(2).says("error[RM0001]: no model given\n").says("help: use `--model`");
    place.write("rowmill.toml", "[run]\nmodel = \"passthrough\"\n");
    place.run_rows(&[]).ok();
}

#[test]
fn a_missing_key_names_its_variable_and_an_empty_one_is_missing() {
    for (model, provider, variables) in [
        ("openai.m", "openai", "`OPENAI_API_KEY`"),
        ("responses.m", "responses", "`OPENAI_API_KEY`"),
        ("anthropic.m", "anthropic", "`ANTHROPIC_API_KEY`"),
        ("google.m", "google", "`GEMINI_API_KEY` or `GOOGLE_API_KEY`"),
        ("groq.m", "groq", "`GROQ_API_KEY`"),
    ] {
        let mut place = Place::new();
        place.write_rows(1);
        let message = format!("error[RM1202]: `{provider}` needs a key, but {variables} is not set\n");
        place.run_rows(&["-m", model]).code(1).says(&message).says("help: set it: `export ");
        place.set("OPENAI_API_KEY", "  ");
        place.run_rows(&["-m", model]).code(1).says(&message);
        assert_eq!(place.names("."), ["rows.jsonl", "tmp"]);
    }
}

#[test]
fn models_lists_providers_with_the_state_of_their_keys() {
    let mut place = Place::new();
    place.set("ANTHROPIC_API_KEY", "sk-never-shown");
    place.set("GENERIC_BASE_URL", "http://localhost:9/v1");
    place.write(
        "rowmill.toml",
        "[providers.lab]\nbase_url = \"http://lab.test/v1\"\napi_key_env = \"LAB_KEY\"\n",
    );
    let text = place.rowmill(&["models"]).ok().stdout;
    for part in [
        "key missing: set OPENAI_API_KEY",
        "key set in ANTHROPIC_API_KEY",
        "key optional: GENERIC_API_KEY",
        "built in, needs no key",
        "http://localhost:9/v1",
        "http://lab.test/v1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value = serde_json::from_str(&place.rowmill(&["models", "--json"]).ok().stdout).unwrap();
    let find =
        |name: &str| json.as_array().unwrap().iter().find(|entry| entry["provider"] == name).unwrap().clone();
    assert_eq!((&find("openai")["key"], &find("openai")["key_set_in"]), (&json!("missing"), &Value::Null));
    assert_eq!(
        (&find("anthropic")["key"], &find("anthropic")["key_set_in"]),
        (&json!("set"), &json!("ANTHROPIC_API_KEY"))
    );
    assert_eq!(
        (&find("passthrough")["key"], &find("lab")["key_variables"]),
        (&json!("not needed"), &json!(["LAB_KEY"]))
    );
    assert!(find("openai")["settings"].as_array().unwrap().contains(&json!("temperature")));
    assert!(!text.contains("sk-never-shown") && !json.to_string().contains("sk-never-shown"));
}

#[test]
fn a_refused_key_or_an_unknown_model_stops_the_run_after_one_call() {
    for protocol in PROTOCOLS {
        for (script, code) in [
            (SimulatorScript::new().key("another"), "RM2001"),
            (SimulatorScript::new().model("other"), "RM2002"),
        ] {
            let (simulator, place) = scripted(script);
            place.write_rows(9);
            let ended = place.run_rows(&["-m", protocol.model, "--parallel", "1"]).code(1);
            assert_eq!(ended.stderr.matches("error[").count(), 1, "{}", ended.stderr);
            ended.says(code).says("help: ");
            assert_eq!(
                (simulator.stats().requests, place.json("out.jsonl").len()),
                (1, 1),
                "{}",
                protocol.model
            );
        }
    }
}

#[test]
fn a_key_that_the_provider_echoes_is_nowhere_to_be_seen() {
    let secret = "sk-planted-0123456789";
    let echo =
        json!({"error": {"message": format!("bad key {secret} given"), "code": format!("no_{secret}")}})
            .to_string();
    for protocol in PROTOCOLS {
        for (status, code) in [(400, 3), (401, 1), (404, 1), (503, 3)] {
            let fault = SimulatedFault::from_status(status).with_body(echo.as_str());
            let (_simulator, mut place) = scripted(SimulatorScript::new().fault(FaultTrigger::Always, fault));
            for variable in ["OPENAI_API_KEY", "GENERIC_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
                place.set(variable, secret);
            }
            place.write_rows(2);
            let flags =
                ["--retries", "1", "--retry-wait", "1ms", "--keep-temp", "--telemetry-output", "times.jsonl"];
            let more =
                ["--error-output", "bad.jsonl", "--summary-output", "sum.json", "--progress-every", "1"];
            let ended = place.run_rows(&[&["-m", protocol.model], &flags[..], &more].concat()).code(code);
            assert!(!ended.stdout.contains(secret) && !ended.stderr.contains(secret), "{}", ended.stderr);
            assert_in_no_file(&place.path("."), secret);
            let error = &place.json("out.jsonl")[0]["error"]["message"];
            assert!(error.as_str().unwrap().contains("bad key *** given"), "{error}");
        }
    }
}

#[test]
fn a_password_in_a_base_url_is_nowhere_to_be_seen() {
    let mut place = Place::new();
    place.set("GENERIC_BASE_URL", "http://user:planted-password@127.0.0.1:1/v1");
    place.write_rows(1);
    let flags = ["-m", "generic.m", "--retries", "0", "--keep-temp", "--summary-output", "sum.json"];
    let ended = place.run_rows(&flags).code(1).says("127.0.0.1:1");
    let listed = place.rowmill(&["models"]).ok();
    for text in [&ended.stdout, &ended.stderr, &listed.stdout, &listed.stderr] {
        assert!(!text.contains("planted-password"), "{text}");
    }
    assert_in_no_file(&place.path("."), "planted-password");
}

#[test]
fn a_written_header_that_the_provider_echoes_is_nowhere_to_be_seen() {
    for (header, value, part) in [
        ("authorization", "Bearer PLANTED9secretH", "PLANTED9secretH"),
        ("authorization", "Basic YW5uOlBMQU5URUQ5c2VjcmV0", "PLANTED9secret"),
        ("x-api-key", "PLANTED9secretH", "PLANTED9secretH"),
        ("cookie", "session=PLANTED9secretH; mode=dark", "PLANTED9secretH"),
        ("x-auth", "PLANTED9secretH", "PLANTED9secretH"),
        ("x-tenant", "PLANTED9secretH", "PLANTED9secretH"),
    ] {
        let echo = json!({"error": {"message": format!("application/json; not {value}, that is {part}")}});
        let fault = SimulatedFault::from_status(400).with_body(echo.to_string().as_str());
        let (_simulator, place) = scripted(SimulatorScript::new().fault(FaultTrigger::Always, fault));
        let headers =
            format!("headers = {{ {header} = \"{value}\", content-type = \"application/json\" }}\n");
        place.write("rowmill.toml", format!("[providers.generic]\n{headers}"));
        place.write_rows(2);
        let ended = place.run_rows(&[&["-m", "generic.m"], EVERY_FILE].concat()).code(3);
        let token = value.rsplit(' ').next().unwrap();
        std::fs::remove_file(place.path("rowmill.toml")).unwrap();
        for secret in [part, token] {
            assert!(!ended.stdout.contains(secret) && !ended.stderr.contains(secret), "{}", ended.stderr);
            assert_in_no_file(&place.path("."), secret);
        }
        let error = &place.json("out.jsonl")[0]["error"]["message"];
        assert_eq!(error, "application/json; not ***, that is ***", "{header}");
    }
}

#[test]
fn a_key_in_the_query_of_a_base_url_is_nowhere_to_be_seen() {
    let secrets = ["PLANTED9secretB", "PW12345678", "user:"];
    let nowhere = |text: &str| secrets.iter().all(|secret| !text.contains(secret));
    for protocol in PROTOCOLS {
        let echo = json!({"error": {"message": "bad key PLANTED9secretB or PW12345678"}}).to_string();
        let fault = SimulatedFault::from_status(404).with_body(echo.as_str());
        let (simulator, mut place) = scripted(SimulatorScript::new().fault(FaultTrigger::Always, fault));
        let host = simulator.url().replace("http://", "");
        let query = "key=PLANTED9secretB&api-version=2024-10-21";
        for address in [host.as_str(), "127.0.0.1:1"] {
            for variable in ["OPENAI_BASE_URL", "GENERIC_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"] {
                place.set(variable, &format!("http://user:PW12345678@{address}/v1?{query}"));
            }
            place.write("rows.jsonl", "{\"n\":\"2024-10-21\"}\n");
            let flags = ["-m", protocol.model, "--overwrite", "--include-input"];
            let ended = place.run_rows(&[&flags[..], EVERY_FILE].concat()).code(1).says(address);
            let listed = [&["models"][..], &["models", "--json"], &["models", protocol.model]]
                .map(|arguments| place.rowmill(arguments).ok());
            for shown in listed.iter().chain([&ended]) {
                assert!(
                    nowhere(&shown.stdout) && nowhere(&shown.stderr),
                    "{} {}",
                    shown.stdout,
                    shown.stderr
                );
            }
            secrets.iter().for_each(|secret| assert_in_no_file(&place.path("."), secret));
            assert!(place.read("out.jsonl").contains("2024-10-21"), "a version is no secret");
            std::fs::remove_dir_all(place.path("traces")).unwrap();
        }
    }
}

#[test]
fn an_address_in_the_place_of_a_model_and_a_key_in_the_place_of_a_variable_are_not_repeated() {
    let mut place = Place::new();
    place.write_rows(1);
    for model in ["http://u:PLANTED9s@h.test/v1?k=PLANTED9s", "nowhere.http://u:PLANTED9s@h.test/v1"] {
        for flags in [["-m", model].to_vec(), vec!["-m", "passthrough", "--fallback-model", model]] {
            let ended = place.run_rows(&flags).code(1).says("error[RM1201]").says("http://h.test/v1");
            assert!(!ended.stderr.contains("PLANTED9s"), "{}", ended.stderr);
        }
    }
    place
        .run_rows(&["-m", "https://h.test/v1"])
        .code(1)
        .says("is a URL, not a model")
        .says("GENERIC_BASE_URL");
    for address in ["ftp://u:PLANTED9s@h.test/v1", "u:PLANTED9s@h.test/v1?k=PLANTED9s"] {
        place.set("GENERIC_BASE_URL", address);
        let ended = place.run_rows(&["-m", "generic.m"]).code(1).says("is not a URL").says("h.test/v1");
        assert!(!ended.stderr.contains("PLANTED9s"), "{}", ended.stderr);
    }
    for key in ["sk-PLANTED9s", "hf_PLANTED9sPLANTED9s", "AIzaPLANTED9sPLANTED9s", "PLANTED9s key"] {
        place.write("rowmill.toml", format!("[providers.openai]\napi_key_env = \"{key}\"\n"));
        for ended in [place.run_rows(&["-m", "openai.m"]).code(1), place.rowmill(&["models"])] {
            let ended = ended.says("does not look like the name of a variable");
            assert!(!(ended.stdout + &ended.stderr).contains("PLANTED9s"), "{}", ended.stderr);
        }
    }
    place.write("rowmill.toml", "[providers.openai]\napi_key_env = \"my_openai_key_for_lab2\"\n");
    place.run_rows(&["-m", "openai.m"]).code(1).says("`my_openai_key_for_lab2` is not set");
}

#[test]
fn a_token_in_the_address_of_a_text_is_nowhere_to_be_seen() {
    let script = SimulatorScript::new().serve_text("t.md", "Row {{n}}");
    let (simulator, place) = scripted(script);
    place.write_rows(1);
    let host = simulator.url().replace("http://", "");
    let template = format!("http://user:planted-token@{host}/text/t.md?token=planted-token");
    let missing = format!("http://{host}/text/none.md?token=planted-token");
    let run = |flag: &str, source: &str| {
        place.run_rows(&[
            "-m",
            "openai.m",
            flag,
            source,
            "--overwrite",
            "--keep-temp",
            "--summary-output",
            "sum.json",
        ])
    };
    for ended in [run("--template", &template).ok(), run("--instruction", &missing).code(1)] {
        assert!(!ended.stdout.contains("planted-token"), "{}", ended.stdout);
        assert!(!ended.stderr.contains("planted-token"), "{}", ended.stderr);
    }
    assert_in_no_file(&place.path("."), "planted-token");
}

#[test]
fn an_alias_is_sent_as_the_model_that_it_stands_for_and_reported_once() {
    let (simulator, mut place) = simulated();
    place.set("HF_BASE_URL", &simulator.url());
    place.set("HF_TOKEN", KEY);
    place.write_rows(3);
    let ended = place.run_rows(&["-m", "kimi26instant?temp=0.5"]).ok();
    let body = last(&simulator).json();
    assert_eq!(
        [&body["model"], &body["temperature"], &body["top_p"], &body["chat_template_kwargs"]],
        [&json!("moonshotai/Kimi-K2.6:novita"), &json!(0.5), &json!(0.95), &json!({"thinking": false})]
    );
    let means =
        "`kimi26instant` means `hf.moonshotai/Kimi-K2.6:novita?reasoning=off&temperature=0.5&top_p=0.95`";
    place.unset("HF_TOKEN");
    place.run_rows(&["-m", "kimi26instant", "--overwrite"]).code(1).says("HF_TOKEN");
    // A sign-in with the hub's own client works as well.
    place.write(".cache/huggingface/token", KEY);
    place.run_rows(&["-m", "kimi26instant", "--overwrite"]).ok();
    let moved = format!("`HF_BASE_URL` has no path; calls go to `{}/v1`", simulator.url());
    for message in [means, moved.as_str()] {
        assert_eq!(ended.stderr.matches(message).count(), 1, "{message}: {}", ended.stderr);
    }
}

#[test]
fn an_alias_of_a_built_in_model_is_reported_where_a_card_names_it_too() {
    let place = Place::new();
    place.write("rowmill.toml", "[aliases]\nquick = \"simulated?seed=3\"\n");
    place.write("cards/solo.md", "---\nmodel: quick\nrequest_params: {temperature: 1}\n---\nBe short.");
    place.write_rows(2);
    let ended = place.run_rows(&["--agent-card", "cards"]).ok();
    assert_eq!(ended.stderr.matches("`quick` means `simulated?seed=3`").count(), 1, "{}", ended.stderr);
}

#[test]
fn own_aliases_serve_as_models_and_fallback_models_and_a_changed_one_is_noticed() {
    let (simulator, place) = simulated();
    place.write("rowmill.toml", "[aliases]\nquick = \"generic.a?temperature=0\"\nspare = \"quick\"\n");
    place.write_rows(2);
    place.run_rows(&["-m", "quick", "--fallback-model", "spare"]).ok();
    assert_eq!(last(&simulator).json()["model"], "a");
    let asked = simulator.stats().requests;

    place.write("rowmill.toml", "[aliases]\nquick = \"generic.b?temperature=0\"\nspare = \"quick\"\n");
    let ended = place.run_rows(&["-m", "quick", "--resume"]);
    assert_ne!(ended.code, 0);
    ended.says("model");
    assert_eq!(simulator.stats().requests, asked);

    place.write("rowmill.toml", "[aliases]\nopenai = \"generic.b\"\n");
    let ended = place.run_rows(&["-m", "generic.a", "--overwrite"]).code(1);
    ended.says("`openai` in `[aliases]` would hide the provider `openai`");
}
