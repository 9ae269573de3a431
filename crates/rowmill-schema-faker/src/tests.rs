//! Values generated from schemas are valid, whatever the schema and the seed.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::generation_budget::{self, GenerationBudget, GenerationLimitExceeded};
use crate::value::{SeededRandom, ValueGenerator, simulated_sentence, simulated_value};

/// Satisfiable schemas, built the way people write them.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"const": {"fixed": [1, null]}})),
        prop::collection::vec(prop_oneof![Just(json!("a")), Just(json!(2)), Just(json!(null))], 1..4)
            .prop_map(|choices| json!({"enum": choices})),
        (0u64..9, 0u64..9).prop_map(|(least, more)| json!({
            "type": "string", "minLength": least, "maxLength": least + more
        })),
        prop::sample::select(vec!["date", "date-time", "email", "uri", "uuid", "ipv4"])
            .prop_map(|name| json!({"type": "string", "format": name})),
        prop::sample::select(vec![r"^[A-Z]{2}-\d{4}$", r"^(yes|no)$", r"^\+?[0-9 ]{7,12}$", r"^[\w.-]+@x\.org$"])
            .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        (-50i64..50, 1i64..200).prop_map(|(low, width)| json!({
            "type": "integer", "minimum": low, "maximum": low + width
        })),
        (-5i64..5, 2i64..9).prop_map(|(low, width)| json!({
            "type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": low + width
        })),
        prop::sample::select(vec![json!(3), json!(0.1), json!(0.25), json!(10)])
            .prop_map(|step| json!({"type": "number", "minimum": -7, "multipleOf": step})),
        (-5i32..5).prop_map(|low| json!({
            "type": "number", "exclusiveMinimum": f64::from(low) / 100.0, "maximum": f64::from(low + 1) / 100.0
        })),
        (-900i64..900).prop_map(|high| json!({"type": "number", "maximum": high})),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let properties = prop::collection::vec((inner.clone(), any::<bool>()), 0..5);
        prop_oneof![
            (properties.clone(), any::<bool>()).prop_map(|(parts, closed)| object_schema(&parts, closed)),
            (inner.clone(), 0u64..3, 0u64..3).prop_map(|(item, least, more)| json!({
                "type": "array", "items": item, "minItems": least, "maxItems": least + more
            })),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|prefix| json!({
                "type": "array", "prefixItems": prefix, "items": false
            })),
            (0u64..6).prop_map(|least| json!({
                "type": "array", "items": {"type": "string"}, "minItems": least, "uniqueItems": true
            })),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|branches| json!({"anyOf": branches})),
            inner.clone().prop_map(|schema| json!({"oneOf": [{"type": "array", "items": schema}, {"type": "null"}]})),
            (properties.clone(), properties, any::<bool>()).prop_map(|(left, right, closed)| json!({"allOf": [
                object_schema(&left, closed), {"type": "object", "properties": {"right": object_schema(&right, true)}}
            ]})),
            inner.prop_map(|schema| json!({"type": "object", "additionalProperties": schema, "minProperties": 1})),
        ]
    })
}

fn object_schema(parts: &[(Value, bool)], closed: bool) -> Value {
    let name = |at: usize| format!("field_{at}");
    let properties: Map<String, Value> =
        parts.iter().enumerate().map(|(at, (schema, _))| (name(at), schema.clone())).collect();
    let required: Vec<String> =
        parts.iter().enumerate().filter(|(_, part)| part.1).map(|(at, _)| name(at)).collect();
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    if closed {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

fn assert_valid(schema: &Value, seed: u64) {
    let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    let value = simulated_value(schema, seed).unwrap();
    if let Err(error) = validator.validate(&value) {
        panic!("{value} does not fit {schema}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn every_value_fits_its_schema(schema in schemas(), seed in any::<u64>()) {
        assert_valid(&schema, seed);
    }

    #[test]
    fn equal_seeds_give_equal_values(schema in schemas(), seed in any::<u64>()) {
        prop_assert_eq!(simulated_value(&schema, seed), simulated_value(&schema, seed));
    }
}

#[test]
fn schemas_that_refer_to_themselves_come_to_an_end() {
    let node = |defs: &str| {
        json!({
            defs: {"node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": format!("#/{defs}/node")}},
                    "next": {"anyOf": [{"$ref": format!("#/{defs}/node")}, {"type": "null"}]},
                    "other": {"anyOf": [{"$ref": format!("#/{defs}/node")}, {"type": "null"}]}
                },
                "required": ["name", "children", "next", "other"],
                "additionalProperties": false
            }},
            "$ref": format!("#/{defs}/node")
        })
    };
    for seed in 0..100 {
        assert_valid(&node("$defs"), seed);
        assert_valid(
            &json!({"definitions": node("definitions")["definitions"], "allOf": [{"$ref": "#/definitions/node"}]}),
            seed,
        );
        assert_valid(&json!({"type": "object", "properties": {"again": {"$ref": "#"}}}), seed);
    }
}

#[test]
fn hand_written_schemas_are_met_for_many_seeds() {
    let table = [
        json!({"type": "integer", "minimum": 1, "maximum": 5}),
        json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2}),
        json!({"type": "integer", "multipleOf": 2.5, "minimum": 1}),
        json!({"type": "number", "minimum": 0, "maximum": 1}),
        json!({"minimum": 3, "maximum": 3}),
        json!({"type": "array", "items": {"type": "boolean"}, "uniqueItems": true, "minItems": 2, "maxItems": 2}),
        json!({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true}),
        json!({"type": "array", "contains": {"const": 5}, "minContains": 2}),
        json!({"type": ["integer", "null"], "enum": ["a", 3, null]}),
        json!({"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "integer"}}),
        json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
                         {"type": "object", "properties": {"kind": {"const": "b"}, "n": {"type": "integer"}}, "required": ["kind", "n"]}]}),
        json!({"type": "object", "properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}),
        json!({"allOf": [{"type": "string", "minLength": 3}, {"maxLength": 4}]}),
        json!({"allOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 4}]}),
        json!({"anyOf": [{"minLength": 2}, {"maxLength": 9}], "type": "string", "oneOf": [{"pattern": "^a+$"}, {"pattern": "^b+$"}]}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 4}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "string"}, {"type": "null"}], "additionalItems": false}),
    ];
    for schema in &table {
        for seed in 0..200 {
            assert_valid(schema, seed);
        }
    }
}

#[test]
fn a_schema_that_nothing_satisfies_still_gives_an_answer_in_time() {
    let endless = json!({"$defs": {"pair": {"type": "object", "required": ["l", "r"],
        "properties": {"l": {"$ref": "#/$defs/pair"}, "r": {"$ref": "#/$defs/pair"}}}}, "$ref": "#/$defs/pair"});
    assert_eq!(simulated_value(&endless, 1), Err(GenerationLimitExceeded::Depth));
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert!(simulated_value(&circle, 1).unwrap().is_string());
    assert!(simulated_value(&json!({"enum": []}), 1).unwrap().is_null());
}

#[test]
fn seeds_vary_the_value() {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}, "n": {"type": "integer"}}, "required": ["word", "n"]});
    let distinct: std::collections::BTreeSet<String> =
        (0..50).map(|seed| simulated_value(&schema, seed).unwrap().to_string()).collect();
    assert!(distinct.len() > 40, "only {} of 50 values differ", distinct.len());
}

#[test]
fn a_sentence_takes_up_the_prompt() {
    let sentence = simulated_sentence("Describe Copenhagen", 1);
    assert!(sentence.contains("copenhagen") || sentence.contains("describe"), "{sentence}");
    assert_ne!(simulated_sentence("Describe Copenhagen", 1), simulated_sentence("Describe Copenhagen", 2));
    assert!(simulated_sentence("", 1).starts_with("The "));
}

/// A number for a keyword: small, or far beyond what can be generated.
fn amounts() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0u64..20).prop_map(|small| json!(small)),
        prop::sample::select(vec![
            json!(70_000),
            json!(1_000_000),
            json!(4_000_000_000u64),
            json!(u64::MAX),
            json!(1e300)
        ]),
    ]
}

/// Schemas that require very large values, in every possible way, and may contradict themselves.
fn greedy_schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!(true)),
        Just(json!({"const": "x".repeat(5_000)})),
        Just(json!({"type": "null"})),
        amounts().prop_map(|amount| json!({"type": "string", "minLength": amount})),
        (amounts(), amounts())
            .prop_map(|(step, low)| json!({"type": "number", "multipleOf": step, "minimum": low})),
        (amounts(), amounts()).prop_map(|(outer, inner)| json!({
            "type": "string", "pattern": format!("^((a|){{{outer}}}b?){{{inner},}}$")
        })),
        Just(json!({"type": "string", "pattern": "(".repeat(5_000)})),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..6);
        prop_oneof![
            (inner.clone(), amounts(), any::<bool>()).prop_map(|(item, least, unique)| json!({
                "type": "array", "items": item, "minItems": least, "uniqueItems": unique
            })),
            (inner.clone(), amounts())
                .prop_map(|(item, least)| json!({"contains": item, "minContains": least})),
            (inner.clone(), amounts()).prop_map(|(value, least)| json!({
                "type": "object", "additionalProperties": value, "minProperties": least,
                "propertyNames": {"enum": ["a", "b"]}
            })),
            (inner.clone(), amounts()).prop_map(|(value, least)| json!({
                "type": "object", "properties": {"a": value}, "required": ["a"], "minProperties": least
            })),
            several.clone().prop_map(|parts| json!({"allOf": parts})),
            several.clone().prop_map(|parts| json!({"anyOf": parts})),
            several
                .clone()
                .prop_map(|parts| json!({"allOf": [{"anyOf": parts}, {"oneOf": parts}, {"anyOf": parts}]})),
            several.prop_map(|parts| json!({"type": "array", "prefixItems": parts})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_schema_takes_more_than_the_bound_on_work(schema in greedy_schemas(), seed in any::<u64>()) {
        let work = GenerationBudget::default();
        let value = ValueGenerator { root: &schema, dice: SeededRandom(seed), work: &work, nested: 0 }.make(&schema, 0);
        let (parts, text) = generation_budget::value_size(&value);
        prop_assert!(work.total() <= 8_000_000, "{} steps", work.total());
        if work.exceeded().is_none() {
            prop_assert!(parts <= 2 * generation_budget::MOST_VALUES && text as u64 <= generation_budget::MOST_TEXT, "{parts} {text}");
        }
    }
}

#[test]
fn a_schema_that_asks_for_too_much_is_reported_what_is_too_much() {
    let many = |schema: Value| json!({"type": "array", "minItems": 1_000_000, "items": schema});
    let nested = (0..10).fold(json!({"type": "null"}), |schema, _| many(schema));
    let choices: Vec<Value> = (0..40)
        .map(|at| json!({"anyOf": [{"minimum": at}, {"maximum": at}, {"multipleOf": at + 1}]}))
        .collect();
    let properties = json!({"type": "object", "minProperties": 4_000_000_000u64});
    for (schema, what) in [
        (json!({"type": "string", "minLength": 4_000_000_000u64}), GenerationLimitExceeded::Text),
        (json!({"type": "string", "minLength": 1e300}), GenerationLimitExceeded::Text),
        (json!({"type": "string", "pattern": "^a{4000000000}$"}), GenerationLimitExceeded::Text),
        (
            json!({"type": "string", "pattern": "^(((a{200}){200}){200}){200}$"}),
            GenerationLimitExceeded::Text,
        ),
        (json!({"type": "array", "minItems": 4_000_000_000u64}), GenerationLimitExceeded::Values),
        (
            json!({"type": "array", "minItems": u64::MAX, "uniqueItems": true}),
            GenerationLimitExceeded::Values,
        ),
        (properties, GenerationLimitExceeded::Values),
        (nested, GenerationLimitExceeded::Values),
        (many(json!({"type": "string"})), GenerationLimitExceeded::Values),
        (
            json!({"type": "array", "minItems": 1_000, "items": {"const": "x".repeat(10_000)}}),
            GenerationLimitExceeded::Text,
        ),
        (json!({"anyOf": [{"$ref": "#"}]}), GenerationLimitExceeded::Depth),
        (json!({"type": "number", "allOf": choices}), GenerationLimitExceeded::Combinations),
    ] {
        assert_eq!(
            simulated_value(&schema, 3),
            Err(what),
            "{}",
            schema.to_string().chars().take(80).collect::<String>()
        );
    }
}
