//! Conversations with tools, in every protocol, whole and streamed.

use serde_json::{Value, json};

use super::{Client, Reply};

pub(crate) const ANTHROPIC: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Chat,
    Responses,
    Messages,
    Google,
}

pub(crate) const WAYS: [Way; 4] = [Way::Chat, Way::Responses, Way::Messages, Way::Google];

/// A conversation on the client's side.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) way: Way,
    pub(crate) streamed: bool,
    pub(crate) body: Value,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct ReadAnswer {
    pub(crate) text: String,
    /// Ids, names and arguments.
    pub(crate) calls: Vec<(String, String, Value)>,
    pub(crate) finish: String,
    /// The content to send back: a message, items, blocks or parts.
    pub(crate) content: Value,
    /// The complete answer, if it was not streamed.
    pub(crate) whole: Value,
}

impl Talk {
    /// A conversation that offers the tools `find` and `give`.
    pub(crate) fn new(way: Way, streamed: bool, prompt: &str) -> Self {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let tool = |name: &str| match way {
            Way::Chat => {
                json!({"type": "function", "function": {"name": name, "description": "Does.", "parameters": schema}})
            }
            Way::Responses => {
                json!({"type": "function", "name": name, "description": "Does.", "parameters": schema})
            }
            Way::Messages => json!({"name": name, "description": "Does.", "input_schema": schema}),
            Way::Google => json!({"name": name, "description": "Does.", "parametersJsonSchema": schema}),
        };
        let tools = json!([tool("find"), tool("give")]);
        let mut body = match way {
            Way::Chat => {
                json!({"model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}], "tools": tools})
            }
            Way::Responses => {
                json!({"model": "m", "instructions": "Be brief.", "include": ["reasoning.encrypted_content"], "input": [{"role": "user", "content": prompt}], "tools": tools})
            }
            Way::Messages => {
                json!({"model": "m", "max_tokens": 900, "system": "Be brief.", "messages": [{"role": "user", "content": prompt}], "tools": tools})
            }
            Way::Google => {
                json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [{"role": "user", "parts": [{"text": prompt}]}], "tools": [{"functionDeclarations": tools}]})
            }
        };
        if streamed && way != Way::Google {
            body["stream"] = json!(true);
        }
        Self { way, streamed, body }
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.way {
            Way::Chat => "/v1/chat/completions",
            Way::Responses => "/v1/responses",
            Way::Messages => "/v1/messages",
            Way::Google if self.streamed => "/v1beta/models/m:streamGenerateContent?alt=sse",
            Way::Google => "/v1beta/models/m:generateContent",
        }
    }

    /// All messages, for changes.
    pub(crate) fn messages_mut(&mut self) -> &mut Vec<Value> {
        let field = match self.way {
            Way::Chat | Way::Messages => "messages",
            Way::Responses => "input",
            Way::Google => "contents",
        };
        self.body[field].as_array_mut().unwrap()
    }

    pub(crate) fn post(&self, client: &mut Client) -> Reply {
        let headers = if self.way == Way::Messages { ANTHROPIC } else { "" };
        client.post(self.path(), headers, &self.body.to_string())
    }

    /// Sends a request, and adds the answer to the conversation.
    pub(crate) fn ask(&mut self, client: &mut Client) -> ReadAnswer {
        let reply = self.post(client);
        assert_eq!(reply.status, 200, "{self:?}: {}", reply.body);
        let reported = match (self.way, self.streamed) {
            (Way::Chat, false) => chat(reply.json()),
            (Way::Chat, true) => chat_stream(&reply.events()),
            (Way::Responses, false) => responses(reply.json()),
            (Way::Responses, true) => responses_stream(&reply.events()),
            (Way::Messages, false) => messages(reply.json()),
            (Way::Messages, true) => messages(messages_stream(&reply.events())),
            (Way::Google, false) => google(&[reply.json()]),
            (Way::Google, true) => google(&reply.events()),
        };
        let content = reported.content.clone();
        match self.way {
            Way::Chat => self.messages_mut().push(content),
            Way::Responses => self.messages_mut().extend(content.as_array().unwrap().clone()),
            Way::Messages => self.messages_mut().push(json!({"role": "assistant", "content": content})),
            Way::Google => self.messages_mut().push(json!({"role": "model", "parts": content})),
        }
        reported
    }

    /// Adds tool results for these calls.
    pub(crate) fn give(&mut self, results: &[(&(String, String, Value), &str)]) {
        let each = results.iter().map(|((id, name, _), text)| match self.way {
            Way::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Way::Responses => json!({"type": "function_call_output", "call_id": id, "output": text}),
            Way::Messages => json!({"type": "tool_result", "tool_use_id": id, "content": text}),
            Way::Google => {
                json!({"functionResponse": {"id": id, "name": name, "response": {"result": text}}})
            }
        });
        let each: Vec<Value> = each.collect();
        match self.way {
            Way::Chat | Way::Responses => self.messages_mut().extend(each),
            Way::Messages => self.messages_mut().push(json!({"role": "user", "content": each})),
            Way::Google => self.messages_mut().push(json!({"role": "user", "parts": each})),
        }
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parsed(value: &Value) -> Value {
    serde_json::from_str(value.as_str().unwrap()).unwrap()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn chat(whole: Value) -> ReadAnswer {
    let choice = &whole["choices"][0];
    let content = choice["message"].clone();
    let calls = list(&content["tool_calls"]);
    let calls = calls
        .iter()
        .map(|call| {
            (string(&call["id"]), string(&call["function"]["name"]), parsed(&call["function"]["arguments"]))
        })
        .collect();
    ReadAnswer {
        text: string(&content["content"]),
        calls,
        finish: string(&choice["finish_reason"]),
        content,
        whole,
    }
}

/// Assembles a stream as the vendor's own clients do.
fn chat_stream(events: &[Value]) -> ReadAnswer {
    let mut message = json!({"role": "assistant", "content": "", "tool_calls": []});
    let mut finish = Value::Null;
    for choice in events.iter().filter_map(|event| event["choices"].get(0)) {
        let delta = &choice["delta"];
        for field in ["content", "reasoning_content"] {
            if let Some(piece) = delta[field].as_str() {
                message[field] = json!(string(&message[field]) + piece);
            }
        }
        for call in list(&delta["tool_calls"]) {
            let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            let calls = message["tool_calls"].as_array_mut().unwrap();
            if calls.len() == at {
                calls.push(call);
            } else {
                let held = &mut calls[at]["function"]["arguments"];
                *held = json!(string(held) + call["function"]["arguments"].as_str().unwrap());
            }
        }
        if !choice["finish_reason"].is_null() {
            finish = choice["finish_reason"].clone();
        }
    }
    if list(&message["tool_calls"]).is_empty() {
        message.as_object_mut().unwrap().remove("tool_calls");
    }
    chat(json!({"choices": [{"message": message, "finish_reason": finish}]}))
}

fn responses(whole: Value) -> ReadAnswer {
    let items = list(&whole["output"]);
    let of = |kind: &str| items.iter().filter(|item| item["type"] == kind).cloned().collect::<Vec<_>>();
    let text = of("message").iter().map(|item| string(&item["content"][0]["text"])).collect();
    let calls = of("function_call")
        .iter()
        .map(|call| (string(&call["call_id"]), string(&call["name"]), parsed(&call["arguments"])))
        .collect();
    ReadAnswer { text, calls, finish: string(&whole["status"]), content: json!(items), whole }
}

pub(crate) fn responses_stream(events: &[Value]) -> ReadAnswer {
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let joined = |kind: &str, item: &Value| -> String {
        let of = |event: &&Value| event["type"] == kind && event["item_id"] == item["id"];
        events.iter().filter(of).map(|event| string(&event["delta"])).collect()
    };
    let last = events.last().unwrap();
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    let items: Vec<Value> = done.map(|event| event["item"].clone()).collect();
    assert_eq!(last["response"]["output"], json!(items));
    for item in &items {
        match item["type"].as_str().unwrap() {
            "message" => {
                assert_eq!(
                    joined("response.output_text.delta", item),
                    item["content"][0]["text"].as_str().unwrap()
                );
            }
            "function_call" => {
                let arguments = joined("response.function_call_arguments.delta", item);
                assert_eq!(arguments, item["arguments"].as_str().unwrap());
            }
            "reasoning" => {
                let summary = joined("response.reasoning_summary_text.delta", item);
                assert_eq!(summary, item["summary"][0]["text"].as_str().unwrap());
            }
            _ => {}
        }
    }
    responses(last["response"].clone())
}

fn messages(whole: Value) -> ReadAnswer {
    let blocks = list(&whole["content"]);
    let of = |kind: &str| blocks.iter().filter(|block| block["type"] == kind).cloned().collect::<Vec<_>>();
    let text = of("text").iter().map(|block| string(&block["text"])).collect();
    let calls = of("tool_use")
        .iter()
        .map(|call| (string(&call["id"]), string(&call["name"]), call["input"].clone()))
        .collect();
    ReadAnswer { text, calls, finish: string(&whole["stop_reason"]), content: json!(blocks), whole }
}

fn messages_stream(events: &[Value]) -> Value {
    let mut message = Value::Null;
    for event in events {
        let at = event["index"].as_u64().unwrap_or(0) as usize;
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                let mut block = event["content_block"].clone();
                block["json"] = json!("");
                message["content"].as_array_mut().unwrap().push(block);
            }
            "content_block_delta" => {
                let (delta, block) = (&event["delta"], &mut message["content"][at]);
                for (from, to) in [
                    ("text", "text"),
                    ("thinking", "thinking"),
                    ("signature", "signature"),
                    ("partial_json", "json"),
                ] {
                    if let Some(piece) = delta[from].as_str() {
                        block[to] = json!(string(&block[to]) + piece);
                    }
                }
                if delta["type"] == "citations_delta" {
                    block["citations"].as_array_mut().unwrap().push(delta["citation"].clone());
                }
            }
            "content_block_stop" => {
                let block = message["content"][at].as_object_mut().unwrap();
                let input = block.remove("json").unwrap();
                if input != "" {
                    block.insert("input".into(), parsed(&input));
                }
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                for (name, value) in event["usage"].as_object().unwrap() {
                    message["usage"][name] = value.clone();
                }
            }
            _ => {}
        }
    }
    message
}

fn google(pieces: &[Value]) -> ReadAnswer {
    let parts: Vec<Value> =
        pieces.iter().flat_map(|piece| list(&piece["candidates"][0]["content"]["parts"])).collect();
    let text =
        parts.iter().filter(|part| part["thought"] != true).map(|part| string(&part["text"])).collect();
    let calls = parts.iter().filter_map(|part| part.get("functionCall"));
    let calls =
        calls.map(|call| (string(&call["id"]), string(&call["name"]), call["args"].clone())).collect();
    let whole = pieces.last().unwrap().clone();
    let finish = string(&whole["candidates"][0]["finishReason"]);
    ReadAnswer { text, calls, finish, content: json!(parts), whole }
}
