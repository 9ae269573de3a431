use std::sync::Arc;
use std::time::Duration;

use rowmill_core::ports::Model;
use rowmill_types::{Message, Request};

use super::build;
use crate::fixture::setup;

fn model(name: &str) -> Arc<dyn Model> {
    build(&setup(name, None, None)).unwrap()
}

async fn say(model: &Arc<dyn Model>, texts: &[&str]) -> String {
    let messages = texts.iter().enumerate().map(|(index, text)| match index % 2 {
        0 => Message::user(*text),
        _ => Message::assistant(*text),
    });
    let request = Request { key: "k".to_owned(), attempt: 1, messages: messages.collect() };
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
async fn playback_replays_its_first_conversation_and_then_says_that_it_is_over() {
    let model = model("playback");
    assert_eq!(say(&model, &["q1", "a1", "q2", "a2", "q3"]).await, "HISTORY LOADED (5) messages");
    assert_eq!(say(&model, &["x"]).await, "a1");
    assert_eq!(say(&model, &["y"]).await, "a2");
    assert_eq!(say(&model, &["z"]).await, "MESSAGES EXHAUSTED (list size 5) (1 overage)");
    assert_eq!(say(&model, &["z"]).await, "MESSAGES EXHAUSTED (list size 5) (2 overage)");
}

#[tokio::test(start_paused = true)]
async fn slow_takes_as_long_as_it_is_told() {
    for (name, delay) in [("slow", Duration::from_secs(3)), ("slow?delay=100ms", Duration::from_millis(100))]
    {
        let request = Request { key: "k".to_owned(), attempt: 1, messages: vec![Message::user("12345")] };
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
