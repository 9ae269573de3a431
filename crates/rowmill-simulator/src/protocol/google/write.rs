//! Writes answers of `generateContent` and their errors.

use serde_json::{Value, json};

use super::super::{ParsedRequest, RequestRefusal};
use crate::outgoing_answer::{OutgoingAnswer, sse_event};
use crate::reply::{ReplyEnding, SimulatedReply, stream_pieces};
use crate::thought::sign_thought;

pub(in crate::protocol) fn error(refused: &RequestRefusal) -> Value {
    let status = match refused.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let mut error = json!({"code": refused.status, "message": refused.message, "status": status});
    if !refused.details.is_empty() {
        error["details"] = json!(refused.details);
    }
    json!({"error": error})
}

pub(in crate::protocol) fn render(
    ask: &ParsedRequest,
    reply: &SimulatedReply,
    headers: &[(String, String)],
) -> OutgoingAnswer {
    if !ask.stream {
        let parts = parts(ask, reply, |text| vec![text.to_owned()]);
        return OutgoingAnswer::json(200, headers, &response(ask, reply, parts, true));
    }
    let responses = streamed(ask, reply);
    if ask.stream_is_array {
        return OutgoingAnswer::json(200, headers, &Value::Array(responses));
    }
    let events: Vec<String> = responses.iter().map(|response| sse_event(None, response)).collect();
    OutgoingAnswer::events(headers, &events)
}

fn streamed(ask: &ParsedRequest, reply: &SimulatedReply) -> Vec<Value> {
    let parts = parts(ask, reply, stream_pieces);
    if parts.is_empty() {
        return vec![response(ask, reply, parts, true)];
    }
    let last = parts.len() - 1;
    let each = parts.into_iter().enumerate();
    each.map(|(at, part)| response(ask, reply, vec![part], at == last)).collect()
}

/// The parts of an answer, with texts split by `cut`: thoughts if they are shown, the text, and calls.
fn parts(ask: &ParsedRequest, reply: &SimulatedReply, cut: impl Fn(&str) -> Vec<String>) -> Vec<Value> {
    let mut parts = Vec::new();
    if let Some(thought) = reply.thought.as_ref().filter(|_| ask.gives_thoughts) {
        parts.extend(cut(&thought.text).into_iter().map(|text| json!({"text": text, "thought": true})));
    }
    if !reply.text.is_empty() {
        parts.extend(cut(&reply.text).into_iter().map(|text| json!({"text": text})));
    }
    let mut signature = reply.thought.as_ref().map(|thought| sign_thought(thought.id, ""));
    for call in &reply.calls {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": arguments}});
        if let Some(signature) = signature.take() {
            part["thoughtSignature"] = json!(signature);
        }
        parts.push(part);
    }
    if let (Some(signature), Some(last)) = (signature, parts.last_mut()) {
        last["thoughtSignature"] = json!(signature);
    }
    parts
}

/// One `GenerateContentResponse`; the last one of an answer has the finish reason.
fn response(ask: &ParsedRequest, reply: &SimulatedReply, parts: Vec<Value>, is_last: bool) -> Value {
    let mut response = json!({
        "usageMetadata": usage(reply),
        "modelVersion": ask.model,
        "responseId": format!("{:016x}", reply.id)
    });
    if reply.ending == ReplyEnding::Refusal {
        // A rejected prompt has no candidates at all.
        response["promptFeedback"] = json!({"blockReason": "PROHIBITED_CONTENT"});
        return response;
    }
    let mut candidate = json!({"index": 0});
    if !parts.is_empty() {
        candidate["content"] = json!({"parts": parts, "role": "model"});
    }
    if is_last {
        candidate["finishReason"] = json!(match reply.ending {
            ReplyEnding::Length => "MAX_TOKENS",
            ReplyEnding::Filter => "SAFETY",
            ReplyEnding::Complete | ReplyEnding::Refusal | ReplyEnding::Calls | ReplyEnding::Paused => "STOP",
        });
        add_sources(&mut candidate, reply);
    }
    response["candidates"] = json!([candidate]);
    response
}

fn usage(reply: &SimulatedReply) -> Value {
    let tokens = reply.tokens;
    let mut usage = json!({
        "promptTokenCount": tokens.input,
        // This vendor counts thoughts separately.
        "candidatesTokenCount": tokens.output - tokens.reasoning,
        "totalTokenCount": tokens.input + tokens.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.input}]
    });
    if tokens.cached > 0 {
        usage["cachedContentTokenCount"] = json!(tokens.cached);
    }
    if tokens.reasoning > 0 {
        usage["thoughtsTokenCount"] = json!(tokens.reasoning);
    }
    usage
}

/// Adds the sources of the answer, in the form in which this vendor reports its own tools.
fn add_sources(candidate: &mut Value, reply: &SimulatedReply) {
    let Some(hosted) = reply.hosted.as_deref() else { return };
    let citations = reply.citations.iter();
    if hosted == "web_fetch" {
        let fetched: Vec<Value> = citations
            .map(|cited| {
                json!({"retrievedUrl": cited.url, "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"})
            })
            .collect();
        candidate["urlContextMetadata"] = json!({"urlMetadata": fetched});
    }
    let chunk = |cited: &rowmill_types::Citation| json!({"web": {"uri": cited.url, "title": cited.title.as_deref().unwrap_or(&cited.url)}});
    let chunks: Vec<Value> = reply.citations.iter().map(chunk).collect();
    let supports: Vec<Value> = (0..chunks.len())
        .map(|index| {
            json!({
                "segment": {"startIndex": 0, "endIndex": reply.text.len(), "text": reply.text},
                "groundingChunkIndices": [index]
            })
        })
        .collect();
    let mut grounding = json!({"groundingChunks": chunks, "groundingSupports": supports});
    if hosted == "web_search" {
        grounding["webSearchQueries"] = json!(["what to cite"]);
        grounding["searchEntryPoint"] = json!({"renderedContent": "<div></div>"});
    }
    candidate["groundingMetadata"] = grounding;
}
