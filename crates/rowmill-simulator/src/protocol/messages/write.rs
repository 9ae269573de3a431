//! Writes answers of the Messages API and their errors.

use serde_json::{Value, json};

use super::super::{ParsedRequest, RequestRefusal};
use crate::outgoing_answer::{OutgoingAnswer, sse_event};
use crate::reply::{ReplyEnding, SimulatedReply, stream_pieces};
use crate::thought::sign_thought;

pub(in crate::protocol) fn error(refused: &RequestRefusal) -> Value {
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

pub(in crate::protocol) fn render(
    ask: &ParsedRequest,
    reply: &SimulatedReply,
    headers: &[(String, String)],
) -> OutgoingAnswer {
    if reply.ending == ReplyEnding::Filter {
        // See `VendorProtocol::refuses_filtered`.
        let refused = RequestRefusal::invalid("Output blocked by content filtering policy");
        return OutgoingAnswer::json(400, headers, &error(&refused));
    }
    if ask.stream {
        OutgoingAnswer::events(headers, &events(ask, reply))
    } else {
        OutgoingAnswer::json(200, headers, &plain(ask, reply))
    }
}

fn plain(ask: &ParsedRequest, reply: &SimulatedReply) -> Value {
    let mut message = message(ask, reply);
    message["content"] = blocks(reply).into_iter().map(|block| block.value).collect();
    message["stop_reason"] = json!(stop_reason(reply));
    message["usage"]["output_tokens"] = json!(reply.tokens.output);
    if let Some(uses) = uses(reply) {
        message["usage"]["server_tool_use"] = uses;
    }
    message
}

fn message(ask: &ParsedRequest, reply: &SimulatedReply) -> Value {
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

/// How often tools that run at the provider were used.
fn uses(reply: &SimulatedReply) -> Option<Value> {
    let hosted = reply.hosted.as_deref()?;
    let used = |name| u64::from(hosted == name);
    Some(json!({"web_search_requests": used("web_search"), "web_fetch_requests": used("web_fetch")}))
}

fn stop_reason(reply: &SimulatedReply) -> &'static str {
    match reply.ending {
        ReplyEnding::Length => "max_tokens",
        ReplyEnding::Refusal | ReplyEnding::Filter => "refusal",
        ReplyEnding::Calls => "tool_use",
        ReplyEnding::Paused => "pause_turn",
        ReplyEnding::Complete => "end_turn",
    }
}

/// A block of an answer, and the JSON text of its input that a stream sends.
#[derive(Debug)]
struct AnswerBlock {
    value: Value,
    input: Option<String>,
}

fn blocks(reply: &SimulatedReply) -> Vec<AnswerBlock> {
    let whole = |value| AnswerBlock { value, input: None };
    let mut blocks = Vec::new();
    if let Some(thought) = &reply.thought {
        let signature = sign_thought(thought.id, &thought.text);
        blocks.push(whole(json!({"type": "thinking", "thinking": thought.text, "signature": signature})));
    }
    blocks.extend(hosted(reply));
    if !reply.text.is_empty() {
        let mut text_block = json!({"type": "text", "text": reply.text});
        if !reply.citations.is_empty() {
            text_block["citations"] = citations(reply);
        }
        blocks.push(whole(text_block));
    }
    for call in &reply.calls {
        // Truncated arguments are not JSON; streamed, they are sent as they are.
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        let value = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input});
        blocks.push(AnswerBlock { value, input: Some(call.arguments.clone()) });
    }
    blocks
}

/// The blocks of a tool at the provider: the call, and unless the turn is paused its result.
fn hosted(reply: &SimulatedReply) -> Vec<AnswerBlock> {
    let Some(name) = reply.hosted.as_deref() else { return Vec::new() };
    let id = format!("srvtoolu_{:016x}", reply.id);
    let first = reply.citations.first().map(|cited| cited.url.as_str()).unwrap_or_default();
    let input = if name == "web_fetch" { json!({"url": first}) } else { json!({"query": "what to cite"}) };
    let used = json!({"type": "server_tool_use", "id": id, "name": name, "input": input});
    let mut blocks = vec![AnswerBlock { value: used, input: Some(input.to_string()) }];
    if reply.ending == ReplyEnding::Paused {
        return blocks;
    }
    let content: Value = match name {
        "web_fetch" => json!({
            "type": "web_fetch_result", "url": first, "retrieved_at": "2026-01-01T00:00:00Z",
            "content": {
                "type": "document", "title": reply.citations.first().and_then(|cited| cited.title.as_deref()),
                "source": {"type": "text", "media_type": "text/plain", "data": "What was fetched."},
                "citations": {"enabled": true}
            }
        }),
        _ => reply
            .citations
            .iter()
            .map(|cited| {
                json!({
                    "type": "web_search_result", "url": cited.url, "title": cited.title.as_deref().unwrap_or(&cited.url),
                    "encrypted_content": sign_thought(reply.id, &cited.url), "page_age": null
                })
            })
            .collect(),
    };
    let found = json!({"type": format!("{name}_tool_result"), "tool_use_id": id, "content": content});
    blocks.push(AnswerBlock { value: found, input: None });
    blocks
}

fn citations(reply: &SimulatedReply) -> Value {
    let fetched = reply.hosted.as_deref() == Some("web_fetch");
    let cited = reply.citations.iter().map(|cited| {
        let passage = cited.text.as_deref().unwrap_or_default();
        if fetched {
            json!({
                "type": "char_location", "cited_text": passage, "document_index": 0, "document_title": cited.title,
                "start_char_index": 0, "end_char_index": passage.chars().count(), "file_id": null
            })
        } else {
            json!({
                "type": "web_search_result_location", "url": cited.url, "title": cited.title,
                "encrypted_index": sign_thought(reply.id, &cited.url), "cited_text": passage
            })
        }
    });
    cited.collect()
}

fn events(ask: &ParsedRequest, reply: &SimulatedReply) -> Vec<String> {
    let named = |data: Value| sse_event(data["type"].as_str(), &data);
    let mut events = vec![named(json!({"type": "message_start", "message": message(ask, reply)}))];
    for (index, block) in blocks(reply).into_iter().enumerate() {
        let (opened, deltas) = in_pieces(block);
        events.push(named(json!({"type": "content_block_start", "index": index, "content_block": opened})));
        if index == 0 {
            events.push(named(json!({"type": "ping"})));
        }
        for delta in deltas {
            events.push(named(json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push(named(json!({"type": "content_block_stop", "index": index})));
    }
    let mut usage = json!({"output_tokens": reply.tokens.output});
    if let Some(uses) = uses(reply) {
        usage["server_tool_use"] = uses;
    }
    events.push(named(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": usage
    })));
    events.push(named(json!({"type": "message_stop"})));
    events
}

/// A block as a stream opens it, and the deltas that the stream adds.
fn in_pieces(mut block: AnswerBlock) -> (Value, Vec<Value>) {
    let mut deltas = Vec::new();
    if let Some(input) = block.input {
        let parts = stream_pieces(&input).into_iter();
        deltas.extend(parts.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})));
        block.value["input"] = json!({});
        return (block.value, deltas);
    }
    for field in ["thinking", "text"] {
        if let Some(Value::String(blocks)) = block.value.get_mut(field).map(Value::take) {
            let parts = stream_pieces(&blocks).into_iter();
            deltas.extend(parts.map(|piece| json!({"type": format!("{field}_delta"), field: piece})));
            block.value[field] = json!("");
        }
    }
    if let Some(signature) = block.value.get_mut("signature").map(Value::take) {
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        block.value["signature"] = json!("");
    }
    if block.value["type"] == "text"
        && let Some(Value::Array(cited)) = block.value.get_mut("citations").map(Value::take)
    {
        deltas.extend(
            cited.into_iter().map(|citation| json!({"type": "citations_delta", "citation": citation})),
        );
        block.value["citations"] = json!([]);
    }
    (block.value, deltas)
}
