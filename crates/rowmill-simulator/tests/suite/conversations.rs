//! Conversations that no vendor accepts are rejected with the vendor's own message.

use crate::support::Client;
use crate::support::talk::{ANTHROPIC, Talk, Way};
use rowmill_simulator::{Simulator, SimulatorScript};
use serde_json::{Value, json};

/// A body with these messages and tools, with the vendor's field names.
fn body(way: Way, message: &Value, more: &Value) -> String {
    let mut body = match way {
        Way::Chat => json!({"model": "m", "messages": message}),
        Way::Responses => json!({"model": "m", "input": message}),
        Way::Messages => json!({"model": "m", "max_tokens": 9, "messages": message}),
        Way::Google => json!({"contents": message}),
    };
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body.to_string()
}

/// Sends each body and expects status 400 with this text in the vendor's error message.
fn refused(way: Way, table: Vec<(String, &str)>) {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let path = Talk::new(way, false, "").path();
    let headers = if way == Way::Messages { ANTHROPIC } else { "" };
    for (body, problem) in table {
        let reply = client.post(path, headers, &body);
        let answer = reply.json();
        let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        assert_eq!(reply.status, 400, "{problem}: {answer}");
        assert!(message.contains(problem), "{problem}: {message}");
    }
}

/// Expects that these messages are rejected.
fn refuses(way: Way, table: &[(Value, &str)]) {
    refused(way, table.iter().map(|(problem, message)| (body(way, problem, &json!({})), *message)).collect());
}

/// Expects that these tools are rejected beside a plain question.
fn refuses_offer(way: Way, table: &[(Value, &str)]) {
    let message = json!([{"role": "user", "content": "x", "parts": [{"text": "x"}]}]);
    refused(way, table.iter().map(|(more, problem)| (body(way, &message, more), *problem)).collect());
}

#[test]
fn chats_that_openai_does_not_take_are_refused() {
    let user = json!({"role": "user", "content": "x"});
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let one = calls(json!([call("a")]));
    refuses(
        Way::Chat,
        &[
            (json!([user, result("a")]), "must be a response to a preceeding message with 'tool_calls'"),
            (json!([user, one]), "did not have response messages: a"),
            (json!([user, one, user]), "did not have response messages: a"),
            (json!([user, calls(json!([call("a"), call("b")])), result("b")]), "response messages: a"),
            (json!([user, one, result("b")]), "'tool_call_id' of 'b' not found"),
            (json!([user, one, result("a"), result("a")]), "'tool_call_id' of 'a' not found"),
            (
                json!([user, calls(json!([call("a"), call("a")]))]),
                "Duplicate value for 'tool_call_id' of 'a'",
            ),
            (json!([user, calls(json!([]))]), "Invalid 'messages[1].tool_calls': empty array"),
            (json!([user, {"role": "assistant", "content": null}]), "expected a string, got null"),
            (json!([user, one, {"role": "tool", "content": "1"}]), "must have a 'tool_call_id'"),
            (
                json!([user, one, {"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]}]),
                "'image_url' is only allowed",
            ),
            (
                json!([
                    user,
                    calls(
                        json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}])
                    )
                ]),
                "function.arguments': expected a string",
            ),
            (json!([user, {"role": "model", "content": "x"}]), "Supported values are: 'system'"),
        ],
    );
}

#[test]
fn items_that_do_not_belong_together_are_refused() {
    let user = json!({"role": "user", "content": "x"});
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "1"});
    refuses(
        Way::Responses,
        &[
            (json!([user, output("a")]), "No tool call found for function call output with call_id a."),
            (json!([user, call("a")]), "No tool output found for function call a."),
            (json!([user, call("a"), output("a"), output("a")]), "No tool call found"),
            (json!([user, call("a"), output("a"), call("a")]), "Duplicate item found with id a"),
            (
                json!([user, {"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}]),
                "arguments': expected a string",
            ),
            (
                json!([user, call("a"), {"type": "function_call_output", "call_id": "a", "output": {"x": 1}}]),
                "expected one of a string or array",
            ),
            (
                json!([user, {"role": "model", "content": "x"}]),
                "'assistant', 'system', 'developer', and 'user'",
            ),
            (json!([user, {"type": "tool_use"}]), "Invalid value: 'tool_use'"),
        ],
    );
}

#[test]
fn messages_that_anthropic_does_not_take_are_refused() {
    let user = json!({"role": "user", "content": "x"});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "1"});
    let says = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let gives = |blocks: Value| json!({"role": "user", "content": blocks});
    let (one, text) = (says(json!([call("a")])), json!({"type": "text", "text": "also"}));
    let without = "`tool_use` ids were found without `tool_result` blocks immediately after: a";
    refuses(
        Way::Messages,
        &[
            (json!([one, user]), "first message must use the \"user\" role"),
            (json!([user, one]), without),
            (json!([user, one, user]), without),
            (json!([user, one, gives(json!([text, result("a")]))]), without),
            (json!([user, one, says(json!([text]))]), without),
            (json!([user, gives(json!([result("a")]))]), "messages.1.content.0: unexpected `tool_use_id`"),
            (
                json!([user, one, gives(json!([result("a"), result("b")]))]),
                "messages.2.content.1: unexpected",
            ),
            (
                json!([user, one, gives(json!([result("a"), text, result("b")]))]),
                "messages.2.content.2: unexpected",
            ),
            (json!([user, one, gives(json!([result("a"), result("a")]))]), "must have a single result"),
            (json!([user, says(json!([call("a"), call("a")]))]), "`tool_use` ids must be unique"),
            (
                json!([user, one, gives(json!([result("a")])), one]),
                "messages.3.content.0: `tool_use` ids must be unique",
            ),
            (json!([user, says(json!([call("a b")]))]), "should match pattern"),
            (
                json!([user, says(json!([{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]))]),
                "valid dictionary",
            ),
            (json!([user, says(json!([])), user]), "must have non-empty content"),
            (
                json!([user, says(json!([{"type": "text", "text": ""}]))]),
                "text content blocks must be non-empty",
            ),
            (
                json!([
                    user,
                    one,
                    gives(json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true}]))
                ]),
                "content cannot be empty if `is_error` is true",
            ),
            (
                json!([user, says(json!([{"type": "thinking", "thinking": "x"}]))]),
                "signature: Field required",
            ),
            (json!([{"role": "tool", "content": "x"}]), "Unexpected role \"tool\""),
        ],
    );
}

#[test]
fn turns_that_google_does_not_take_are_refused() {
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
    let unequal = "the number of function response parts is equal";
    refuses(
        Way::Google,
        &[
            (json!([user, results(&["f"])]), "comes immediately after a function call turn"),
            (json!([user, calls(&["f"])]), unequal),
            (json!([user, calls(&["f"]), user]), unequal),
            (json!([user, calls(&["f", "g"]), results(&["f"])]), unequal),
            (json!([user, calls(&["f"]), results(&["g"])]), "no call of `g` is left"),
            (
                json!([user, {"role": "model", "parts": [{"text": "x"}]}, calls(&["f"])]),
                "immediately after a user turn",
            ),
            (
                json!([user, calls(&["f"]), {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "1"}}]}]),
                "(type.googleapis.com/google.protobuf.Struct), \"1\"",
            ),
            (
                json!([user, {"role": "model", "parts": [{"functionCall": {"args": {}}}]}]),
                "Name cannot be empty",
            ),
            (json!([{"role": "user", "parts": []}]), "must not be empty"),
            (json!([{"role": "assistant", "parts": [{"text": "x"}]}]), "Please use a valid role"),
        ],
    );
}

#[test]
fn tools_that_a_vendor_does_not_take_are_refused() {
    let tool = |function: Value| json!({"tools": [{"type": "function", "function": function}]});
    refuses_offer(
        Way::Chat,
        &[
            (json!({"tools": []}), "Invalid 'tools': empty array"),
            (json!({"tool_choice": "auto"}), "'tool_choice' is only allowed when 'tools'"),
            (tool(json!({"name": "a.b"})), "does not match pattern"),
            (
                tool(json!({"name": "f", "parameters": {"type": "string"}})),
                "must be a JSON Schema of 'type: \"object\"'",
            ),
        ],
    );
    refuses_offer(
        Way::Responses,
        &[
            (json!({"previous_response_id": "resp_1"}), "Previous response with id 'resp_1' not found."),
            (json!({"tools": [{"type": "function"}]}), "Missing required parameter: 'tools[0].name'"),
            (
                json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "g"}}),
                "Tool choice 'g' not found",
            ),
        ],
    );
    refuses_offer(
        Way::Messages,
        &[
            (json!({"tools": [{"name": "f"}]}), "tools.0.custom.input_schema: Field required"),
            (json!({"tools": [{"name": "f", "input_schema": {}}]}), "input_schema.type: Field required"),
            (
                json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}, {"name": "f", "input_schema": {"type": "object"}}]}),
                "Tool names must be unique",
            ),
        ],
    );
    refuses_offer(
        Way::Google,
        &[
            (json!({"tools": [{"functionDeclarations": [{"name": "1f"}]}]}), "Invalid function name"),
            (
                json!({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]}),
                "Duplicate function declaration found: f",
            ),
            (json!({"tools": [{"web_search": {}}]}), "Unknown name \"web_search\""),
        ],
    );
}
