use serde_json::{Value, json};

use super::{PreparedSchema, unwrap_value};

#[test]
fn objects_are_closed_only_where_every_property_is_required_already() {
    let closed = |schema: Value| PreparedSchema::new(&schema).strict;
    for (strict, schema) in [
        (true, json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})),
        (true, json!({"type": "object", "properties": {}, "required": []})),
        (
            true,
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}},
                "required": ["a"], "$defs": {"b": {"enum": [1]}}}),
        ),
        (false, json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        (false, json!({"type": "object"})),
        (false, json!({"type": "object", "properties": {}, "additionalProperties": true})),
        (false, json!({"type": "object", "properties": {"a": {}}, "required": ["a"]})),
        (false, json!({"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]})),
        (
            false,
            json!({"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}, "required": ["a"]}),
        ),
        (
            false,
            json!({"type": "object", "properties": {"a": {"type": "array",
                "items": {"type": "object", "properties": {"b": {"type": "string"}}}}}, "required": ["a"]}),
        ),
    ] {
        assert_eq!(closed(schema.clone()), strict, "{schema}");
    }
}

#[test]
fn closing_reaches_every_object_and_leaves_the_rest() {
    let prepared = PreparedSchema::new(&json!({
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1}},
        "required": ["list"],
        "$defs": {"item": {"type": ["object", "null"], "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    }));
    assert_eq!(
        prepared.schema,
        json!({
            "type": "object",
            "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1}},
            "required": ["list"],
            "$defs": {"item": {"type": ["object", "null"], "properties": {"n": {"type": "integer"}}, "required": ["n"],
                "additionalProperties": false}},
            "additionalProperties": false,
        })
    );
}

#[test]
fn a_schema_that_does_not_fit_strict_modes_is_sent_as_it_is() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}});
    assert_eq!(PreparedSchema::new(&schema), PreparedSchema { schema, strict: false, wrapped: false });
}

#[test]
fn a_wrapped_root_keeps_its_definitions_where_references_find_them() {
    let prepared = PreparedSchema::new(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "anyOf": [{"$ref": "#/$defs/leaf"}, {"type": "array", "items": {"$ref": "#"}}],
        "$defs": {"leaf": {"type": "string"}},
    }));
    assert!(prepared.wrapped && prepared.strict);
    assert_eq!(
        prepared.schema,
        json!({
            "type": "object",
            "properties": {"value": {"anyOf": [
                {"$ref": "#/$defs/leaf"},
                {"type": "array", "items": {"$ref": "#/properties/value"}},
            ]}},
            "required": ["value"],
            "$defs": {"leaf": {"type": "string"}},
            "additionalProperties": false,
        })
    );
}

#[test]
fn unwrapping_takes_the_value_and_leaves_other_text() {
    for (text, expected) in [
        (r#"{"value": [1, 2.50]}"#, "[1, 2.50]"),
        (r#"{"value":null}"#, "null"),
        (r#"{"value":1,"more":2}"#, r#"{"value":1,"more":2}"#),
        (r#"{"other":1}"#, r#"{"other":1}"#),
        ("[1]", "[1]"),
        (r#"{"value":"#, r#"{"value":"#),
    ] {
        assert_eq!(unwrap_value(text.to_owned()), expected);
        let fenced = format!("```json\n{text}\n```");
        let unfenced = if text == expected { &fenced } else { expected };
        assert_eq!(unwrap_value(fenced.clone()), unfenced);
    }
}
