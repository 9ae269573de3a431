//! Streams responses as events.

use serde_json::{Map, Value, json};

use super::super::{ParsedRequest, RequestRefusal, chat, text};
use super::write::{annotations, is_incomplete, items, part, plain, response};
use crate::outgoing_answer::sse_event;
use crate::reply::{ReplyEnding, SimulatedReply, stream_pieces};

/// The events of a stream as objects, in order; a WebSocket sends each as a message.
pub(crate) fn events(ask: &ParsedRequest, reply: &SimulatedReply) -> Vec<Value> {
    let mut events = EventList(Vec::new());
    let begun = response(ask, reply, "in_progress");
    events.add("response.created", json!({"response": begun}));
    events.add("response.in_progress", json!({"response": begun}));
    for (index, item) in items(ask, reply).into_iter().enumerate() {
        let place = json!({"item_id": item["id"], "output_index": index});
        events.add("response.output_item.added", json!({"output_index": index, "item": opened(&item)}));
        match text(&item, "type").unwrap_or_default() {
            "message" => events.message(reply, &place),
            "function_call" => events.call(&item, &place),
            "reasoning" => events.thought(&item, &place),
            hosted => {
                for state in ["in_progress", "searching", "completed"] {
                    events.add(&format!("response.{hosted}.{state}"), place.clone());
                }
            }
        }
        events.add("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let last = if is_incomplete(reply) { "response.incomplete" } else { "response.completed" };
    events.add(last, json!({"response": plain(ask, reply)}));
    events.0
}

/// An item before it has any content.
fn opened(item: &Value) -> Value {
    let mut item = item.clone();
    for (field, empty) in [("content", json!([])), ("arguments", json!("")), ("summary", json!([]))] {
        if let Some(held) = item.get_mut(field) {
            *held = empty;
        }
    }
    if let Some(status) = item.get_mut("status") {
        *status = json!("in_progress");
    }
    item
}

struct EventList(Vec<Value>);

impl EventList {
    fn add(&mut self, name: &str, fields: Value) {
        let mut event = Map::new();
        event.insert("type".into(), json!(name));
        event.insert("sequence_number".into(), json!(self.0.len()));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.0.push(Value::Object(event));
    }

    fn message(&mut self, reply: &SimulatedReply, place: &Value) {
        let refuses = reply.ending == ReplyEnding::Refusal;
        let (name, field) = if refuses { ("refusal", "refusal") } else { ("output_text", "text") };
        let at = |more: Value| with(with(place.clone(), json!({"content_index": 0})), more);
        self.add("response.content_part.added", at(json!({"part": part(reply, "", Vec::new())})));
        for piece in stream_pieces(&reply.text) {
            self.add(&format!("response.{name}.delta"), at(json!({"delta": piece})));
        }
        for (index, annotation) in annotations(reply).into_iter().enumerate() {
            let added = json!({"annotation_index": index, "annotation": annotation});
            self.add("response.output_text.annotation.added", at(added));
        }
        self.add(&format!("response.{name}.done"), at(json!({field: reply.text})));
        let whole = part(reply, &reply.text, annotations(reply));
        self.add("response.content_part.done", at(json!({"part": whole})));
    }

    fn call(&mut self, item: &Value, place: &Value) {
        let arguments = text(item, "arguments").unwrap_or_default();
        for piece in stream_pieces(arguments) {
            self.add("response.function_call_arguments.delta", with(place.clone(), json!({"delta": piece})));
        }
        let done = json!({"name": item["name"], "arguments": arguments});
        self.add("response.function_call_arguments.done", with(place.clone(), done));
    }

    fn thought(&mut self, item: &Value, place: &Value) {
        let summary = item.pointer("/summary/0").cloned().unwrap_or_default();
        let summary_text = text(&summary, "text").unwrap_or_default();
        let at = |more: Value| with(with(place.clone(), json!({"summary_index": 0})), more);
        let empty = json!({"type": "summary_text", "text": ""});
        self.add("response.reasoning_summary_part.added", at(json!({"part": empty})));
        for piece in stream_pieces(summary_text) {
            self.add("response.reasoning_summary_text.delta", at(json!({"delta": piece})));
        }
        self.add("response.reasoning_summary_text.done", at(json!({"text": summary_text})));
        self.add("response.reasoning_summary_part.done", at(json!({"part": summary})));
    }
}

fn with(mut fields: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}

pub(in crate::protocol) fn sse(ask: &ParsedRequest, reply: &SimulatedReply) -> Vec<String> {
    events(ask, reply).iter().map(|data| sse_event(text(data, "type"), data)).collect()
}

/// The event that reports an error on a WebSocket.
pub(crate) fn error_event(refused: &RequestRefusal) -> Value {
    let headers: Map<String, Value> =
        refused.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({"type": "error", "status": refused.status, "error": chat::error(refused)["error"], "headers": headers})
}
