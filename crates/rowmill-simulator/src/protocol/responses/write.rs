//! Writes responses as objects.

use serde_json::{Value, json};

use super::super::ParsedRequest;
use crate::reply::{ReplyEnding, SimulatedReply};
use crate::thought::{checked_id, sign_thought};

pub(in crate::protocol) fn plain(ask: &ParsedRequest, reply: &SimulatedReply) -> Value {
    let status = if is_incomplete(reply) { "incomplete" } else { "completed" };
    response(ask, reply, status)
}

pub(super) fn is_incomplete(reply: &SimulatedReply) -> bool {
    matches!(reply.ending, ReplyEnding::Length | ReplyEnding::Filter)
}

/// The items of an answer: reasoning, tools at the provider, the message, and calls.
pub(super) fn items(ask: &ParsedRequest, reply: &SimulatedReply) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(thought) = &reply.thought {
        let mut item = json!({
            "id": format!("rs_{}", checked_id(thought.id)),
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": thought.text}]
        });
        if ask.gives_thoughts {
            item["encrypted_content"] = json!(sign_thought(thought.id, ""));
        }
        items.push(item);
    }
    if let Some(hosted) = &reply.hosted {
        items.push(json!({
            "id": format!("ws_{:016x}", reply.id),
            "type": format!("{hosted}_call"),
            "status": "completed",
            "action": {"type": "search", "query": "what to cite"}
        }));
    }
    if reply.calls.is_empty() || !reply.text.is_empty() {
        items.push(message(reply));
    }
    items.extend(reply.calls.iter().enumerate().map(|(at, call)| {
        json!({
            "id": format!("fc_{:016x}{at:02x}", reply.id),
            "type": "function_call",
            "status": status(reply),
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments
        })
    }));
    items
}

fn status(reply: &SimulatedReply) -> &'static str {
    if is_incomplete(reply) { "incomplete" } else { "completed" }
}

fn message(reply: &SimulatedReply) -> Value {
    json!({
        "id": format!("msg_{:016x}", reply.id),
        "type": "message",
        "status": status(reply),
        "role": "assistant",
        "content": [part(reply, &reply.text, annotations(reply))]
    })
}

/// The only part of a message, with as much of its text as is available.
pub(super) fn part(reply: &SimulatedReply, text: &str, annotations: Vec<Value>) -> Value {
    if reply.ending == ReplyEnding::Refusal {
        json!({"type": "refusal", "refusal": text})
    } else {
        json!({"type": "output_text", "annotations": annotations, "logprobs": [], "text": text})
    }
}

pub(super) fn annotations(reply: &SimulatedReply) -> Vec<Value> {
    let end = reply.text.chars().count();
    let citations = reply.citations.iter();
    let cited = citations.map(|cited| {
        json!({
            "type": "url_citation", "url": cited.url, "title": cited.title.as_deref().unwrap_or_default(),
            "start_index": 0, "end_index": end
        })
    });
    cited.collect()
}

pub(super) fn response(ask: &ParsedRequest, reply: &SimulatedReply, status: &str) -> Value {
    let is_over = status != "in_progress";
    let reason = match reply.ending {
        ReplyEnding::Length => Some("max_output_tokens"),
        ReplyEnding::Filter => Some("content_filter"),
        ReplyEnding::Complete | ReplyEnding::Refusal | ReplyEnding::Calls | ReplyEnding::Paused => None,
    };
    let tokens = reply.tokens;
    let usage = json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output
    });
    json!({
        "id": format!("resp_{:016x}", reply.id),
        "object": "response",
        "created_at": 1_760_000_000,
        "status": status,
        "error": null,
        "incomplete_details": reason.filter(|_| is_over).map(|reason| json!({"reason": reason})),
        "instructions": null,
        "metadata": {},
        "model": ask.model,
        "output": if is_over { items(ask, reply) } else { Vec::new() },
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "service_tier": "default",
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": if is_over { usage } else { Value::Null }
    })
}
