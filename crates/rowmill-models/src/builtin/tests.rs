use std::sync::Arc;
use std::time::Duration;

use rowmill_core::ports::Model;
use rowmill_types::{Message, Request};

use super::build_builtin_model;
use crate::test_support::{conversation, file, setup, tool_call, with_files, with_tools};

fn model(name: &str) -> Arc<dyn Model> {
    build_builtin_model(&setup(name, None, None)).unwrap()
}

async fn say(model: &Arc<dyn Model>, texts: &[&str]) -> String {
    let messages = texts.iter().enumerate().map(|(index, text)| match index % 2 {
        0 => Message::user(*text),
        _ => Message::assistant(*text),
    });
    let request = Request {
        key: "k".to_owned(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: messages.collect(),
    };
    model.complete(&request).await.unwrap().text
}

#[tokio::test]
async fn passthrough_echoes_the_last_text_until_a_response_is_fixed() {
    let model = model("passthrough");
    assert_eq!(say(&model, &["a"]).await, "a");
    assert_eq!(say(&model, &["a", "b", "c"]).await, "c");
    assert_eq!(say(&model, &["***FIXED_RESPONSE  always this"]).await, "always this");
    assert_eq!(say(&model, &["x"]).await, "always this");
}

#[tokio::test]
async fn passthrough_calls_the_tools_that_the_prompt_names_and_answers_with_what_they_gave() {
    let model = build_builtin_model(&with_tools("passthrough", None)).unwrap();
    let ask = async |messages: Vec<Message>| {
        model
            .complete(&Request {
                key: "k".to_owned(),
                row: 1,
                attempt: 1,
                output_cap: None,
                purpose: Default::default(),
                messages,
            })
            .await
            .unwrap()
    };
    for (prompt, expected) in [
        ("***CALL_TOOL weather {\"city\": \"A\"}", vec![tool_call("call_1", "weather", "{\"city\": \"A\"}")]),
        ("***CALL_TOOL nobody", vec![tool_call("call_1", "nobody", "{}")]),
        (
            "***CALL_TOOL now\n***CALL_TOOL weather {\n\"city\": 1}",
            vec![tool_call("call_1", "now", "{}"), tool_call("call_2", "weather", "{\n\"city\": 1}")],
        ),
        ("no ***CALL_TOOL now", vec![]),
    ] {
        let answer = ask(vec![Message::user(prompt)]).await;
        assert_eq!(answer.calls, expected, "{prompt}");
        assert_eq!(answer.text, if expected.is_empty() { prompt } else { "" });
    }
    assert_eq!(ask(conversation()).await.text, "12 \"C\"\nbroken");
    let mut over = conversation();
    over.push(Message::user("and now?"));
    assert_eq!(ask(over).await.text, "and now?");
}

#[tokio::test]
async fn without_tools_a_prompt_that_names_one_is_a_prompt_like_any_other() {
    for name in ["passthrough", "slow?delay=0"] {
        assert_eq!(say(&model(name), &["***CALL_TOOL now {}"]).await, "***CALL_TOOL now {}");
    }
    let slow = build_builtin_model(&with_tools("slow?delay=0", None)).unwrap();
    let request = Request {
        key: "k".to_owned(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: conversation(),
    };
    assert_eq!(slow.complete(&request).await.unwrap().text, "q", "only passthrough knows tools");
}

#[tokio::test]
async fn playback_replays_its_first_conversation_and_then_says_that_it_is_over() {
    let model = model("playback");
    assert_eq!(say(&model, &["q1", "a1", "q2", "a2", "q3"]).await, "HISTORY LOADED (5) messages");
    assert_eq!(say(&model, &["x"]).await, "a1");
    assert_eq!(say(&model, &["y"]).await, "a2");
    assert_eq!(say(&model, &["z"]).await, "MESSAGES EXHAUSTED (list size 5) (1 overage)");
    assert_eq!(say(&model, &["z"]).await, "MESSAGES EXHAUSTED (list size 5) (2 overage)");
}

#[tokio::test(start_paused = true)]
async fn slow_takes_as_long_as_it_is_asked_to() {
    for (name, delay) in [("slow", Duration::from_secs(3)), ("slow?delay=100ms", Duration::from_millis(100))]
    {
        let request = Request {
            key: "k".to_owned(),
            row: 1,
            attempt: 1,
            output_cap: None,
            purpose: Default::default(),
            messages: vec![Message::user("12345")],
        };
        let completion = model(name).complete(&request).await.unwrap();
        assert_eq!(completion.text, "12345");
        assert_eq!(completion.timing.response, delay);
        assert_eq!(completion.usage.unwrap().input, 2);
    }
}

#[tokio::test]
async fn silent_says_nothing() {
    assert_eq!(say(&model("silent"), &["a"]).await, "");
}

fn simulated(query: &str, schema: Option<serde_json::Value>) -> Arc<dyn Model> {
    build_builtin_model(&setup(&format!("simulated{query}"), None, schema)).unwrap()
}

fn request(key: &str, text: &str) -> Request {
    Request {
        key: key.to_owned(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: vec![Message::user(text)],
    }
}

#[tokio::test]
async fn simulated_answers_depend_on_the_prompt_and_the_seed_alone() {
    let schema =
        serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for schema in [None, Some(schema)] {
        let text = async |query: &str, key: &str, prompt: &str| {
            simulated(query, schema.clone()).complete(&request(key, prompt)).await.unwrap().text
        };
        let first = text("?seed=1", "a", "What is it?").await;
        assert_eq!(first, text("?seed=1", "b", "What is it?").await);
        assert_ne!(first, text("?seed=1", "a", "What else?").await);
        assert_ne!(first, text("?seed=2", "a", "What is it?").await);
        if schema.is_some() {
            let value: serde_json::Value = serde_json::from_str(&first).unwrap();
            assert!(value["n"].is_i64() || value["n"].is_u64(), "{first}");
        }
    }
}

#[tokio::test]
async fn simulated_failures_come_at_their_rate_and_another_key_can_succeed() {
    let model = simulated("?failure_rate=0.25&seed=1", None);
    let mut failed = Vec::new();
    for number in 0..400 {
        let key = number.to_string();
        if let Err(error) = model.complete(&request(&key, "same")).await {
            assert_eq!((error.failure, error.status), (rowmill_types::CallFailure::Server, Some(503)));
            failed.push(key);
        }
    }
    assert!((60..140).contains(&failed.len()), "{} of 400 failed", failed.len());
    assert!(model.complete(&request(&failed[0], "same")).await.is_err(), "the same key fails again");
    assert!(simulated("", None).complete(&request(&failed[0], "same")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn simulated_latency_strays_no_further_than_its_jitter() {
    let model = simulated("?latency=100ms&jitter=0.5", None);
    let mut spans = Vec::new();
    for number in 0..20 {
        let span = model.complete(&request(&number.to_string(), "x")).await.unwrap().timing.response;
        assert!((50..=151).contains(&span.as_millis()), "{span:?}");
        spans.push(span);
    }
    spans.dedup();
    assert!(spans.len() > 1);
}

#[tokio::test]
async fn passthrough_tells_which_files_it_got() {
    let files = vec![file("a b.png", "image/png", b"x"), file("c.txt", "text/plain", b"hello")];
    let request = |text: &str| {
        let messages = vec![with_files(text, files.clone())];
        Request {
            key: "k".to_owned(),
            row: 1,
            attempt: 1,
            output_cap: None,
            purpose: Default::default(),
            messages,
        }
    };
    let lines = "[file a b.png image/png 1 bytes sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881]\n\
                 [file c.txt text/plain 5 bytes sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824]";
    let model = model("passthrough");
    assert_eq!(model.complete(&request("hi")).await.unwrap().text, format!("hi\n{lines}"));
    assert_eq!(model.complete(&request("")).await.unwrap().text, lines);
    let simulated = simulated("", None);
    let with = simulated.complete(&request("hi")).await.unwrap().text;
    assert!(!with.contains("sha256"));
}
