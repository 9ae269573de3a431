//! Writes chat completions and their errors.

use serde_json::{Value, json};

use super::super::{ParsedRequest, RequestRefusal};
use crate::outgoing_answer::sse_event;
use crate::reply::{MadeToolCall, ReplyEnding, SimulatedReply, stream_pieces};

const CREATED: u64 = 1_760_000_000;

pub(in crate::protocol) fn error(refused: &RequestRefusal) -> Value {
    let (kind, code) = match refused.status {
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {
        "message": refused.message, "type": refused.kind.unwrap_or(kind), "param": null, "code": refused.code.or(code)
    }})
}

pub(in crate::protocol) fn plain(ask: &ParsedRequest, reply: &SimulatedReply) -> Value {
    let annotations = annotations(reply);
    let mut message =
        json!({"role": "assistant", "content": reply.text, "refusal": null, "annotations": annotations});
    if reply.ending == ReplyEnding::Refusal {
        message["content"] = Value::Null;
        message["refusal"] = json!(reply.text);
    }
    if let Some(thought) = &reply.thought {
        message["reasoning_content"] = json!(thought.text);
    }
    if !reply.calls.is_empty() {
        if reply.text.is_empty() {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = reply.calls.iter().map(|made| call(made, &made.arguments)).collect();
    }
    json!({
        "id": format!("chatcmpl-{:016x}", reply.id),
        "object": "chat.completion",
        "created": CREATED,
        "model": ask.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply)}],
        "usage": usage(reply),
        "service_tier": "default",
        "system_fingerprint": "fp_simulator"
    })
}

pub(in crate::protocol) fn events(ask: &ParsedRequest, reply: &SimulatedReply) -> Vec<String> {
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{:016x}", reply.id),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": ask.model,
            "choices": choices,
            "service_tier": "default",
            "system_fingerprint": "fp_simulator"
        });
        if ask.usage_in_stream {
            chunk["usage"] = usage.unwrap_or_default();
        }
        sse_event(None, &chunk)
    };
    let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    let mut events = vec![chunk(choice(json!({"role": "assistant", "content": ""}), Value::Null), None)];
    for delta in deltas(reply) {
        events.push(chunk(choice(delta, Value::Null), None));
    }
    events.push(chunk(choice(json!({}), json!(finish(reply))), None));
    if ask.usage_in_stream {
        events.push(chunk(json!([]), Some(usage(reply))));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// The answer in deltas: thoughts, text, then each call, first its name and then its arguments.
fn deltas(reply: &SimulatedReply) -> Vec<Value> {
    let thought = reply.thought.as_ref().map_or("", |thought| thought.text.as_str());
    let field = if reply.ending == ReplyEnding::Refusal { "refusal" } else { "content" };
    let mut deltas: Vec<Value> =
        stream_pieces(thought).into_iter().map(|piece| json!({"reasoning_content": piece})).collect();
    deltas.extend(stream_pieces(&reply.text).into_iter().map(|piece| json!({field: piece})));
    if !reply.citations.is_empty() {
        deltas.push(json!({"annotations": annotations(reply)}));
    }
    for (at, made) in reply.calls.iter().enumerate() {
        let mut opened = call(made, "");
        opened["index"] = json!(at);
        deltas.push(json!({"tool_calls": [opened]}));
        for piece in stream_pieces(&made.arguments) {
            deltas.push(json!({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}));
        }
    }
    deltas
}

fn call(made: &MadeToolCall, arguments: &str) -> Value {
    json!({"id": made.id, "type": "function", "function": {"name": made.name, "arguments": arguments}})
}

fn annotations(reply: &SimulatedReply) -> Value {
    let end = reply.text.chars().count();
    let citations = reply.citations.iter();
    let cited = citations.map(|cited| {
        json!({"type": "url_citation", "url_citation": {
            "url": cited.url, "title": cited.title.as_deref().unwrap_or_default(), "start_index": 0, "end_index": end
        }})
    });
    cited.collect()
}

fn finish(reply: &SimulatedReply) -> &'static str {
    match reply.ending {
        ReplyEnding::Length => "length",
        ReplyEnding::Filter => "content_filter",
        ReplyEnding::Calls => "tool_calls",
        ReplyEnding::Complete | ReplyEnding::Refusal | ReplyEnding::Paused => "stop",
    }
}

fn usage(reply: &SimulatedReply) -> Value {
    let tokens = reply.tokens;
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
        }
    })
}
