//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::parts::Reader;
use super::{Ask, Refused, model_of, text_of};
use crate::outgoing::event;
use crate::reply::{Ending, Reply};

const CREATED: u64 = 1_760_000_000;

pub(super) fn ask(body: &Value, reader: Reader<'_>) -> Result<Ask, Refused> {
    let mut ask = Ask { model: model_of(body)?, ..Ask::default() };
    let messages = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let Some(messages) = messages else {
        return Err(Refused::invalid("'messages' must be a non-empty array."));
    };
    for message in messages {
        let text = text_of(message.get("content"));
        match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => ask.say_system(&text),
            Some("user") => reader.user(&mut ask, message.get("content"))?,
            Some("assistant" | "tool") => ask.say_other(&text),
            _ => return Err(Refused::invalid("a message has no valid role")),
        }
    }
    let format = body.get("response_format");
    ask.schema = format.and_then(|format| format.pointer("/json_schema/schema")).cloned();
    ask.wants_json = format.and_then(|format| format.get("type")).is_some_and(|kind| kind == "json_object");
    let forced = body.get("tool_choice").is_some_and(|choice| choice == "required" || choice.is_object());
    if forced {
        let function = body.pointer("/tools/0/function");
        ask.tool = function.and_then(|function| function.get("name")?.as_str()).map(str::to_owned);
        ask.schema = function.and_then(|function| function.get("parameters")).cloned().or(ask.schema);
    }
    ask.max_tokens =
        ["max_completion_tokens", "max_tokens"].into_iter().find_map(|name| body.get(name)?.as_u64());
    ask.stream = body.get("stream") == Some(&Value::Bool(true));
    ask.usage_in_stream = body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
    Ok(ask)
}

pub(super) fn error(refused: &Refused) -> Value {
    let (kind, code) = match refused.status {
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {
        "message": refused.message, "type": refused.kind.unwrap_or(kind), "param": null, "code": refused.code.or(code)
    }})
}

pub(super) fn plain(ask: &Ask, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null, "annotations": []});
    if reply.ending == Ending::Refusal {
        message["content"] = Value::Null;
        message["refusal"] = json!(reply.text);
    } else if let Some(tool) = called_tool(ask, reply) {
        message["content"] = Value::Null;
        message["tool_calls"] = json!([tool]);
    }
    json!({
        "id": format!("chatcmpl-{:016x}", reply.id),
        "object": "chat.completion",
        "created": CREATED,
        "model": ask.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(ask, reply)}],
        "usage": usage(reply),
        "service_tier": "default",
        "system_fingerprint": "fp_simulator"
    })
}

pub(super) fn events(ask: &Ask, reply: &Reply) -> Vec<String> {
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
        event(None, &chunk)
    };
    let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    let mut events = vec![chunk(choice(json!({"role": "assistant", "content": ""}), Value::Null), None)];
    if let Some(mut tool) = called_tool(ask, reply) {
        tool["index"] = json!(0);
        events.push(chunk(choice(json!({"tool_calls": [tool]}), Value::Null), None));
    } else {
        let field = if reply.ending == Ending::Refusal { "refusal" } else { "content" };
        for piece in reply.pieces() {
            events.push(chunk(choice(json!({field: piece}), Value::Null), None));
        }
    }
    events.push(chunk(choice(json!({}), json!(finish(ask, reply))), None));
    if ask.usage_in_stream {
        events.push(chunk(json!([]), Some(usage(reply))));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn called_tool(ask: &Ask, reply: &Reply) -> Option<Value> {
    let tool = ask.tool.as_ref().filter(|_| reply.ending == Ending::Complete && !reply.text.is_empty())?;
    Some(json!({
        "id": format!("call_{:016x}", reply.id),
        "type": "function",
        "function": {"name": tool, "arguments": reply.text}
    }))
}

fn finish(ask: &Ask, reply: &Reply) -> &'static str {
    match reply.ending {
        Ending::Length => "length",
        Ending::Filter => "content_filter",
        Ending::Complete if called_tool(ask, reply).is_some() => "tool_calls",
        Ending::Complete | Ending::Refusal => "stop",
    }
}

fn usage(reply: &Reply) -> Value {
    let tokens = reply.tokens;
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
        }
    })
}
