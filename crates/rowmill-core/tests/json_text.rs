//! JSON text is reformatted as Python's `json.dumps` would write it, with the same meaning.

use proptest::prelude::*;
use rowmill_core::json_text::{
    decode_string, write_compact, write_indented, write_spaced, write_string, write_string_bytes,
};
use serde_json::Value;

fn compact(json: &str) -> String {
    let mut out = String::new();
    write_compact(json, &mut out);
    out
}

fn spaced(json: &str) -> String {
    let mut out = String::new();
    write_spaced(json, &mut out);
    out
}

fn indented(json: &str) -> String {
    let mut out = String::new();
    write_indented(json, &mut out, 2);
    out
}

#[test]
fn one_line_layouts_follow_python() {
    for (json, compact_text, spaced_text) in [
        ("null", "null", "null"),
        (" 1 ", "1", "1"),
        ("[ ]", "[]", "[]"),
        ("{ \n }", "{}", "{}"),
        (r#"[[],{},[{}]]"#, r#"[[],{},[{}]]"#, r#"[[], {}, [{}]]"#),
        (r#"{"a":1,"b":[true,false]}"#, r#"{"a":1,"b":[true,false]}"#, r#"{"a": 1, "b": [true, false]}"#),
        ("{\t\"a\" :\r\n1 }", r#"{"a":1}"#, r#"{"a": 1}"#),
        (r#"{"a: , [b":"x , y : {z}"}"#, r#"{"a: , [b":"x , y : {z}"}"#, r#"{"a: , [b": "x , y : {z}"}"#),
    ] {
        assert_eq!(compact(json), compact_text);
        assert_eq!(spaced(json), spaced_text);
    }
}

#[test]
fn indented_layout_follows_python() {
    for (json, expected) in [
        ("3", "3"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("[1]", "[\n  1\n]"),
        (
            r#"{"a":1,"b":[],"c":{"d":[1,{"e":{}}]}}"#,
            "{\n  \"a\": 1,\n  \"b\": [],\n  \"c\": {\n    \"d\": [\n      1,\n      {\n        \"e\": {}\n      }\n    ]\n  }\n}",
        ),
    ] {
        assert_eq!(indented(json), expected);
    }
}

#[test]
fn deep_levels_are_indented_by_all_their_spaces() {
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let line = indented(&deep).lines().nth(40).unwrap().to_owned();
    assert_eq!(line, format!("{}1", " ".repeat(80)));
}

#[test]
fn numbers_keep_their_text() {
    for number in ["1.50", "1E+05", "-0", "-0.0", "123456789012345678901234567890", "0.1e-7"] {
        assert_eq!(compact(number), number);
        assert_eq!(spaced(&format!("[{number},{number}]")), format!("[{number}, {number}]"));
    }
}

#[test]
fn only_needed_escapes_are_written() {
    for (json, expected) in [
        (r#""caf\u00e9""#, "\"café\""),
        (r#""\ud83d\ude00!""#, "\"😀!\""),
        (r#""\/""#, "\"/\""),
        (r#""\u0041\u0022\u005c""#, r#""A\"\\""#),
        (r#""\b\f\n\r\t\"\\""#, r#""\b\f\n\r\t\"\\""#),
        (r#""\u0008\u000C\u000a\u000D\u0009""#, r#""\b\f\n\r\t""#),
        (r#""\u0000\u001F\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
        (r#""\u2028""#, "\"\u{2028}\""),
        (r#""\uD800""#, r#""\ud800""#),
        (r#""\uDC00\uD800x""#, r#""\udc00\ud800x""#),
        (r#""\ud800\ud83d\ude00""#, "\"\\ud800😀\""),
        (r#""\\u00e9""#, r#""\\u00e9""#),
        (r#"{"\u006bey\\":"\\"}"#, r#"{"key\\":"\\"}"#),
    ] {
        assert_eq!(compact(json), expected, "{json}");
    }
}

#[test]
fn what_must_be_escaped_is_found_at_every_place_of_texts_of_every_length() {
    for length in 0..80 {
        for place in 0..=length {
            for special in ["", "\"", "\\", "\u{1f}", "\0", "\n", "é", "\u{7f}"] {
                let text = format!("{}{special}{}", "~".repeat(place), " ".repeat(length - place));
                let expected = serde_json::to_string(&text).unwrap();
                let (mut written, mut bytes) = (String::new(), Vec::new());
                write_string(&text, &mut written);
                write_string_bytes(text.as_bytes(), &mut bytes);
                assert_eq!(written, expected);
                assert_eq!(bytes, expected.as_bytes());
            }
        }
    }
}

#[test]
fn strings_are_decoded_and_other_values_are_not_strings() {
    for (json, expected) in [
        (r#""plain""#, Some("plain")),
        (r#""""#, Some("")),
        (r#""a\nb\u00e9\ud83d\ude00""#, Some("a\nbé😀")),
        (r#""\ud800""#, Some("\u{fffd}")),
        ("12", None),
        ("null", None),
        ("[\"a\"]", None),
    ] {
        assert_eq!(decode_string(json).as_deref(), expected, "{json}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\\x00-\\x7f]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// The same JSON with every character above ASCII as `\u` escapes.
fn to_ascii(json: &str) -> String {
    let mut out = String::new();
    for letter in json.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        }
    }
    out
}

proptest! {
    #[test]
    fn every_layout_means_the_same_as_its_source(value in any_json()) {
        let source = serde_json::to_string(&value).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for written in [compact(&pretty), spaced(&source), indented(&source)] {
            prop_assert_eq!(&serde_json::from_str::<Value>(&written).unwrap(), &value);
        }
        prop_assert_eq!(compact(&pretty), source.clone());
        prop_assert_eq!(compact(&to_ascii(&source)), source.clone());
        prop_assert_eq!(indented(&source), pretty);
        prop_assert_eq!(indented(&spaced(&source)), indented(&source));
        let mut bytes = Vec::new();
        write_spaced(&source, &mut bytes);
        prop_assert_eq!(bytes, spaced(&source).into_bytes());
    }

    #[test]
    fn a_written_string_is_read_back(text in any::<String>()) {
        let mut json = String::new();
        write_string(&text, &mut json);
        prop_assert_eq!(&serde_json::from_str::<String>(&json).unwrap(), &text);
        prop_assert_eq!(decode_string(&json).unwrap(), text);
    }

    #[test]
    fn text_that_is_no_json_does_not_panic(text in any::<String>(), soup in "[\\\\\"u0d8{}\\[\\],: é]{0,30}") {
        for text in [text, soup] {
            compact(&text);
            spaced(&text);
            indented(&text);
            drop(decode_string(&text));
        }
    }
}
