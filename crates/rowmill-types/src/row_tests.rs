//! Rows are parsed as by any JSON reader, and invalid ones are recognized.

use proptest::prelude::*;

use super::*;

fn message(text: &str) -> String {
    Row::parse(7, text.into()).unwrap_err().message
}

#[test]
fn a_repeated_name_keeps_the_first_place_and_the_last_value() {
    let row = Row::parse(1, r#"{"a":1,"b":2,"a":3}"#.into()).unwrap();
    assert_eq!(row.fields().collect::<Vec<_>>(), [("a", "3"), ("b", "2")]);
}

#[test]
fn json_that_is_no_object_says_what_it_is() {
    for (text, name) in [
        ("[1]", "an array"),
        ("\"x\"", "a string"),
        ("1", "a number"),
        ("null", "null"),
        ("true", "a boolean"),
    ] {
        assert_eq!(message(text), format!("Line 7: expected a JSON object, got {name}"));
    }
}

#[test]
fn broken_json_names_the_line_and_the_column() {
    assert!(message(r#"{"a": }"#).starts_with("Line 7: expected value at column 7"));
    assert!(message(r#"{"a": 1} x"#).starts_with("Line 7: trailing characters"));
    assert!(message("nope").starts_with("Line 7: expected"));
}

#[test]
fn half_a_surrogate_pair_is_refused_and_a_whole_one_is_not() {
    assert!(message(r#"{"a":"\ud800"}"#).contains("surrogate"));
    assert!(message(r#"{"a":["\uDC00"]}"#).contains("surrogate"));
    assert!(Row::parse(1, r#"{"a":"\ud83d\ude00"}"#.into()).is_ok());
    assert!(Row::parse(1, r#"{"a":"\\ud800"}"#.into()).is_ok());
}

#[test]
fn numbers_keep_their_text() {
    let row = Row::parse(1, r#"{"n":123456789012345678901234567890,"m":1.50}"#.into()).unwrap();
    assert_eq!(row.field("n"), Some("123456789012345678901234567890"));
    assert_eq!(row.field("m"), Some("1.50"));
}

#[test]
fn names_are_decoded() {
    let row = Row::parse(1, r#"{"caf\u00e9":1,"a\"b":2,"plain":3,"\ud83d\ude00":4}"#.into()).unwrap();
    assert_eq!(row.fields().collect::<Vec<_>>(), [("café", "1"), ("a\"b", "2"), ("plain", "3"), ("😀", "4")]);
    assert_eq!(row.field("a\"b"), Some("2"));
}

#[test]
fn an_escaped_name_and_a_plain_one_that_are_the_same_are_one_field() {
    let row = Row::parse(1, r#"{"a":1,"\u0061":2}"#.into()).unwrap();
    assert_eq!(row.fields().collect::<Vec<_>>(), [("a", "2")]);
}

#[test]
fn repeated_names_are_resolved_in_wide_rows_too() {
    let mut text: String = (0..40).map(|n| format!("\"c{n}\":{n},")).collect();
    text = format!("{{{text}\"c7\":\"last\"}}");
    let row = Row::parse(1, text).unwrap();
    assert_eq!(row.fields().count(), 40);
    assert_eq!(row.fields().nth(7), Some(("c7", "\"last\"")));
}

#[test]
fn deep_nesting_and_large_numbers_are_no_errors() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(500), "]".repeat(500));
    assert!(Row::parse(1, deep).is_ok());
    assert!(Row::parse(1, r#"{"a":1e999,"b":"\ud83d\ude00"}"#.into()).is_ok());
}

#[test]
fn values_are_found_between_spaces() {
    let row = Row::parse(1, " { \"a\" : [ 1 , {\"b\": \"}\"} ] ,\t\"c\":-0.5e+3 } ".into()).unwrap();
    assert_eq!(row.fields().collect::<Vec<_>>(), [("a", "[ 1 , {\"b\": \"}\"} ]"), ("c", "-0.5e+3")]);
}

/// Text that is nearly a JSON object.
fn nearly_json() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\t",
        "\"",
        "\"a\"",
        "\"b\"",
        "\"a\":",
        "\"\\n\"",
        "\\",
        "\\u00e9",
        "\\ud800",
        "\\udc00",
        "1",
        "-",
        "0",
        "01",
        "1.5",
        ".",
        "e",
        "E+3",
        "true",
        "fals",
        "false",
        "null",
        "é",
        "\u{7f}",
        "\u{1}",
        "x",
        "12345678",
        "\"long enough to be read by words\"",
    ]);
    let soup = prop::collection::vec(atom, 0..14).prop_map(|atoms| atoms.concat());
    (soup, any::<bool>())
        .prop_map(|(soup, wrap)| if wrap { format!("{{\"k\":{soup}}}") } else { format!("{{{soup}") })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_quick_scan_agrees_with_the_careful_reader(text in nearly_json()) {
        if let Some(fields) = scan_object(&text) {
            prop_assert_eq!(Ok(fields), read_carefully(&text), "{}", text);
        } else if let Ok(fields) = read_carefully(&text) {
            let escaped = fields.iter().any(|field| matches!(field.name, FieldNameSpan::Decoded(_)));
            prop_assert!(escaped || text.contains("\\ud"), "{}", text);
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        prop_assert!(Row::parse(1, text).map_or_else(|bad| bad.message.starts_with("Line 1: "), |row| row.number() == 1));
    }

    #[test]
    fn control_characters_are_refused_wherever_they_stand(before in "[ -~é😀&&[^\"\\\\]]{0,20}", control in 0u8..0x20) {
        let text = format!("{{\"a\":\"{before}{}\"}}", char::from(control));
        prop_assert!(Row::parse(1, text).is_err());
        let fine = Row::parse(1, format!("{{\"a\":\"{before}\"}}")).unwrap();
        prop_assert_eq!(fine.field("a").unwrap(), format!("\"{before}\""));
    }
}
