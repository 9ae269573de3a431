//! OpenAI Responses, over HTTP and WebSocket.

use serde_json::{Map, Value, json};

use super::parts::Reader;
use super::{Ask, Refused, chat, model_of, text_of};
use crate::outgoing::event;
use crate::reply::{Ending, Reply};

pub(super) fn ask(body: &Value, reader: Reader<'_>) -> Result<Ask, Refused> {
    let mut ask = Ask { model: model_of(body)?, ..Ask::default() };
    if let Some(Value::String(instructions)) = body.get("instructions") {
        ask.say_system(instructions);
    }
    match body.get("input") {
        Some(Value::String(text)) => ask.say_user(text.clone()),
        Some(Value::Array(items)) if !items.is_empty() => {
            for item in items {
                let text = text_of(item.get("content"));
                match item.get("role").and_then(Value::as_str) {
                    Some("system" | "developer") => ask.say_system(&text),
                    Some("user") => reader.user(&mut ask, item.get("content"))?,
                    _ => ask.say_other(&text),
                }
            }
        }
        _ => return Err(Refused::invalid("Missing required parameter: 'input'.")),
    }
    let format = body.pointer("/text/format");
    ask.schema = format.and_then(|format| format.get("schema")).cloned();
    ask.wants_json = format.and_then(|format| format.get("type")).is_some_and(|kind| kind == "json_object");
    ask.max_tokens = body.get("max_output_tokens").and_then(Value::as_u64);
    ask.stream = body.get("stream") == Some(&Value::Bool(true));
    Ok(ask)
}

pub(crate) fn plain(ask: &Ask, reply: &Reply) -> Value {
    let status = if is_incomplete(reply) { "incomplete" } else { "completed" };
    response(ask, reply, status)
}

/// The events of a stream as objects, in order; a WebSocket sends each as a message.
pub(crate) fn events(ask: &Ask, reply: &Reply) -> Vec<Value> {
    let item_id = format!("msg_{:016x}", reply.id);
    let refuses = reply.ending == Ending::Refusal;
    let (part_name, field) = if refuses { ("refusal", "refusal") } else { ("output_text", "text") };
    let empty_part = part(reply, Some(""));
    let mut events: Vec<Value> = Vec::new();
    let mut add = |name: String, fields: Value| {
        let mut event = Map::new();
        event.insert("type".into(), json!(name));
        event.insert("sequence_number".into(), json!(events.len()));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        events.push(Value::Object(event));
    };
    add("response.created".into(), json!({"response": response(ask, reply, "in_progress")}));
    add("response.in_progress".into(), json!({"response": response(ask, reply, "in_progress")}));
    let opened = json!({"id": item_id, "type": "message", "status": "in_progress", "role": "assistant", "content": []});
    add("response.output_item.added".into(), json!({"output_index": 0, "item": opened}));
    let place = json!({"item_id": item_id, "output_index": 0, "content_index": 0});
    let at = |more: Value| {
        let mut fields = place.clone();
        if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
            fields.extend(more);
        }
        fields
    };
    add("response.content_part.added".into(), at(json!({"part": empty_part})));
    for piece in reply.pieces() {
        add(format!("response.{part_name}.delta"), at(json!({"delta": piece})));
    }
    add(format!("response.{part_name}.done"), at(json!({field: reply.text})));
    add("response.content_part.done".into(), at(json!({"part": part(reply, None)})));
    add("response.output_item.done".into(), json!({"output_index": 0, "item": item(reply)}));
    let last = if is_incomplete(reply) { "response.incomplete" } else { "response.completed" };
    add(last.into(), json!({"response": plain(ask, reply)}));
    events
}

pub(super) fn sse(ask: &Ask, reply: &Reply) -> Vec<String> {
    events(ask, reply).iter().map(|data| event(data["type"].as_str(), data)).collect()
}

/// The event that reports an error on a WebSocket.
pub(crate) fn error_event(refused: &Refused) -> Value {
    let headers: Map<String, Value> =
        refused.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({"type": "error", "status": refused.status, "error": chat::error(refused)["error"], "headers": headers})
}

fn is_incomplete(reply: &Reply) -> bool {
    matches!(reply.ending, Ending::Length | Ending::Filter)
}

fn part(reply: &Reply, text: Option<&str>) -> Value {
    let text = text.unwrap_or(&reply.text);
    if reply.ending == Ending::Refusal {
        json!({"type": "refusal", "refusal": text})
    } else {
        json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
    }
}

fn item(reply: &Reply) -> Value {
    let status = if is_incomplete(reply) { "incomplete" } else { "completed" };
    json!({
        "id": format!("msg_{:016x}", reply.id),
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [part(reply, None)]
    })
}

fn response(ask: &Ask, reply: &Reply, status: &str) -> Value {
    let is_over = status != "in_progress";
    let reason = match reply.ending {
        Ending::Length => Some("max_output_tokens"),
        Ending::Filter => Some("content_filter"),
        Ending::Complete | Ending::Refusal => None,
    };
    let tokens = reply.tokens;
    let usage = json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output
    });
    json!({
        "id": format!("resp_{:016x}", reply.id),
        "object": "response",
        "created_at": 1_760_000_000,
        "status": status,
        "error": null,
        "incomplete_details": reason.filter(|_| is_over).map(|reason| json!({"reason": reason})),
        "model": ask.model,
        "output": if is_over { json!([item(reply)]) } else { json!([]) },
        "service_tier": "default",
        "usage": if is_over { usage } else { Value::Null }
    })
}
