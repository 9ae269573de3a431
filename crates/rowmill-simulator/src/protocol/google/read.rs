//! Parses requests of `generateContent`.

use serde_json::{Map, Value, json};

use super::super::content::ContentReader;
use super::super::{ParsedRequest, RequestRefusal, VendorProtocol, text, text_of, tools};
use crate::conversation::{RecordedRole, RecordedToolCall, RecordedToolResult};
use crate::thought;

/// The model and the method in a path, with or without a query.
pub(in crate::protocol) fn model_and_method(path: &str) -> Option<(&str, &str)> {
    let path = path.split('?').next()?;
    let named = ["/v1beta/models/", "/v1/models/"].into_iter().find_map(|start| path.strip_prefix(start))?;
    let (model, method) = named.rsplit_once(':')?;
    matches!(method, "generateContent" | "streamGenerateContent").then_some((model, method))
}

pub(in crate::protocol) fn read_google_request(
    path: &str,
    body: &Value,
    reader: ContentReader<'_>,
) -> Result<ParsedRequest, RequestRefusal> {
    let (model, method) = model_and_method(path).unwrap_or_default();
    let mut ask = ParsedRequest::new_for(VendorProtocol::Google, model.to_owned());
    let system = body.get("systemInstruction").or_else(|| body.get("system_instruction"));
    ask.say_system(&text_of(system.and_then(|system| system.get("parts"))));
    let contents = body.get("contents").and_then(Value::as_array).filter(|contents| !contents.is_empty());
    let Some(contents) = contents else {
        return Err(RequestRefusal::invalid("* GenerateContentRequest.contents: contents is not specified"));
    };
    let mut open = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        open = read_content(&mut ask, at, content, &open, reader)?;
    }
    if !open.is_empty() {
        return Err(unequal());
    }
    let config = body.get("generationConfig").or_else(|| body.get("generation_config"));
    let setting = |names: [&str; 2]| names.into_iter().find_map(|name| config?.get(name));
    ask.schema = setting(["responseJsonSchema", "response_json_schema"])
        .cloned()
        .or_else(|| setting(["responseSchema", "response_schema"]).map(as_json_schema));
    ask.wants_json =
        setting(["responseMimeType", "response_mime_type"]).is_some_and(|kind| kind == "application/json");
    ask.max_tokens = setting(["maxOutputTokens", "max_output_tokens"]).and_then(Value::as_u64);
    let thinking = setting(["thinkingConfig", "thinking_config"]);
    let shows = |name| thinking.and_then(|config| config.get(name)) == Some(&Value::Bool(true));
    ask.gives_thoughts = shows("includeThoughts") || shows("include_thoughts");
    tools::google(body, &mut ask)?;
    ask.stream = method == "streamGenerateContent";
    ask.stream_is_array = !path.contains("alt=sse");
    Ok(ask)
}

/// Parses one content; returns the calls that must be answered next.
fn read_content(
    ask: &mut ParsedRequest,
    at: usize,
    content: &Value,
    open: &[RecordedToolCall],
    reader: ContentReader<'_>,
) -> Result<Vec<RecordedToolCall>, RequestRefusal> {
    let parts = content.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if parts.is_empty() {
        return Err(RequestRefusal::invalid(format!(
            "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
        )));
    }
    match text(content, "role") {
        Some("model") if !open.is_empty() => Err(unequal()),
        Some("model") => read_answer(ask, at, parts, reader),
        None | Some("user" | "function") => {
            let results = parts.iter().filter(|part| response(part).is_some()).count();
            match (results, open.len()) {
                (0, 0) => reader.user(ask, content.get("parts"))?,
                (_, 0) => {
                    return Err(RequestRefusal::invalid(
                        "Please ensure that function response turn comes immediately after a function call turn.",
                    ));
                }
                (results, calls) if results != calls => return Err(unequal()),
                _ => read_results(ask, at, parts, open, reader)?,
            }
            Ok(Vec::new())
        }
        Some(_) => Err(RequestRefusal::invalid("Please use a valid role: user, model.")),
    }
}

fn unequal() -> RequestRefusal {
    RequestRefusal::invalid(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    )
}

fn either<'v>(part: &'v Value, names: [&str; 2]) -> Option<&'v Value> {
    names.into_iter().find_map(|name| part.get(name))
}

fn response(part: &Value) -> Option<&Value> {
    either(part, ["functionResponse", "function_response"])
}

/// The value that clients send for a call that was never signed.
const UNSIGNED: &str = "skip_thought_signature_validator";

fn read_answer(
    ask: &mut ParsedRequest,
    at: usize,
    parts: &[Value],
    reader: ContentReader<'_>,
) -> Result<Vec<RecordedToolCall>, RequestRefusal> {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        let place = format!("contents[{at}].parts[{index}]");
        let signature = either(part, ["thoughtSignature", "thought_signature"]).and_then(Value::as_str);
        // The vendor accepts this value for a call that another model made; it counts as no signature.
        let signature = signature.filter(|signature| *signature != UNSIGNED);
        if signature.is_some_and(|signature| !thought::is_signed(signature, "")) {
            return Err(RequestRefusal::invalid(format!("Thought signature is not valid. ({place})")));
        }
        if let Some(call) = either(part, ["functionCall", "function_call"]) {
            let call = read_call(&place, call)?;
            let belongs = || {
                let arguments = call.arguments.to_string();
                reader.thoughts.belongs_without_id(&ask.prompt, &call.name, &arguments)
            };
            // Only the first of several calls is signed.
            if calls.is_empty() && signature.is_none() && belongs() {
                return Err(RequestRefusal::invalid(format!(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `{}`, position {}.",
                    call.name,
                    index + 1
                )));
            }
            calls.push(call);
        } else if part.get("thought") != Some(&Value::Bool(true)) {
            texts.extend(text(part, "text"));
        }
    }
    let fits = ask.messages.last().is_some_and(|last| last.role != RecordedRole::Assistant);
    if !calls.is_empty() && !fits {
        return Err(RequestRefusal::invalid(
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        ));
    }
    ask.say_assistant(texts.join("\n"), calls.clone());
    Ok(calls)
}

fn read_call(place: &str, call: &Value) -> Result<RecordedToolCall, RequestRefusal> {
    let name = text(call, "name").unwrap_or_default();
    if name.is_empty() {
        return Err(RequestRefusal::invalid(format!(
            "* GenerateContentRequest.{place}.function_call.name: Name cannot be empty."
        )));
    }
    let arguments = match call.get("args") {
        None => json!({}),
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(other) => return Err(no_object(&format!("{place}.function_call.args"), other)),
    };
    let id = text(call, "id").unwrap_or_default().to_owned();
    Ok(RecordedToolCall { id, name: name.to_owned(), arguments })
}

fn no_object(place: &str, value: &Value) -> RequestRefusal {
    RequestRefusal::invalid(format!(
        "Invalid value at '{place}' (type.googleapis.com/google.protobuf.Struct), {value}"
    ))
}

/// Parses as many results as there were calls; each must belong to one of them.
fn read_results(
    ask: &mut ParsedRequest,
    at: usize,
    parts: &[Value],
    open: &[RecordedToolCall],
    reader: ContentReader<'_>,
) -> Result<(), RequestRefusal> {
    let mut left: Vec<&RecordedToolCall> = open.iter().collect();
    let mut rest = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(given) = response(part) else {
            rest.push(part.clone());
            continue;
        };
        let place = format!("contents[{at}].parts[{index}].function_response");
        let name = text(given, "name").unwrap_or_default();
        if name.is_empty() {
            return Err(RequestRefusal::invalid(format!(
                "* GenerateContentRequest.{place}.name: Name cannot be empty."
            )));
        }
        let id = text(given, "id").unwrap_or_default();
        let is_same = |call: &&RecordedToolCall| {
            call.name == name && (id.is_empty() || call.id.is_empty() || call.id == id)
        };
        let Some(found) = left.iter().position(is_same) else {
            return Err(RequestRefusal::invalid(format!(
                "Please ensure that function response parts match the function call parts of the function call turn: no call of `{name}` is left."
            )));
        };
        let call = left.remove(found).id.clone();
        let output = given.get("response").unwrap_or(&Value::Null);
        if !output.is_object() {
            return Err(no_object(&format!("{place}.response"), output));
        }
        if let Some(Value::Array(parts)) = given.get("parts") {
            reader.content(ask, parts)?;
        }
        let is_error = output.get("error").is_some();
        ask.add_result(RecordedToolResult {
            call,
            tool: name.to_owned(),
            text: result_text(output),
            is_error,
        });
    }
    if rest.is_empty() { Ok(()) } else { reader.parts_of_user(ask, &rest) }
}

/// A tool result, without the object that this vendor requires around it.
fn result_text(output: &Value) -> String {
    let inner = output.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.iter().next());
    match inner {
        Some((name, Value::String(given)))
            if matches!(name.as_str(), "output" | "result" | "content" | "error") =>
        {
            given.clone()
        }
        _ => output.to_string(),
    }
}

/// Converts this vendor's own schema dialect to JSON Schema: types in lower case, and `nullable` as a type.
pub(in crate::protocol) fn as_json_schema(schema: &Value) -> Value {
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
