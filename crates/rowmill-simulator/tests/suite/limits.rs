//! Rate limits and quotas, as each vendor reports them.

use std::time::Duration;

use crate::support::{CHAT, Client, Reply, chat};
use rowmill_simulator::{LimitKind, SimulatedLimits, Simulator, SimulatorConditionChange, SimulatorScript};
use serde_json::{Value, json};

const ANTHROPIC: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
const GOOGLE: &str = "/v1beta/models/m:generateContent";

fn header<'r>(reply: &'r Reply, name: &str) -> Option<&'r str> {
    reply.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn number(reply: &Reply, name: &str) -> u64 {
    header(reply, name).unwrap().parse().unwrap()
}

/// The names of the rate limit headers, in their order.
fn limit_headers(reply: &Reply) -> Vec<&str> {
    let names = reply.head.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name);
    names.filter(|name| name.contains("ratelimit") || name.starts_with("retry-after")).collect()
}

fn messages(prompt: &str) -> String {
    json!({"model": "m", "max_tokens": 1_000_000, "messages": [{"role": "user", "content": prompt}]})
        .to_string()
}

fn google(prompt: &str) -> String {
    json!({"contents": [{"parts": [{"text": prompt}]}]}).to_string()
}

#[test]
fn openai_tells_its_limits_with_every_answer_and_refuses_what_does_not_fit() {
    let limits = SimulatedLimits { requests: Some(2), tokens: Some(1_000), ..SimulatedLimits::default() };
    let simulator = Simulator::start_blocking(SimulatorScript::new().limits(limits));
    let mut client = Client::to(&simulator);
    let names = [
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
        "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
    ];
    let first = client.post(CHAT, "", &chat(&"x".repeat(400)));
    assert_eq!((first.status, limit_headers(&first)), (200, names.to_vec()));
    assert_eq!(header(&first, "x-ratelimit-limit-requests"), Some("2"));
    assert_eq!(header(&first, "x-ratelimit-remaining-requests"), Some("1"));
    assert_eq!(header(&first, "x-ratelimit-limit-tokens"), Some("1000"));
    assert_eq!(header(&first, "x-ratelimit-remaining-tokens"), Some("900"));
    assert_eq!(header(&first, "x-ratelimit-reset-requests"), Some("30s"));
    assert_eq!(header(&first, "x-ratelimit-reset-tokens"), Some("6s"));

    let streamed = json!({"model": "m", "input": "x", "stream": true}).to_string();
    let second = client.post("/v1/responses", "", &streamed);
    assert_eq!((second.status, limit_headers(&second)), (200, names.to_vec()));

    let refused = client.post(CHAT, "", &chat("x"));
    assert_eq!(refused.status, 429);
    assert_eq!(limit_headers(&refused), [names.as_slice(), &["retry-after", "retry-after-ms"]].concat());
    let wait: u64 = header(&refused, "retry-after-ms").unwrap().parse().unwrap();
    assert!((10_000..=30_000).contains(&wait), "{wait}");
    assert_eq!(header(&refused, "retry-after"), Some(wait.div_ceil(1_000).to_string().as_str()));
    let error = &refused.json()["error"];
    assert_eq!((&error["type"], &error["code"]), (&json!("requests"), &json!("rate_limit_exceeded")));

    let other_key = client.post(CHAT, "authorization: Bearer other\r\n", &chat("x"));
    assert_eq!(header(&other_key, "x-ratelimit-remaining-requests"), Some("1"));
    let stats = simulator.stats();
    assert_eq!((stats.rate_limited, stats.by_status[&429], stats.minutes[0].rate_limited), (1, 1, 1));
    assert_eq!(stats.minutes[0].requests, 3);
    assert!(stats.minutes[0].quota_tokens < Some(1_000));
}

#[test]
fn what_a_call_may_generate_is_reserved_and_given_back() {
    let limits = SimulatedLimits { tokens: Some(1_000), ..SimulatedLimits::default() };
    let simulator = Simulator::start_blocking(SimulatorScript::new().limits(limits));
    let mut client = Client::to(&simulator);
    let body = |most: u64| {
        json!({"model": "m", "max_completion_tokens": most, "messages": [{"role": "user", "content": "four"}]})
            .to_string()
    };
    let first = client.post(CHAT, "", &body(599));
    assert_eq!(header(&first, "x-ratelimit-remaining-tokens"), Some("400"));
    // The answer had 4 tokens and the prompt 1, so 595 of 600 are available again; a few more may have been
    // added since.
    let second = client.post(CHAT, "", &body(599));
    let left = number(&second, "x-ratelimit-remaining-tokens");
    assert!(second.status == 200 && (395..=400).contains(&left), "{left}");
    let third = client.post(CHAT, "", &body(999));
    assert_eq!((third.status, &third.json()["error"]["type"]), (429, &json!("tokens")));
    let failed = client.post(CHAT, "", &chat("[[500]]"));
    let after = client.post(CHAT, "", &chat("four"));
    assert_eq!(failed.status, 500);
    let left = number(&after, "x-ratelimit-remaining-tokens");
    assert!((989..=1_000).contains(&left), "{left}");
}

#[test]
fn anthropic_tells_input_and_output_apart() {
    let limits = SimulatedLimits {
        requests: Some(50),
        input_tokens: Some(30_000),
        output_tokens: Some(8_000),
        ..SimulatedLimits::default()
    };
    let simulator = Simulator::start_blocking(SimulatorScript::new().limits(limits));
    let mut client = Client::to(&simulator);
    let reply = client.post("/v1/messages", ANTHROPIC, &messages(&"x".repeat(10_000)));
    let message: Vec<String> = ["requests", "input-tokens", "output-tokens", "tokens"]
        .iter()
        .flat_map(|unit| {
            ["limit", "remaining", "reset"].map(|what| format!("anthropic-ratelimit-{unit}-{what}"))
        })
        .collect();
    assert_eq!((reply.status, limit_headers(&reply)), (200, message.iter().map(String::as_str).collect()));
    for (name, value) in [
        ("requests-remaining", "49"),
        ("input-tokens-limit", "30000"),
        ("input-tokens-remaining", "28000"),
        ("output-tokens-remaining", "8000"),
        ("tokens-limit", "8000"),
    ] {
        assert_eq!(header(&reply, &format!("anthropic-ratelimit-{name}")), Some(value), "{name}");
    }
    let reset = header(&reply, "anthropic-ratelimit-input-tokens-reset").unwrap();
    assert!(reset.len() == 20 && reset.ends_with('Z'), "{reset}");

    simulator.set_limits(SimulatedLimits { requests: Some(1), ..limits });
    assert_eq!(client.post("/v1/messages", ANTHROPIC, &messages("x")).status, 200);
    let refused = client.post("/v1/messages", ANTHROPIC, &messages("x"));
    assert_eq!((refused.status, &refused.json()["error"]["type"]), (429, &json!("rate_limit_error")));
    assert!((10..=60).contains(&number(&refused, "retry-after")), "{}", refused.head);
    assert_eq!(header(&refused, "retry-after-ms"), None);
}

#[test]
fn google_tells_nothing_until_it_refuses() {
    let limits = SimulatedLimits { requests: Some(1), ..SimulatedLimits::default() };
    let simulator = Simulator::start_blocking(SimulatorScript::new().limits(limits));
    let mut client = Client::to(&simulator);
    let first = client.post(GOOGLE, "", &google("x"));
    assert_eq!((first.status, limit_headers(&first)), (200, Vec::new()));
    let refused = client.post(GOOGLE, "", &google("x"));
    assert_eq!((refused.status, limit_headers(&refused)), (429, Vec::new()));
    let error = &refused.json()["error"];
    assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
    let info = error["details"].as_array().unwrap().last().unwrap();
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.RetryInfo");
    let wait: f64 = info["retryDelay"].as_str().unwrap().strip_suffix('s').unwrap().parse().unwrap();
    assert!((10.0..=60.0).contains(&wait), "{wait}");
}

#[test]
fn limits_change_on_the_script_and_by_hand() {
    let script = SimulatorScript::new()
        .limits(SimulatedLimits { requests: Some(600), ..SimulatedLimits::default() })
        .change_after(Duration::ZERO, SimulatorConditionChange::Limit(LimitKind::Requests, Some(60)))
        .change_after(
            Duration::from_secs(3_600),
            SimulatorConditionChange::Limit(LimitKind::Requests, Some(1)),
        );
    let simulator = Simulator::start_blocking(script);
    let mut client = Client::to(&simulator);
    let mut limit = || {
        let reply = client.post(CHAT, "", &chat("x"));
        (reply.status, header(&reply, "x-ratelimit-limit-requests").map(str::to_owned))
    };
    assert_eq!(limit(), (200, Some("60".into())));
    simulator.set_limits(SimulatedLimits { requests: Some(30), ..SimulatedLimits::default() });
    assert_eq!(limit(), (200, Some("30".into())));
    simulator.set_limits(SimulatedLimits::default());
    assert_eq!(limit(), (200, None));
}

#[test]
fn a_quota_runs_out_in_the_words_of_each_vendor() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().quota_requests(3));
    let mut client = Client::to(&simulator);
    let mut ask = || {
        [
            client.post(CHAT, "", &chat("x")),
            client.post("/v1/messages", ANTHROPIC, &messages("x")),
            client.post(GOOGLE, "", &google("x")),
        ]
    };
    let statuses = |replies: &[Reply; 3]| replies.each_ref().map(|reply| reply.status);
    assert_eq!(statuses(&ask()), [200; 3]);
    let refused = ask();
    assert_eq!(statuses(&refused), [429, 400, 429]);
    let errors: Vec<Value> = refused.iter().map(|reply| reply.json()["error"].clone()).collect();
    assert_eq!(
        (&errors[0]["type"], &errors[0]["code"]),
        (&json!("insufficient_quota"), &json!("insufficient_quota"))
    );
    assert_eq!(errors[1]["type"], "invalid_request_error");
    assert!(errors[1]["message"].as_str().unwrap().starts_with("Your credit balance is too low"));
    let quota = errors[2].pointer("/details/0/violations/0/quotaId").unwrap().as_str().unwrap();
    assert!(quota.contains("PerDay"), "{quota}");

    simulator.renew_quota();
    assert_eq!(statuses(&ask()), [200; 3]);
    assert_eq!(statuses(&ask()), [429, 400, 429]);
    assert_eq!(simulator.stats().quota_refused, 6);
}

#[test]
fn a_quota_can_be_exhausted_and_renewed_by_hand_and_is_renewed_in_time() {
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().quota_requests(1).quota_renews(Duration::ZERO));
    let mut client = Client::to(&simulator);
    for _ in 0..3 {
        assert_eq!(client.post(CHAT, "", &chat("x")).status, 200);
    }
    simulator.exhaust_quota();
    assert_eq!(client.post(CHAT, "", &chat("x")).status, 429);
    simulator.renew_quota();
    assert_eq!(client.post(CHAT, "", &chat("x")).status, 200);
}
