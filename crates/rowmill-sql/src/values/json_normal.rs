//! Normalizes JSON as DuckDB does when it reads it: no blanks, no unnecessary escapes, and numbers with the
//! fewest digits that distinguish them.

use std::fmt::Write as _;

use serde_json::value::RawValue;

/// JSON text in normal form; `None` if it is invalid. Duplicate names in an object are kept.
pub(crate) fn normalized(text: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(text).ok()?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.as_bytes().first() {
        let length = match first {
            b'"' => string_length(rest)?,
            b'-' | b'0'..=b'9' => rest.find(|letter| !is_in_number(letter)).unwrap_or(rest.len()),
            _ => 1,
        };
        let (token, behind) = rest.split_at_checked(length)?;
        match first {
            b'"' if token.contains('\\') => {
                write_string(&serde_json::from_str::<String>(token).ok()?, &mut out);
            }
            b'-' | b'0'..=b'9' => write_number(token, &mut out)?,
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => out.push_str(token),
        }
        rest = behind;
    }
    Some(out)
}

/// The length of the string at the start of a text, including its quotes.
fn string_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let mut is_end = |byte: u8| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    };
    text.bytes().enumerate().skip(1).find(|(_, byte)| is_end(*byte)).map(|(at, _)| at + 1)
}

fn is_in_number(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '-' | '+' | '.' | 'e' | 'E')
}

/// Whether a JSON number has neither a fraction nor an exponent.
pub(crate) fn is_whole_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Integers keep all their digits, and so do numbers that no other type can hold.
fn write_number(text: &str, out: &mut String) -> Option<()> {
    let number: f64 = text.parse().ok()?;
    match text {
        "-0" => out.push('0'),
        text if is_whole_number(text) || number.is_infinite() => out.push_str(text),
        _ => write_real(number, out),
    }
    Some(())
}

/// Appends a floating-point number, with an exponent only if it is very large or very small.
pub(crate) fn write_real(number: f64, out: &mut String) {
    let magnitude = number.abs();
    let text = if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        number.to_string()
    } else {
        format!("{number:e}")
    };
    out.push_str(&text);
    if is_whole_number(&text) {
        out.push_str(".0");
    }
}

/// Appends a JSON string.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let written = write!(out, "\\u{:04X}", u32::from(control));
                debug_assert!(written.is_ok(), "strings take everything");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_and_the_order_of_fields_stays() {
        let text =
            " { \"b\" : [1, 2.50, true ],\t\"a\": {\"é\": \"x\\n, \\\\\"}, \"c\": null, \"b\":\r\n2 } ";
        let expected = r#"{"b":[1,2.5,true],"a":{"é":"x\n, \\"},"c":null,"b":2}"#;
        assert_eq!(normalized(text).unwrap(), expected);
        for text in ["{", "x", "", " ", "[1,]", "1 2", r#""\ud83d""#, r#"["\ud83d\u0041"]"#] {
            assert_eq!(normalized(text), None, "{text}");
        }
    }

    /// The results of DuckDB 2.0.
    #[test]
    fn numbers_and_escapes_have_the_form_that_duckdb_gives_them() {
        for (text, expected) in [
            ("1.0", "1.0"),
            ("1e2", "100.0"),
            ("1E+2", "100.0"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1.10", "1.1"),
            ("0.1000000000000000055511151231257827", "0.1"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("100000000000000000000", "100000000000000000000"),
            ("1e400", "1e400"),
            ("1e17", "100000000000000000.0"),
            ("1e20", "100000000000000000000.0"),
            ("999999999999999868928.0", "999999999999999900000.0"),
            ("1e21", "1e21"),
            ("123456789e15", "1.23456789e23"),
            ("1e-6", "0.000001"),
            ("1.5e-6", "0.0000015"),
            ("1e-7", "1e-7"),
            ("5e-324", "5e-324"),
            (r#""\u00e9\/\u0041""#, r#""é/A""#),
            (r#""\u001f\u0008\u000B\u007f\u2028""#, "\"\\u001F\\b\\u000B\u{7f}\u{2028}\""),
            (r#""\ud83d\ude00""#, "\"\u{1f600}\""),
            (r#""\u0022\u005c""#, r#""\"\\""#),
        ] {
            assert_eq!(normalized(text).as_deref(), Some(expected), "{text}");
            let within = format!("[ {text} , {{ \"a\" : {text} }} ]");
            let expected = format!("[{expected},{{\"a\":{expected}}}]");
            assert_eq!(normalized(&within), Some(expected), "{text}");
        }
    }
}
