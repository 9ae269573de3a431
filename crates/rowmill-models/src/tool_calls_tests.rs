use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::test_support::{tool_call, with_tools};

#[test]
fn a_tool_that_has_the_name_of_the_answer_tool_keeps_it() {
    let mut setup = with_tools("openai.m?structured=tool_use", None);
    assert_eq!(answer_tool_name(&setup.tools), "structured_output");
    setup.tools[0].name = "structured_output".to_owned();
    let terms = AnswerTerms::new(&setup, None, true);
    assert!(terms.is_answer("final_structured_output") && !terms.is_answer("structured_output"));
}

#[test]
fn a_schema_of_arguments_always_lists_its_properties() {
    for (schema, expected) in [
        (json!({}), json!({"type": "object", "properties": {}})),
        (json!(true), json!({"type": "object", "properties": {}})),
        (
            json!({"$ref": "#/$defs/A", "$defs": {}}),
            json!({"$ref": "#/$defs/A", "$defs": {}, "type": "object"}),
        ),
        (
            json!({"$schema": "x", "type": "object", "properties": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {}}}),
        ),
    ] {
        let tool = ToolSpec { name: "t".to_owned(), description: None, schema };
        assert_eq!(tool_parameters(&tool), expected);
    }
}

#[test]
fn arguments_that_are_no_object_become_an_empty_one() {
    for (arguments, expected) in
        [(" {\"a\": 1} ", "{\"a\": 1}"), ("{\"a\": 1", "{}"), ("[1]", "{}"), ("", "{}"), ("{} {}", "{}")]
    {
        assert_eq!(object_or_empty(arguments), expected);
    }
}

#[test]
fn an_id_that_was_made_up_is_known_by_its_form() {
    for (id, expected) in
        [("call_1", true), ("call_12", true), ("call_", false), ("call_a1", false), ("x", false)]
    {
        assert_eq!(is_generated_id(id), expected, "{id}");
    }
}

proptest! {
    #[test]
    fn ids_are_unique_and_those_that_were_given_once_are_kept(
        ids in prop::collection::vec(prop::sample::select(vec!["", "a", "b", "call_1", "call_2", "call_3"]), 0..8),
    ) {
        let mut calls: Vec<ToolCall> = ids.iter().map(|id| tool_call(id, "t", "{}")).collect();
        name_calls(&mut calls);
        let unique: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        prop_assert_eq!(unique.len(), ids.len());
        prop_assert!(!unique.contains(""));
        for (index, id) in ids.iter().enumerate() {
            let is_first = !id.is_empty() && !ids[..index].contains(id);
            prop_assert!(!is_first || calls[index].id == *id);
        }
    }

    #[test]
    fn compact_json_means_the_same(text in r#"[a-z" \\\n\t{}:,é]{0,20}"#, number in any::<i64>()) {
        let value = json!({"a b": [text, number, null], "": {" x ": text}});
        let spread = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(compact(&spread), value.to_string());
        prop_assert_eq!(serde_json::from_str::<Value>(&compact(&spread)).unwrap(), value);
    }
}
