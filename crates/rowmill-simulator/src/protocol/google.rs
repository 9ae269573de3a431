//! Google `generateContent`.

use serde_json::{Map, Value, json};

use super::parts::Reader;
use super::{Ask, Refused, text_of};
use crate::outgoing::{Outgoing, event};
use crate::reply::{Ending, Reply};

/// The model and the method that a path names, with or without a query.
pub(super) fn model_and_method(path: &str) -> Option<(&str, &str)> {
    let path = path.split('?').next()?;
    let (model, method) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
    matches!(method, "generateContent" | "streamGenerateContent").then_some((model, method))
}

pub(super) fn ask(path: &str, body: &Value, reader: Reader<'_>) -> Result<Ask, Refused> {
    let (model, method) = model_and_method(path).unwrap_or_default();
    let mut ask = Ask { model: model.to_owned(), ..Ask::default() };
    let system = body.get("systemInstruction").or_else(|| body.get("system_instruction"));
    ask.say_system(&text_of(system.and_then(|system| system.get("parts"))));
    let contents = body.get("contents").and_then(Value::as_array).filter(|contents| !contents.is_empty());
    let Some(contents) = contents else {
        return Err(Refused::invalid("* GenerateContentRequest.contents: contents is not specified"));
    };
    for content in contents {
        let text = text_of(content.get("parts"));
        match content.get("role").and_then(Value::as_str) {
            None | Some("user") => reader.user(&mut ask, content.get("parts"))?,
            Some("model" | "function") => ask.say_other(&text),
            Some(_) => return Err(Refused::invalid("Please use a valid role: user, model.")),
        }
    }
    let config = body.get("generationConfig").or_else(|| body.get("generation_config"));
    let setting = |names: [&str; 2]| names.into_iter().find_map(|name| config?.get(name));
    ask.schema = setting(["responseJsonSchema", "response_json_schema"])
        .cloned()
        .or_else(|| setting(["responseSchema", "response_schema"]).map(as_json_schema));
    ask.wants_json =
        setting(["responseMimeType", "response_mime_type"]).is_some_and(|kind| kind == "application/json");
    ask.max_tokens = setting(["maxOutputTokens", "max_output_tokens"]).and_then(Value::as_u64);
    ask.stream = method == "streamGenerateContent";
    ask.stream_is_array = !path.contains("alt=sse");
    Ok(ask)
}

/// This vendor's own schema dialect as JSON Schema: types in lower case, and `nullable` as a type.
fn as_json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut plain: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), as_json_schema(value))).collect();
            if let Some(Value::String(name)) = map.get("type") {
                plain.insert("type".into(), json!(name.to_lowercase()));
                if map.get("nullable") == Some(&Value::Bool(true)) {
                    plain.insert("type".into(), json!([name.to_lowercase(), "null"]));
                }
            }
            Value::Object(plain)
        }
        Value::Array(items) => items.iter().map(as_json_schema).collect(),
        other => other.clone(),
    }
}

pub(super) fn error(refused: &Refused) -> Value {
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

pub(super) fn render(ask: &Ask, reply: &Reply, headers: &[(String, String)]) -> Outgoing {
    if !ask.stream {
        return Outgoing::json(200, headers, &piece(ask, reply, Some(&reply.text), true));
    }
    let parts = parts(ask, reply);
    if ask.stream_is_array {
        return Outgoing::json(200, headers, &Value::Array(parts));
    }
    let events: Vec<String> = parts.iter().map(|part| event(None, part)).collect();
    Outgoing::events(headers, &events)
}

fn parts(ask: &Ask, reply: &Reply) -> Vec<Value> {
    let pieces = reply.pieces();
    if pieces.is_empty() {
        return vec![piece(ask, reply, None, true)];
    }
    let last = pieces.len() - 1;
    pieces.iter().enumerate().map(|(at, text)| piece(ask, reply, Some(text), at == last)).collect()
}

/// One `GenerateContentResponse`; the last one of an answer says how it ended.
fn piece(ask: &Ask, reply: &Reply, text: Option<&str>, is_last: bool) -> Value {
    let tokens = reply.tokens;
    let mut usage = json!({
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output,
        "totalTokenCount": tokens.input + tokens.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.input}]
    });
    if tokens.cached > 0 {
        usage["cachedContentTokenCount"] = json!(tokens.cached);
    }
    let mut response = json!({
        "usageMetadata": usage,
        "modelVersion": ask.model,
        "responseId": format!("{:016x}", reply.id)
    });
    if reply.ending == Ending::Refusal {
        // A refused prompt has no candidates at all.
        response["promptFeedback"] = json!({"blockReason": "PROHIBITED_CONTENT"});
        return response;
    }
    let mut candidate = json!({"index": 0});
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        candidate["content"] = json!({"parts": [{"text": text}], "role": "model"});
    }
    if is_last {
        candidate["finishReason"] = json!(match reply.ending {
            Ending::Length => "MAX_TOKENS",
            Ending::Filter => "SAFETY",
            Ending::Complete | Ending::Refusal => "STOP",
        });
    }
    response["candidates"] = json!([candidate]);
    response
}
