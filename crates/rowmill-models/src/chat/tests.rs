use rowmill_types::{CallFailure, FinishReason};
use serde_json::{Value, json};

use super::wire::ChatWire;
use crate::http_model::AnswerDelivery;
use crate::test_support::{assemble, error, plain_body, repair_body, setup, text_and_finish, tokens};
use crate::wire_protocol::{StreamStep, WireProtocol};

fn wire(model: &str, instruction: Option<&str>, schema: Option<Value>) -> ChatWire {
    ChatWire::new(&setup(model, instruction, schema), AnswerDelivery::Whole)
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

#[test]
fn bodies_hold_the_messages_and_what_was_set_and_nothing_else() {
    for (model, instruction, expected) in [
        ("generic.m", None, r#"{"model":"m","messages":[{"role":"user","content":"Hi \"there\"\n"}]}"#),
        (
            "generic.m",
            Some("Be ü"),
            r#"{"model":"m","messages":[{"role":"system","content":"Be ü"},{"role":"user","content":"Hi \"there\"\n"}]}"#,
        ),
        (
            "vllm.m?temp=0&top_p=0.5&top_k=4&min_p=0.1&presence_penalty=1&frequency_penalty=-1&repetition_penalty=1.5&maxTokens=9&seed=7&stop=END&reasoning=low",
            None,
            r#"{"model":"m","messages":[{"role":"user","content":"Hi \"there\"\n"}],"temperature":0.0,"top_p":0.5,"top_k":4,"min_p":0.1,"presence_penalty":1.0,"frequency_penalty":-1.0,"repetition_penalty":1.5,"max_tokens":9,"seed":7,"stop":["END"],"reasoning_effort":"low"}"#,
        ),
        (
            "openai.m?max_tokens=9&verbosity=low&service_tier=fast&reasoning=off",
            None,
            r#"{"model":"m","messages":[{"role":"user","content":"Hi \"there\"\n"}],"max_completion_tokens":9,"verbosity":"low","service_tier":"priority","reasoning_effort":"none"}"#,
        ),
    ] {
        assert_eq!(plain_body(&wire(model, instruction, None)), expected, "{model}");
    }
}

#[test]
fn a_repair_sends_the_whole_conversation() {
    assert_eq!(
        repair_body(&wire("generic.m", Some("I"), None)),
        r#"{"model":"m","messages":[{"role":"system","content":"I"},{"role":"user","content":"q"},{"role":"assistant","content":"{}"},{"role":"user","content":"fix it"}]}"#
    );
}

#[test]
fn providers_are_asked_in_their_own_words() {
    for (model, field, expected) in [
        ("mistral.m?seed=3", "random_seed", json!(3)),
        ("llamacpp.m?repetition_penalty=2", "repeat_penalty", json!(2.0)),
        ("groq.m?max_tokens=5", "max_completion_tokens", json!(5)),
        ("openrouter.m?reasoning=high", "reasoning", json!({"effort": "high"})),
        ("openrouter.m?reasoning=2000", "reasoning", json!({"max_tokens": 2000})),
        ("openrouter.m?reasoning=0", "reasoning", json!({"enabled": false})),
        ("openrouter.m?reasoning=on", "reasoning", json!({"enabled": true})),
        ("deepseek.m?reasoning=on", "thinking", json!({"type": "enabled"})),
        ("zai.m?reasoning=none", "thinking", json!({"type": "disabled"})),
        ("aliyun.m?reasoning=off", "enable_thinking", json!(false)),
        ("aliyun.m?reasoning=512", "thinking_budget", json!(512)),
        ("openai.m?reasoning=auto", "reasoning_effort", Value::Null),
        ("hf.m?reasoning=high", "reasoning_effort", json!("high")),
        ("hf.m?reasoning=off", "reasoning_effort", json!("none")),
        ("hf.m?reasoning=on", "reasoning_effort", Value::Null),
        ("kimi25instant", "thinking", json!({"type": "disabled"})),
        ("kimi26instant", "chat_template_kwargs", json!({"thinking": false})),
        ("kimi26", "chat_template_kwargs", Value::Null),
        ("kimi", "disable_reasoning", json!(false)),
        ("qwen36", "chat_template_kwargs", json!({"enable_thinking": true})),
        ("qwen36instruct", "chat_template_kwargs", json!({"enable_thinking": false})),
    ] {
        let body: Value = serde_json::from_str(&plain_body(&wire(model, None, None))).unwrap();
        assert_eq!(body[field], expected, "{model}");
    }
}

#[test]
fn a_schema_is_sent_as_the_provider_takes_it() {
    let messages = r#""messages":[{"role":"user","content":"Hi \"there\"\n"}]"#;
    let closed = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}"#;
    let optional = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let optional_text = r#"{"type":"object","properties":{"name":{"type":"string"}}}"#;
    assert_eq!(
        plain_body(&wire("openai.m", None, Some(person()))),
        format!(
            r#"{{"model":"m",{messages},"response_format":{{"type":"json_schema","json_schema":{{"name":"structured_output","strict":true,"schema":{closed}}}}}}}"#
        )
    );
    assert_eq!(
        plain_body(&wire("openai.m", None, Some(optional))),
        format!(
            r#"{{"model":"m",{messages},"response_format":{{"type":"json_schema","json_schema":{{"name":"structured_output","strict":false,"schema":{optional_text}}}}}}}"#
        )
    );
    assert_eq!(
        plain_body(&wire("openai.m?structured=tool_use", None, Some(person()))),
        format!(
            r#"{{"model":"m",{messages},"tools":[{{"type":"function","function":{{"name":"structured_output","description":"Gives the answer.","parameters":{closed}}}}}],"tool_choice":{{"type":"function","function":{{"name":"structured_output"}}}}}}"#
        )
    );
    let message: Value =
        serde_json::from_str(&plain_body(&wire("deepseek.m", Some("Be kind."), Some(person())))).unwrap();
    assert_eq!(message["response_format"], json!({"type": "json_object"}));
    assert_eq!(
        message["messages"][0]["content"],
        format!(
            "Be kind.\n\nAnswer with one JSON object that satisfies this JSON Schema, and with nothing else:\n{closed}"
        )
    );
}

#[test]
fn a_stream_is_asked_for_with_its_usage() {
    let wire = ChatWire::new(&setup("generic.m?stream=true", None, None), AnswerDelivery::Stream);
    assert!(plain_body(&wire).ends_with(r#"],"stream":true,"stream_options":{"include_usage":true}}"#));
}

#[test]
fn answers_are_read_in_every_shape() {
    let wire = wire("generic.m", None, None);
    for (body, expected) in [
        (
            r#"{"choices":[{"message":{"content":"a\u00e9"},"finish_reason":"stop"}]}"#,
            ("aé", FinishReason::Complete),
        ),
        (
            r#"{"choices":[{"message":{"content":"x"},"finish_reason":"length"}]}"#,
            ("x", FinishReason::Length),
        ),
        (
            r#"{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}"#,
            ("", FinishReason::Filtered),
        ),
        (
            r#"{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}"#,
            ("no", FinishReason::Refused),
        ),
        (
            r#"{"choices":[{"message":{"content":"x","refusal":null,"tool_calls":null}}],"usage":null}"#,
            ("x", FinishReason::Complete),
        ),
        (
            r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}"#,
            ("b", FinishReason::Complete),
        ),
        (
            r#"{"choices":[{"message":{"content":"","tool_calls":[{"function":{"name":"s","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}"#,
            // A call of a tool that was not offered is not an answer.
            ("", FinishReason::Complete),
        ),
        (
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"arguments":{"a": 1}}}]}}],"error":null}"#,
            ("", FinishReason::Complete),
        ),
    ] {
        assert_eq!(text_and_finish(&wire.read(body.as_bytes()).unwrap()), expected, "{body}");
    }
}

#[test]
fn usage_model_and_tier_are_kept() {
    let body = r#"{"model":"gpt-x","service_tier":"flex","choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}, "odd": 1.5}}"#;
    let reading = wire("generic.m", None, None).read(body.as_bytes()).unwrap();
    assert_eq!(reading.usage, tokens([10, 4, 0, 5, 2]));
    assert!(reading.raw_usage.unwrap().get().ends_with(r#""odd": 1.5}"#));
    assert_eq!((reading.model.as_deref(), reading.service_tier.as_deref()), (Some("gpt-x"), Some("flex")));
    let deepseek = r#"{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":3}}"#;
    let reading = wire("deepseek.m", None, None).read(deepseek.as_bytes()).unwrap();
    assert_eq!(reading.usage, tokens([10, 3, 0, 5, 0]));
}

#[test]
fn a_value_that_is_no_object_comes_back_without_its_wrapping() {
    let wire = wire("openai.m", None, Some(json!({"type": "array", "items": {"type": "integer"}})));
    assert!(plain_body(&wire).contains(
        r#""strict":true,"schema":{"type":"object","properties":{"value":{"type":"array","items":{"type":"integer"}}},"required":["value"],"additionalProperties":false}"#
    ));
    let body = r#"{"choices":[{"message":{"content":"{\"value\": [1, 2]}"},"finish_reason":"stop"}]}"#;
    assert_eq!(text_and_finish(&wire.read(body.as_bytes()).unwrap()), ("[1, 2]", FinishReason::Complete));
    let odd = r#"{"choices":[{"message":{"content":"[1]"},"finish_reason":"stop"}]}"#;
    assert_eq!(text_and_finish(&wire.read(odd.as_bytes()).unwrap()), ("[1]", FinishReason::Complete));
}

#[test]
fn what_is_no_answer_is_an_error() {
    let wire = wire("generic.m", None, None);
    for (body, failure, message) in [
        ("<html>", CallFailure::Malformed, "the answer does not follow the protocol"),
        (r#"{"choices":[{"message":{"content":"a"#, CallFailure::Malformed, "the answer is truncated"),
        (r#"{"choices":[]}"#, CallFailure::Malformed, "the answer has no choices"),
        (r#"{}"#, CallFailure::Malformed, "the answer has no choices"),
        (r#"{"error":{"message":"slow down","code":429}}"#, CallFailure::RateLimited, "slow down"),
        (r#"{"error":{"message":"boom","type":"server_error"}}"#, CallFailure::Server, "boom"),
        (r#"{"error":"strange"}"#, CallFailure::Malformed, "strange"),
        (
            r#"{"choices":[{"message":{"content":"half"},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#,
            CallFailure::Server,
            "upstream",
        ),
        (
            r#"{"choices":[{"message":{"content":"half"},"finish_reason":"insufficient_system_resource"}]}"#,
            CallFailure::Server,
            "the provider ended the answer with `insufficient_system_resource`",
        ),
    ] {
        let error = error(wire.read(body.as_bytes()).unwrap_err());
        assert_eq!(error.failure, failure, "{body}");
        assert!(error.message.starts_with(message), "{body}: {}", error.message);
    }
}

#[test]
fn a_stream_is_put_together() {
    let wire = wire("generic.m", None, None);
    let (steps, reading) = assemble(
        &wire,
        &[
            r#"{"model":"m-1","choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"model":"m-1","choices":[{"delta":{"content":"He"}}],"usage":null}"#,
            r#"{"choices":[{"delta":{"content":"llo"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
            "[DONE]",
        ],
    )
    .unwrap();
    assert_eq!(
        steps,
        [
            StreamStep::NoContent,
            StreamStep::Content,
            StreamStep::Content,
            StreamStep::NoContent,
            StreamStep::Done
        ]
    );
    let reading = reading.unwrap();
    assert_eq!(text_and_finish(&reading), ("Hello", FinishReason::Complete));
    assert_eq!((reading.usage, reading.model.as_deref()), (tokens([3, 0, 0, 2, 0]), Some("m-1")));
}

#[test]
fn streamed_tool_arguments_and_refusals_are_put_together() {
    let wire = wire("generic.m?structured=tool_use", None, Some(person()));
    let events = [
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"s","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"name\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"A\"}"}}]},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ];
    let (_, reading) = assemble(&wire, &events).unwrap();
    assert_eq!(text_and_finish(&reading.unwrap()), (r#"{"name":"A"}"#, FinishReason::Complete));
    let (_, reading) = assemble(&wire, &[r#"{"choices":[{"delta":{"refusal":"no"}}]}"#, "[DONE]"]).unwrap();
    assert_eq!(text_and_finish(&reading.unwrap()), ("no", FinishReason::Refused));
}

#[test]
fn a_stream_without_its_end_gives_no_answer_and_an_error_in_it_counts() {
    let wire = wire("generic.m", None, None);
    let (_, reading) =
        assemble(&wire, &[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#]).unwrap();
    assert!(reading.is_none());
    let failed =
        assemble(&wire, &[r#"{"error":{"message":"overloaded","type":"overloaded_error"}}"#]).unwrap_err();
    assert_eq!(error(failed).failure, CallFailure::Server);
}
