//! Anthropic Messages.

use serde_json::{Value, json};

use super::parts::Reader;
use super::{Ask, Refused, model_of, text_of};
use crate::outgoing::{Outgoing, event};
use crate::reply::{Ending, Reply};

pub(super) fn ask(body: &Value, reader: Reader<'_>) -> Result<Ask, Refused> {
    let mut ask = Ask { model: model_of(body)?, ..Ask::default() };
    ask.max_tokens = body.get("max_tokens").and_then(Value::as_u64);
    if ask.max_tokens.is_none() {
        return Err(Refused::invalid("max_tokens: Field required"));
    }
    let system = body.get("system");
    ask.say_system(&text_of(system));
    let blocks = system.and_then(Value::as_array).into_iter().flatten();
    ask.marks_cache = blocks.into_iter().any(|block| block.get("cache_control").is_some());
    let messages = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let Some(messages) = messages else {
        return Err(Refused::invalid("messages: at least one message is required"));
    };
    for message in messages {
        let text = text_of(message.get("content"));
        match message.get("role").and_then(Value::as_str) {
            Some("user") => reader.user(&mut ask, message.get("content"))?,
            Some("assistant") => ask.say_other(&text),
            _ => return Err(Refused::invalid("messages: unexpected role")),
        }
    }
    let choice = body.pointer("/tool_choice/type").and_then(Value::as_str);
    if matches!(choice, Some("tool" | "any")) {
        let named = body.pointer("/tool_choice/name");
        let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
        let tool = tools.into_iter().find(|tool| named.is_none() || tool.get("name") == named);
        let Some(tool) = tool else {
            return Err(Refused::invalid("tool_choice: no such tool"));
        };
        ask.tool = tool.get("name").and_then(Value::as_str).map(str::to_owned);
        ask.schema = tool.get("input_schema").cloned();
    }
    let formats = ["/output_config/format/schema", "/output_format/schema"];
    if let Some(schema) = formats.into_iter().find_map(|place| body.pointer(place)) {
        ask.schema = Some(schema.clone());
    }
    ask.stream = body.get("stream") == Some(&Value::Bool(true));
    Ok(ask)
}

pub(super) fn error(refused: &Refused) -> Value {
    let kind = match refused.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": "req_simulator"})
}

pub(super) fn render(ask: &Ask, reply: &Reply, headers: &[(String, String)]) -> Outgoing {
    if reply.ending == Ending::Filter {
        // This vendor reports a filtered answer as a refused request.
        let refused = Refused::invalid("Output blocked by content filtering policy");
        return Outgoing::json(400, headers, &error(&refused));
    }
    if ask.stream {
        Outgoing::events(headers, &events(ask, reply))
    } else {
        Outgoing::json(200, headers, &plain(ask, reply))
    }
}

fn plain(ask: &Ask, reply: &Reply) -> Value {
    let content = if reply.text.is_empty() { json!([]) } else { json!([block(ask, reply)]) };
    let mut message = message(ask, reply);
    message["content"] = content;
    message["stop_reason"] = json!(stop_reason(ask, reply));
    message["usage"]["output_tokens"] = json!(reply.tokens.output);
    message
}

fn message(ask: &Ask, reply: &Reply) -> Value {
    let tokens = reply.tokens;
    json!({
        "id": format!("msg_{:016x}", reply.id),
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": tokens.input.saturating_sub(tokens.cached + tokens.cache_write),
            "cache_creation_input_tokens": tokens.cache_write,
            "cache_read_input_tokens": tokens.cached,
            "output_tokens": 1,
            "service_tier": "standard"
        }
    })
}

fn is_tool(ask: &Ask, reply: &Reply) -> bool {
    ask.tool.is_some() && reply.ending != Ending::Refusal
}

fn block(ask: &Ask, reply: &Reply) -> Value {
    if is_tool(ask, reply) {
        let input = serde_json::from_str(&reply.text).unwrap_or_else(|_| json!({}));
        tool_block(ask, reply, &input)
    } else {
        json!({"type": "text", "text": reply.text})
    }
}

fn tool_block(ask: &Ask, reply: &Reply, input: &Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{:016x}", reply.id), "name": ask.tool, "input": input})
}

fn stop_reason(ask: &Ask, reply: &Reply) -> &'static str {
    match reply.ending {
        Ending::Length => "max_tokens",
        Ending::Refusal | Ending::Filter => "refusal",
        Ending::Complete if is_tool(ask, reply) && !reply.text.is_empty() => "tool_use",
        Ending::Complete => "end_turn",
    }
}

fn events(ask: &Ask, reply: &Reply) -> Vec<String> {
    let named = |data: Value| event(data["type"].as_str(), &data);
    let mut events = vec![named(json!({"type": "message_start", "message": message(ask, reply)}))];
    if !reply.text.is_empty() {
        let tool = is_tool(ask, reply);
        let opened =
            if tool { tool_block(ask, reply, &json!({})) } else { json!({"type": "text", "text": ""}) };
        events.push(named(json!({"type": "content_block_start", "index": 0, "content_block": opened})));
        events.push(named(json!({"type": "ping"})));
        for piece in reply.pieces() {
            let delta = if tool {
                json!({"type": "input_json_delta", "partial_json": piece})
            } else {
                json!({"type": "text_delta", "text": piece})
            };
            events.push(named(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        }
        events.push(named(json!({"type": "content_block_stop", "index": 0})));
    }
    events.push(named(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(ask, reply), "stop_sequence": null},
        "usage": {"output_tokens": reply.tokens.output}
    })));
    events.push(named(json!({"type": "message_stop"})));
    events
}
