//! Conversations that no vendor takes are refused in its own words.

mod support;

use rowmill_simulator::{Script, Simulator};
use serde_json::{Value, json};
use support::Client;
use support::talk::{ANTHROPIC, Talk, Way};

/// A body with this said and offered, in the vendor's names.
fn body(way: Way, said: Value, more: Value) -> String {
    let mut body = match way {
        Way::Chat => json!({"model": "m", "messages": said}),
        Way::Responses => json!({"model": "m", "input": said}),
        Way::Messages => json!({"model": "m", "max_tokens": 9, "messages": said}),
        Way::Google => json!({"contents": said}),
    };
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body.to_string()
}

/// Sends each and expects status 400 with this in the vendor's error message.
fn refused(way: Way, table: &[(Value, Value, &str)]) {
    let simulator = Simulator::start_blocking(Script::new());
    let mut client = Client::to(&simulator);
    let path = Talk::new(way, false, "").path();
    let headers = if way == Way::Messages { ANTHROPIC } else { "" };
    for (said, more, told) in table {
        let reply = client.post(path, headers, &body(way, said.clone(), more.clone()));
        let message =
            reply.json().pointer("/error/message").and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!(reply.status, 400, "{told}: {}", reply.body);
        assert!(message.contains(told), "{told}: {message}");
    }
}

#[test]
fn chats() {
    let user = json!({"role": "user", "content": "x"});
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let one = calls(json!([call("a")]));
    let tool = |function: Value| json!({"tools": [{"type": "function", "function": function}]});
    let nothing = json!({});
    refused(
        Way::Chat,
        &[
            (
                json!([user, result("a")]),
                nothing.clone(),
                "must be a response to a preceeding message with 'tool_calls'",
            ),
            (json!([user, one]), nothing.clone(), "did not have response messages: a"),
            (json!([user, one, user]), nothing.clone(), "did not have response messages: a"),
            (
                json!([user, calls(json!([call("a"), call("b")])), result("b")]),
                nothing.clone(),
                "response messages: a",
            ),
            (json!([user, one, result("b")]), nothing.clone(), "'tool_call_id' of 'b' not found"),
            (
                json!([user, one, result("a"), result("a")]),
                nothing.clone(),
                "'tool_call_id' of 'a' not found",
            ),
            (
                json!([user, calls(json!([call("a"), call("a")]))]),
                nothing.clone(),
                "Duplicate value for 'tool_call_id' of 'a'",
            ),
            (
                json!([user, calls(json!([]))]),
                nothing.clone(),
                "Invalid 'messages[1].tool_calls': empty array",
            ),
            (
                json!([user, {"role": "assistant", "content": null}]),
                nothing.clone(),
                "expected a string, got null",
            ),
            (
                json!([user, one, {"role": "tool", "content": "1"}]),
                nothing.clone(),
                "must have a 'tool_call_id'",
            ),
            (
                json!([user, one, {"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]}]),
                nothing.clone(),
                "'image_url' is only allowed",
            ),
            (
                json!([
                    user,
                    calls(
                        json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}])
                    )
                ]),
                nothing.clone(),
                "function.arguments': expected a string",
            ),
            (json!([user, {"role": "model", "content": "x"}]), nothing, "Supported values are: 'system'"),
            (json!([user]), json!({"tools": []}), "Invalid 'tools': empty array"),
            (json!([user]), json!({"tool_choice": "auto"}), "'tool_choice' is only allowed when 'tools'"),
            (json!([user]), tool(json!({"name": "a.b"})), "does not match pattern"),
            (
                json!([user]),
                tool(json!({"name": "f", "parameters": {"type": "string"}})),
                "must be a JSON Schema of 'type: \"object\"'",
            ),
        ],
    );
}

#[test]
fn responses() {
    let user = json!({"role": "user", "content": "x"});
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "1"});
    let nothing = json!({});
    refused(
        Way::Responses,
        &[
            (
                json!([user, output("a")]),
                nothing.clone(),
                "No tool call found for function call output with call_id a.",
            ),
            (json!([user, call("a")]), nothing.clone(), "No tool output found for function call a."),
            (json!([user, call("a"), output("a"), output("a")]), nothing.clone(), "No tool call found"),
            (
                json!([user, call("a"), output("a"), call("a")]),
                nothing.clone(),
                "Duplicate item found with id a",
            ),
            (
                json!([user, {"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}]),
                nothing.clone(),
                "arguments': expected a string",
            ),
            (
                json!([user, call("a"), {"type": "function_call_output", "call_id": "a", "output": {"x": 1}}]),
                nothing.clone(),
                "expected one of a string or array",
            ),
            (
                json!([user, {"role": "model", "content": "x"}]),
                nothing.clone(),
                "'assistant', 'system', 'developer', and 'user'",
            ),
            (json!([user, {"type": "tool_use"}]), nothing, "Invalid value: 'tool_use'"),
            (
                json!([user]),
                json!({"previous_response_id": "resp_1"}),
                "Previous response with id 'resp_1' not found.",
            ),
            (
                json!([user]),
                json!({"tools": [{"type": "function"}]}),
                "Missing required parameter: 'tools[0].name'",
            ),
            (
                json!([user]),
                json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "g"}}),
                "Tool choice 'g' not found",
            ),
        ],
    );
}

#[test]
fn messages() {
    let user = json!({"role": "user", "content": "x"});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "1"});
    let says = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let gives = |blocks: Value| json!({"role": "user", "content": blocks});
    let (one, text) = (says(json!([call("a")])), json!({"type": "text", "text": "also"}));
    let nothing = json!({});
    let without = "`tool_use` ids were found without `tool_result` blocks immediately after: a";
    refused(
        Way::Messages,
        &[
            (json!([one, user]), nothing.clone(), "first message must use the \"user\" role"),
            (json!([user, one]), nothing.clone(), without),
            (json!([user, one, user]), nothing.clone(), without),
            (json!([user, one, gives(json!([text, result("a")]))]), nothing.clone(), without),
            (json!([user, one, says(json!([text]))]), nothing.clone(), without),
            (
                json!([user, gives(json!([result("a")]))]),
                nothing.clone(),
                "messages.1.content.0: unexpected `tool_use_id`",
            ),
            (
                json!([user, one, gives(json!([result("a"), result("b")]))]),
                nothing.clone(),
                "messages.2.content.1: unexpected",
            ),
            (
                json!([user, one, gives(json!([result("a"), text, result("b")]))]),
                nothing.clone(),
                "messages.2.content.2: unexpected",
            ),
            (
                json!([user, one, gives(json!([result("a"), result("a")]))]),
                nothing.clone(),
                "must have a single result",
            ),
            (
                json!([user, says(json!([call("a"), call("a")]))]),
                nothing.clone(),
                "`tool_use` ids must be unique",
            ),
            (
                json!([user, one, gives(json!([result("a")])), one]),
                nothing.clone(),
                "messages.3.content.0: `tool_use` ids must be unique",
            ),
            (json!([user, says(json!([call("a b")]))]), nothing.clone(), "should match pattern"),
            (
                json!([user, says(json!([{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]))]),
                nothing.clone(),
                "valid dictionary",
            ),
            (json!([user, says(json!([])), user]), nothing.clone(), "must have non-empty content"),
            (
                json!([user, says(json!([{"type": "text", "text": ""}]))]),
                nothing.clone(),
                "text content blocks must be non-empty",
            ),
            (
                json!([
                    user,
                    one,
                    gives(json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true}]))
                ]),
                nothing.clone(),
                "content cannot be empty if `is_error` is true",
            ),
            (
                json!([user, says(json!([{"type": "thinking", "thinking": "x"}]))]),
                nothing.clone(),
                "signature: Field required",
            ),
            (json!([{"role": "tool", "content": "x"}]), nothing, "Unexpected role \"tool\""),
            (json!([user]), json!({"tools": [{"name": "f"}]}), "tools.0.custom.input_schema: Field required"),
            (
                json!([user]),
                json!({"tools": [{"name": "f", "input_schema": {}}]}),
                "input_schema.type: Field required",
            ),
            (
                json!([user]),
                json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}, {"name": "f", "input_schema": {"type": "object"}}]}),
                "Tool names must be unique",
            ),
        ],
    );
}

#[test]
fn google() {
    let user = json!({"role": "user", "parts": [{"text": "x"}]});
    let calls = |names: &[&str]| {
        let parts: Vec<Value> =
            names.iter().map(|name| json!({"functionCall": {"name": name, "args": {}}})).collect();
        json!({"role": "model", "parts": parts})
    };
    let results = |names: &[&str]| {
        let parts: Vec<Value> = names
            .iter()
            .map(|name| json!({"functionResponse": {"name": name, "response": {"result": 1}}}))
            .collect();
        json!({"role": "user", "parts": parts})
    };
    let nothing = json!({});
    let unequal = "the number of function response parts is equal";
    refused(
        Way::Google,
        &[
            (json!([user, results(&["f"])]), nothing.clone(), "comes immediately after a function call turn"),
            (json!([user, calls(&["f"])]), nothing.clone(), unequal),
            (json!([user, calls(&["f"]), user]), nothing.clone(), unequal),
            (json!([user, calls(&["f", "g"]), results(&["f"])]), nothing.clone(), unequal),
            (json!([user, calls(&["f"]), results(&["g"])]), nothing.clone(), "no call of `g` is left"),
            (
                json!([user, {"role": "model", "parts": [{"text": "x"}]}, calls(&["f"])]),
                nothing.clone(),
                "immediately after a user turn",
            ),
            (
                json!([user, calls(&["f"]), {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "1"}}]}]),
                nothing.clone(),
                "(type.googleapis.com/google.protobuf.Struct), \"1\"",
            ),
            (
                json!([user, {"role": "model", "parts": [{"functionCall": {"args": {}}}]}]),
                nothing.clone(),
                "Name cannot be empty",
            ),
            (json!([{"role": "user", "parts": []}]), nothing.clone(), "must not be empty"),
            (json!([{"role": "assistant", "parts": [{"text": "x"}]}]), nothing, "Please use a valid role"),
            (
                json!([user]),
                json!({"tools": [{"functionDeclarations": [{"name": "1f"}]}]}),
                "Invalid function name",
            ),
            (
                json!([user]),
                json!({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]}),
                "Duplicate function declaration found: f",
            ),
            (json!([user]), json!({"tools": [{"web_search": {}}]}), "Unknown name \"web_search\""),
        ],
    );
}
