//! Messages about mistakes inside of mappings, word for word.

use crate::{assert_mistakes, mistake};

const DOCS: &str = "`docs/agent-cards.md` lists the fields of every type";

#[test]
fn request_params_are_checked() {
    let (message, hint) = mistake("a.yaml", "request_params:\n  temprature: 1");
    assert_eq!(message, "`a.yaml`, line 2: unknown field `request_params.temprature`");
    assert!(hint.starts_with("did you mean `temperature`? fields here: `max_tokens`, "), "{hint}");
    assert_mistakes(&[
        ("request_params: [a]", "`a.yaml`, line 1: `request_params` must be a mapping, not a list", DOCS),
        (
            "request_params:\n  max_tokens: true",
            "`a.yaml`, line 2: `request_params.max_tokens` must be a whole number, not true or false",
            DOCS,
        ),
        (
            "request_params: {top_p: 2}",
            "`a.yaml`, line 1: `request_params.top_p` must be 1 or less, not 2",
            DOCS,
        ),
        (
            "request_params: {temperature: -1}",
            "`a.yaml`, line 1: `request_params.temperature` must be 0 or more, not -1",
            DOCS,
        ),
        (
            "request_params: {top_p: 1, topP: 1}",
            "`a.yaml`, line 1: `request_params.topP` is the same as `top_p`",
            "keep one of them",
        ),
        (
            "model: a\nrequest_params: {model: b}",
            "`a.yaml`, line 2: `request_params.model` repeats `model`",
            "keep one of them",
        ),
        (
            "request_params: {response_format: {}}",
            "`a.yaml`, line 1: `request_params.response_format` is not read from a card: the format of \
             results is set for the run",
            "set the schema with `json_schema`",
        ),
        (
            "request_params: {tool_result_mode: pasthrough}",
            "`a.yaml`, line 1: `request_params.tool_result_mode` is unknown: `pasthrough`",
            "did you mean `passthrough`? expected one of: `postprocess`, `passthrough`, `selectable`",
        ),
        (
            "request_params: {temperature: .nan}",
            "`a.yaml`, line 1: cannot be read as YAML",
            "correct it there",
        ),
    ]);
}

#[test]
fn servers_of_a_card_are_checked() {
    let one = "use one of `target`, `command` and `url`";
    let (message, hint) = mistake("a.yaml", "mcp_connect:\n  docs:\n    targt: x");
    assert_eq!(message, "`a.yaml`, line 3: unknown field `mcp_connect.docs.targt`");
    assert!(hint.starts_with("did you mean `target`? fields here: "), "{hint}");
    assert_mistakes(&[
        (
            "mcp_connect: x",
            "`a.yaml`, line 1: `mcp_connect` must be a mapping or a list",
            "write `mcp_connect: {name: {target: …}}`",
        ),
        (
            "mcp_connect:\n  docs: {timeout: 3}",
            "`a.yaml`, line 2: `mcp_connect.docs` does not say how to reach the server",
            one,
        ),
        (
            "mcp_connect: [{target: x, url: y}]",
            "`a.yaml`, line 1: `mcp_connect[0]` gives more than one way to reach the server: `target`, `url`",
            one,
        ),
        (
            "mcp_connect: {docs: {target: x, name: y}}",
            "`a.yaml`, line 1: `mcp_connect.docs` has a different `name`: `y`",
            "omit `name`, the key is the name",
        ),
        (
            "mcp_connect: [{target: x}, {target: x y}]",
            "`a.yaml`, line 1: `mcp_connect[1]` is the second server with the name `x`",
            "give each its own `name`",
        ),
        (
            "mcp_connect: {docs: {connector_id: x}}",
            "`a.yaml`, line 1: `mcp_connect.docs.connector_id` is not supported: connectors run at the provider",
            "set the `target` of an MCP server",
        ),
        (
            "mcp_connect: {docs: {target: x, management: provider}}",
            "`a.yaml`, line 1: `mcp_connect.docs.management` `provider` is not supported: rowmill connects \
             to the servers itself",
            "omit it",
        ),
        (
            "mcp_connect: {docs: {target: x, headers: {A: 1}}}",
            "`a.yaml`, line 1: `mcp_connect.docs.headers.A` must be text, not a number",
            "put the value in quotes",
        ),
        (
            "mcp_connect: {docs: {target: x, idempotent: all}}",
            "`a.yaml`, line 1: `mcp_connect.docs.idempotent` must be `true`, `false` or a list of tools",
            DOCS,
        ),
        (
            "servers: [files]\ntools:\n  flies: [x]",
            "`a.yaml`, line 3: `tools` filters a server that the card does not use: `flies`",
            "did you mean `files`? its servers: `files`",
        ),
    ]);
}

#[test]
fn functions_are_checked() {
    let form = "write it as `file.py:function`";
    assert_mistakes(&[
        (
            "function_tools: [add]",
            "`a.yaml`, line 1: `function_tools[0]` must name a function of a Python file, not `add`",
            form,
        ),
        (
            "function_tools: tools.js:add",
            "`a.yaml`, line 1: `function_tools` must name a function of a Python file, not `tools.js:add`",
            form,
        ),
        (
            "function_tools: ['tools.py:a b']",
            "`a.yaml`, line 1: `function_tools[0]` must name a function of a Python file, not `tools.py:a b`",
            form,
        ),
        (
            "function_tools: [{entry_point: 'a.py:b'}]",
            "`a.yaml`, line 1: unknown field `function_tools[0].entry_point`",
            "did you mean `entrypoint`? fields here: `entrypoint`, `variant`, `code_arg`, `language`, `idempotent`",
        ),
        (
            "function_tools: [{idempotent: true}]",
            "`a.yaml`, line 1: `function_tools[0]` needs `entrypoint`",
            "write `entrypoint: file.py:function`",
        ),
        (
            "function_tools: [{entrypoint: 'a.py:b', variant: cod}]",
            "`a.yaml`, line 1: `function_tools[0].variant` is unknown: `cod`",
            "did you mean `code`? expected one of: `code`",
        ),
        (
            "function_tools: [{entrypoint: 'a.py:b', language: sql}]",
            "`a.yaml`, line 1: `function_tools[0]` has `code_arg` or `language` without `variant: code`",
            "add `variant: code`, or remove them",
        ),
    ]);
}

#[test]
fn hooks_policies_and_variables_are_checked() {
    assert_mistakes(&[
        (
            "tool_hooks:\n  after_tool: a.py:b",
            "`a.yaml`, line 2: unknown field `tool_hooks.after_tool`",
            "fields here: `before_llm_call`, `after_llm_call`, `before_tool_call`, `after_tool_call`, `after_turn_complete`",
        ),
        (
            "lifecycle_hooks: {on_strat: 'a.py:b'}",
            "`a.yaml`, line 1: unknown field `lifecycle_hooks.on_strat`",
            "did you mean `on_start`? fields here: `on_start`, `on_shutdown`",
        ),
        (
            "tool_policy: {x: refuse}",
            "`a.yaml`, line 1: `tool_policy.x` is unknown: `refuse`",
            "expected one of: `call`, `deny`, `passthrough`",
        ),
        (
            "tool_policy: {x: {idempotnt: true}}",
            "`a.yaml`, line 1: unknown field `tool_policy.x.idempotnt`",
            "did you mean `idempotent`? fields here: `route`, `idempotent`, `timeout`, `max_parallel`",
        ),
        (
            "variables: {n: 3}",
            "`a.yaml`, line 1: `variables.n` must be text, not a number",
            "put the value in quotes",
        ),
    ]);
}

#[test]
fn the_schema_of_arguments_is_checked() {
    assert_mistakes(&[
        ("tool_input_schema: {}", "`a.yaml`, line 1: `tool_input_schema` must have `type: object`", DOCS),
        (
            "tool_input_schema: {type: object, properties: []}",
            "`a.yaml`, line 1: `tool_input_schema` must have a mapping in `properties`",
            DOCS,
        ),
        (
            "tool_input_schema: {type: object, properties: {a: text}}",
            "`a.yaml`, line 1: `tool_input_schema` must have a mapping in `properties.a`",
            DOCS,
        ),
        (
            "tool_input_schema: {type: object, required: a}",
            "`a.yaml`, line 1: `tool_input_schema` must have a list of names in `required`",
            DOCS,
        ),
        (
            "tool_input_schema: {type: object, properties: {text: {}}, required: [txt]}",
            "`a.yaml`, line 1: `tool_input_schema` requires a property that it does not have: `txt`",
            "did you mean `text`? properties: `text`",
        ),
        (
            "tool_input_schema: {type: object, additionalProperties: 1}",
            "`a.yaml`, line 1: `tool_input_schema` must have `true`, `false` or a mapping in `additionalProperties`",
            DOCS,
        ),
    ]);
}
