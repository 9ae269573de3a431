//! Tokens, money, the prompt cache and the lengths of answers.

use crate::support::{CHAT, Client, chat};
use rowmill_simulator::{
    RandomDistribution, ScriptedTurn, Simulator, SimulatorScript, Tokenizer, parse_flags,
};
use serde_json::{Value, json};

const ANTHROPIC: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

/// 1,200 tokens of four characters.
fn long() -> String {
    "long".repeat(1_200)
}

fn usage(reply: &Value) -> &Value {
    reply.get("usage").or_else(|| reply.get("usageMetadata")).unwrap()
}

#[test]
fn a_long_system_prompt_is_cached_once_it_was_answered() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let body = |system: &str| {
        json!({"model": "m", "instructions": system, "input": "x",
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": "x"}],
            "systemInstruction": {"parts": [{"text": system}]}, "contents": [{"parts": [{"text": "x"}]}]})
        .to_string()
    };
    for (path, place, cached) in [
        (CHAT, "/prompt_tokens_details/cached_tokens", json!(1_152)),
        ("/v1/responses", "/input_tokens_details/cached_tokens", json!(1_152)),
        ("/v1beta/models/m:generateContent", "/cachedContentTokenCount", json!(1_200)),
    ] {
        let mut ask = |system: &str| {
            let reply = client.post(path, "", &body(system)).json();
            usage(&reply).pointer(place).cloned().unwrap_or(json!(0))
        };
        let system = format!("{path}{}", long());
        let system = system.get(..4_800).unwrap();
        assert_eq!((ask(system), ask(system)), (json!(0), cached), "{path}");
        let short = system.get(..4 * 1_023).unwrap();
        assert_eq!((ask(short), ask(short)), (json!(0), json!(0)), "{path}");
    }
}

#[test]
fn anthropic_caches_what_is_marked_and_counts_what_it_writes() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let mut ask = |system: Value| {
        let body = json!({"model": "m", "max_tokens": 100, "system": system, "messages": [{"role": "user", "content": "four"}]});
        let reply = client.post("/v1/messages", ANTHROPIC, &body.to_string()).json();
        ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
            .map(|name| reply["usage"][name].as_u64().unwrap())
    };
    let marked = json!([{"type": "text", "text": long(), "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(ask(json!(long())), [1_201, 0, 0]);
    assert_eq!(ask(json!(long())), [1_201, 0, 0]);
    assert_eq!(ask(marked.clone()), [1, 1_200, 0]);
    assert_eq!(ask(marked), [1, 0, 1_200]);
    let stats = simulator.stats();
    assert_eq!((stats.input_tokens, stats.cached_tokens, stats.cache_write_tokens), (4_804, 1_200, 1_200));
}

#[test]
fn calls_that_wait_at_the_same_time_all_miss_the_cache() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let body = json!({"model": "m", "messages": [{"role": "system", "content": long()}, {"role": "user", "content": "x"}]});
    let body = body.to_string();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::to(&simulator)).collect();
    for client in &mut clients {
        client
            .send(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    simulator
        .wait_until_blocking(|stats| stats.minutes.iter().map(|minute| minute.requests).sum::<u64>() == 3);
    simulator.release();
    for client in &mut clients {
        assert_eq!(client.receive().json()["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    }
    assert_eq!(
        Client::to(&simulator).post(CHAT, "", &body).json()["usage"]["prompt_tokens_details"]["cached_tokens"],
        1_152
    );
}

#[test]
fn every_answer_that_was_made_is_charged_for_whether_it_arrived_or_not() {
    let price = parse_flags::parse_price("input=1,cached=0.1,output=4").unwrap();
    let simulator = Simulator::start_blocking(SimulatorScript::new().price(price));
    assert_eq!(simulator.stats().cost_usd.unwrap().pico(), 0);
    let mut made = 0;
    for (prompt, is_made) in [
        ("plain text", true),
        ("[[truncate]]", true),
        ("[[midway]]", true),
        ("[[empty]] ", true),
        ("[[reset]]", false),
        ("[[503]]", false),
        ("[[429]]", false),
        ("[[garbage]]", false),
    ] {
        Client::to(&simulator).post(CHAT, "", &chat(prompt));
        let tokens = simulator.stats().input_tokens;
        assert_eq!(tokens > made, is_made, "{prompt}");
        made = tokens;
    }
    let stats = simulator.stats();
    let cost = stats.input_tokens * 1_000_000 + stats.output_tokens * 4_000_000;
    assert_eq!(stats.cost_usd.unwrap().pico(), cost);
    let message = Client::to(&simulator).get("/stats").json();
    assert_eq!(message["cost_usd"].as_f64(), Some(cost as f64 / 1e12));
    assert_eq!(stats.minutes.iter().map(|minute| minute.output_tokens).sum::<u64>(), stats.output_tokens);
}

#[test]
fn an_abandoned_call_is_charged_for_only_once_its_answer_was_made() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let send = |prompt: &str| {
        let (mut client, body) = (Client::to(&simulator), chat(prompt));
        client
            .send(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        simulator.wait_until_blocking(|stats| stats.in_flight == 1);
        client
    };
    drop(send("never released"));
    let stats = simulator.wait_until_blocking(|stats| stats.abandoned == 1);
    assert_eq!(stats.input_tokens, 0);
    simulator.release();
    let client = send("[[drip]]");
    assert_eq!(simulator.wait_until_blocking(|stats| stats.input_tokens > 0).input_tokens, 2);
    drop(client);
    simulator.wait_until_blocking(|stats| stats.abandoned == 2);
}

#[test]
fn answers_have_the_length_that_their_prompt_draws() {
    let lengths = RandomDistribution::parse_token_counts("uniform:10..200").unwrap();
    for tokenizer in [Tokenizer::Characters, Tokenizer::O200k] {
        let script = SimulatorScript::new().answer_tokens(lengths).tokenizer(tokenizer).seed(3);
        let simulator = Simulator::start_blocking(script);
        let mut client = Client::to(&simulator);
        let mut length = |prompt: &str| {
            client.post(CHAT, "", &chat(prompt)).json()["usage"]["completion_tokens"].as_u64().unwrap()
        };
        let drawn: Vec<u64> = (0..20).map(|row| length(&format!("row {row}"))).collect();
        let again: Vec<u64> = (0..20).map(|row| length(&format!("row {row}"))).collect();
        assert_eq!(drawn, again);
        assert!(drawn.iter().all(|tokens| (9..=201).contains(tokens)), "{drawn:?}");
        assert!(drawn.iter().max().unwrap() > &(drawn.iter().min().unwrap() + 20), "{drawn:?}");
    }
}

#[test]
fn an_answer_ends_at_the_most_tokens_that_the_request_allows() {
    let script = SimulatorScript::new().answer_tokens(RandomDistribution::Constant(50.0));
    let simulator = Simulator::start_blocking(script);
    let mut client = Client::to(&simulator);
    let google = "/v1beta/models/m:generateContent";
    for (path, settings, used, ended, word) in [
        (CHAT, json!({"max_tokens": 7}), "/usage/completion_tokens", "/choices/0/finish_reason", "length"),
        (
            CHAT,
            json!({"max_completion_tokens": 7}),
            "/usage/completion_tokens",
            "/choices/0/finish_reason",
            "length",
        ),
        (CHAT, json!({"max_tokens": 50}), "/usage/completion_tokens", "/choices/0/finish_reason", "stop"),
        (
            "/v1/responses",
            json!({"max_output_tokens": 7}),
            "/usage/output_tokens",
            "/incomplete_details/reason",
            "max_output_tokens",
        ),
        ("/v1/messages", json!({"max_tokens": 7}), "/usage/output_tokens", "/stop_reason", "max_tokens"),
        (
            google,
            json!({"generationConfig": {"maxOutputTokens": 7}}),
            "/usageMetadata/candidatesTokenCount",
            "/candidates/0/finishReason",
            "MAX_TOKENS",
        ),
    ] {
        let mut body = json!({"model": "m", "input": "x", "messages": [{"role": "user", "content": "x"}],
            "contents": [{"parts": [{"text": "x"}]}]});
        body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let reply = client.post(path, ANTHROPIC, &body.to_string()).json();
        let tokens = if word == "stop" { 50 } else { 7 };
        assert_eq!(
            (reply.pointer(used), reply.pointer(ended)),
            (Some(&json!(tokens)), Some(&json!(word))),
            "{path} {settings}"
        );
    }
}

#[test]
fn thoughts_text_and_calls_of_tools_share_the_limit_that_a_request_sets() {
    let turn = || {
        let query = json!({"q": "q".repeat(400)});
        ScriptedTurn::new().think().text("Looking.").call("find", query).call("give", json!({}))
    };
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(move |_| turn().into()));
    let mut client = Client::to(&simulator);
    let mut ask = |most: u64| {
        let body = json!({"model": "m", "max_tokens": most, "messages": [{"role": "user", "content": "x"}]});
        client.post(CHAT, "", &body.to_string()).json()
    };
    for (most, calls) in [(11, 1), (50, 1), (1_000, 2)] {
        let reply = ask(most);
        let choice = &reply["choices"][0];
        let used = reply["usage"]["completion_tokens"].as_u64().unwrap();
        assert!(used <= most, "{used} of {most}");
        assert_eq!(choice["finish_reason"] == "length", calls == 1, "{choice}");
        assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), calls, "{choice}");
    }
}

#[test]
fn statistics_are_cheap_with_many_prompts() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().forget_prompts().keep_requests(0));
    let mut client = Client::to(&simulator);
    for row in 0..300 {
        client.post(CHAT, "", &chat(&format!("row {row}")));
    }
    let message = client.get("/stats");
    assert_eq!(message.json()["distinct_prompts"], 300);
    assert!(message.body.len() < 1_000, "{}", message.body);
}
