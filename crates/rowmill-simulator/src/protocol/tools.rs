//! The tools that a request offers, in every vendor's format.

use serde_json::Value;

use super::{ParsedRequest, RequestRefusal, as_json_schema, text};
use crate::conversation::RecordedToolSpec;

/// OpenAI's tools: in chats a function is nested in a field of its own, in Responses it is not.
pub(super) fn openai(body: &Value, ask: &mut ParsedRequest, is_chat: bool) -> Result<(), RequestRefusal> {
    let choice = body.get("tool_choice");
    let Some(tools) = body.get("tools").filter(|tools| !tools.is_null()) else {
        for name in ["tool_choice", "parallel_tool_calls"] {
            if is_chat && body.get(name).is_some_and(|value| !value.is_null()) {
                return Err(RequestRefusal::invalid(format!(
                    "'{name}' is only allowed when 'tools' are specified."
                )));
            }
        }
        return Ok(());
    };
    let Some(tools) = tools.as_array() else {
        return Err(RequestRefusal::invalid("Invalid type for 'tools': expected an array of objects."));
    };
    if tools.is_empty() && is_chat {
        return Err(RequestRefusal::invalid(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        ));
    }
    for (at, tool) in tools.iter().enumerate() {
        match text(tool, "type") {
            Some("function") => {
                let function = if is_chat { tool.get("function") } else { Some(tool) };
                let place = if is_chat { format!("tools[{at}].function") } else { format!("tools[{at}]") };
                let Some(function) = function else {
                    return Err(RequestRefusal::invalid(format!("Missing required parameter: '{place}'.")));
                };
                offer(ask, openai_function(function, &place)?)?;
            }
            Some(hosted) => ask.hosted.push(hosted.trim_end_matches("_preview").to_owned()),
            None => {
                return Err(RequestRefusal::invalid(format!(
                    "Missing required parameter: 'tools[{at}].type'."
                )));
            }
        }
    }
    let named = choice.and_then(|choice| if is_chat { choice.get("function") } else { Some(choice) });
    let named = named.and_then(|choice| text(choice, "name"));
    match choice.and_then(|choice| choice.as_str().or_else(|| text(choice, "type"))) {
        Some("none") => ask.tools.clear(),
        Some("required" | "function") => {
            demand(ask, named, |name| format!("Tool choice '{name}' not found in 'tools' parameter."))?
        }
        _ => {}
    }
    Ok(())
}

fn openai_function(function: &Value, place: &str) -> Result<RecordedToolSpec, RequestRefusal> {
    let Some(name) = text(function, "name") else {
        return Err(RequestRefusal::invalid(format!("Missing required parameter: '{place}.name'.")));
    };
    if !is_plain(name) {
        return Err(RequestRefusal::invalid(format!(
            "Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )));
    }
    if name.len() > 64 {
        return Err(RequestRefusal::invalid(format!(
            "Invalid '{place}.name': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
            name.len()
        )));
    }
    let schema = function.get("parameters").cloned().unwrap_or_default();
    if !schema.is_null() && text(&schema, "type") != Some("object") {
        let found = text(&schema, "type").unwrap_or("None");
        return Err(RequestRefusal::invalid(format!(
            "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{found}\"'."
        )));
    }
    Ok(seen(name, function, schema))
}

/// Anthropic's tools: one with a type other than `custom` runs at the provider or is known to the model.
pub(super) fn anthropic(body: &Value, ask: &mut ParsedRequest) -> Result<(), RequestRefusal> {
    let tools = body.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (at, tool) in tools.iter().enumerate() {
        let name = text(tool, "name").unwrap_or_default();
        if text(tool, "type").is_some_and(|kind| kind != "custom") {
            ask.hosted.push(name.to_owned());
            continue;
        }
        if !is_plain(name) || name.len() > 128 {
            return Err(RequestRefusal::invalid(format!(
                "tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )));
        }
        let schema = tool.get("input_schema").cloned().unwrap_or_default();
        let wrong = match text(&schema, "type") {
            Some("object") => None,
            _ if schema.is_null() => Some("input_schema: Field required"),
            None => Some("input_schema.type: Field required"),
            Some(_) => Some("input_schema.type: Input should be 'object'"),
        };
        if let Some(wrong) = wrong {
            return Err(RequestRefusal::invalid(format!("tools.{at}.custom.{wrong}")));
        }
        offer(ask, seen(name, tool, schema))?;
    }
    let choice = body.pointer("/tool_choice/type").and_then(Value::as_str);
    let named = body.pointer("/tool_choice/name").and_then(Value::as_str);
    match choice {
        Some("none") => ask.tools.clear(),
        Some("tool" | "any") => demand(ask, named, |_| "tool_choice: no such tool".to_owned())?,
        _ => {}
    }
    Ok(())
}

/// Google's tools: lists of declarations, and objects named after their function.
pub(super) fn google(body: &Value, ask: &mut ParsedRequest) -> Result<(), RequestRefusal> {
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    for (name, value) in tools.filter_map(Value::as_object).flatten() {
        match name.as_str() {
            "functionDeclarations" | "function_declarations" => {
                for declaration in value.as_array().into_iter().flatten() {
                    offer(ask, google_function(declaration)?)?;
                }
            }
            "googleSearch" | "google_search" | "googleSearchRetrieval" | "google_search_retrieval" => {
                ask.hosted.push("web_search".to_owned());
            }
            "urlContext" | "url_context" => ask.hosted.push("web_fetch".to_owned()),
            "codeExecution" | "code_execution" => ask.hosted.push("code_execution".to_owned()),
            other => {
                return Err(RequestRefusal::invalid(format!(
                    "Invalid JSON payload received. Unknown name \"{other}\" at 'tools'"
                )));
            }
        }
    }
    let config = body.get("toolConfig").or_else(|| body.get("tool_config"));
    let config = config.and_then(|config| {
        config.get("functionCallingConfig").or_else(|| config.get("function_calling_config"))
    });
    let Some(config) = config else { return Ok(()) };
    let allowed = config.get("allowedFunctionNames").or_else(|| config.get("allowed_function_names"));
    let named = allowed.and_then(|names| names.get(0)?.as_str());
    match text(config, "mode") {
        Some("NONE") => ask.tools.clear(),
        Some("ANY") => demand(ask, named, |name| {
            format!("Function calling config: allowed function name {name} is not declared.")
        })?,
        _ => {}
    }
    Ok(())
}

fn google_function(declaration: &Value) -> Result<RecordedToolSpec, RequestRefusal> {
    let name = text(declaration, "name").unwrap_or_default();
    let starts = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.:-".contains(letter);
    if !starts || !name.chars().all(fits) || name.len() > 64 {
        return Err(RequestRefusal::invalid(
            "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 64.",
        ));
    }
    let plain =
        ["parametersJsonSchema", "parameters_json_schema"].into_iter().find_map(|key| declaration.get(key));
    let schema = match plain {
        Some(schema) => schema.clone(),
        None => declaration.get("parameters").map(as_json_schema).unwrap_or_default(),
    };
    Ok(seen(name, declaration, schema))
}

fn seen(name: &str, tool: &Value, schema: Value) -> RecordedToolSpec {
    let description = text(tool, "description").unwrap_or_default().to_owned();
    RecordedToolSpec { name: name.to_owned(), description, schema }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}

fn offer(ask: &mut ParsedRequest, tool: RecordedToolSpec) -> Result<(), RequestRefusal> {
    if ask.tools.iter().any(|held| held.name == tool.name) {
        return Err(RequestRefusal::invalid(match ask.protocol {
            super::VendorProtocol::Google => format!("Duplicate function declaration found: {}", tool.name),
            _ => "tools: Tool names must be unique.".to_owned(),
        }));
    }
    ask.tools.push(tool);
    Ok(())
}

/// Requires the named tool, or the last one: clients put the answer tool after all others.
fn demand(
    ask: &mut ParsedRequest,
    name: Option<&str>,
    unknown: impl Fn(&str) -> String,
) -> Result<(), RequestRefusal> {
    let tool = ask.tools.iter().rfind(|tool| name.is_none_or(|name| tool.name == name)).cloned();
    match tool {
        Some(tool) => {
            ask.require_tool(&tool);
            Ok(())
        }
        None => Err(RequestRefusal::invalid(unknown(name.unwrap_or_default()))),
    }
}
