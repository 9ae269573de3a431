//! JSON text: written shortly, made of values, and cast to values.

use std::fmt::Write as _;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cast::{CastFailure, to_text};
use super::datum::Datum;
use super::number_text::{parse_boolean, parse_decimal, parse_real, parse_whole};
use super::sql_type::SqlType;

/// The fields of a JSON object with the text of their values, in order.
pub(crate) struct RawFields<'j>(pub(crate) Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for RawFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields<'de>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// JSON text without blanks; `None` where it is no JSON.
pub(crate) fn minified(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    write_minified(text.trim(), &mut out)?;
    Some(out)
}

fn write_minified(text: &str, out: &mut String) -> Option<()> {
    match text.as_bytes().first()? {
        b'{' => {
            let RawFields(fields) = serde_json::from_str(text).ok()?;
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write_minified(value.get(), out)?;
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (at, value) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_minified(value.get(), out)?;
            }
            out.push(']');
        }
        b'"' => write_string(&serde_json::from_str::<String>(text).ok()?, out),
        b't' | b'f' | b'n' => {
            serde_json::from_str::<Option<bool>>(text).ok()?;
            out.push_str(text);
        }
        _ => {
            let number: f64 = serde_json::from_str(text).ok()?;
            if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && text.len() < 20 {
                out.push_str(text);
            } else {
                write_real(number, out);
            }
        }
    }
    Some(())
}

fn write_real(number: f64, out: &mut String) {
    let plain = number.to_string();
    let is_plain = plain.len() < 24;
    let text = if is_plain { plain } else { format!("{number:e}") };
    out.push_str(&text);
    if is_plain && !text.contains('.') {
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

/// The JSON text that DuckDB's `to_json` makes of a value.
pub(crate) fn to_json(datum: &Datum, kind: &SqlType) -> Option<String> {
    let mut out = String::new();
    write_json(datum, kind, &mut out)?;
    Some(out)
}

fn write_json(datum: &Datum, kind: &SqlType, out: &mut String) -> Option<()> {
    match (datum, kind) {
        (Datum::Null, _) => out.push_str("null"),
        (Datum::Boolean(_) | Datum::Whole(_), _) => out.push_str(&to_text(datum, kind)?),
        (Datum::Real(number), _) if number.is_finite() => write_real(*number, out),
        (Datum::Text(text), SqlType::Json) => out.push_str(&minified(text)?),
        (Datum::List(items), SqlType::List(item)) => {
            out.push('[');
            for (at, datum) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(datum, item, out)?;
            }
            out.push(']');
        }
        (Datum::Struct(values), SqlType::Struct(fields)) => {
            out.push('{');
            for (at, (datum, (name, field))) in values.iter().zip(fields).enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write_json(datum, field, out)?;
            }
            out.push('}');
        }
        // As many digits fit into a real number; of more, DuckDB writes all there are.
        (Datum::Decimal(_), SqlType::Decimal(16.., _)) => out.push_str(&to_text(datum, kind)?),
        (Datum::Decimal(_), _) => write_real(to_text(datum, kind)?.parse().ok()?, out),
        (Datum::Real(_) | Datum::Bytes(_), _) => return None,
        _ => write_string(&to_text(datum, kind)?, out),
    }
    Some(())
}

/// Casts JSON text to a value.
pub(crate) fn cast_json(text: &str, to: &SqlType) -> Result<Datum, CastFailure> {
    let text = text.trim();
    let string = || serde_json::from_str::<String>(text).ok();
    let first = text.as_bytes().first().copied().unwrap_or(b'x');
    let found = match (first, to) {
        (b'n', _) => Some(Datum::Null),
        (b'[', SqlType::List(item)) => {
            let items: Vec<&RawValue> =
                serde_json::from_str(text).map_err(|_| CastFailure::NotConvertible)?;
            let items = items.iter().map(|value| cast_json_item(value.get(), item));
            Some(Datum::List(items.collect::<Result<_, _>>()?))
        }
        (b'"', SqlType::Boolean) => string().and_then(|text| parse_boolean(&text)).map(Datum::Boolean),
        (b'"', SqlType::Double) => string().and_then(|text| parse_real(&text)).map(Datum::Real),
        (b'"', SqlType::Decimal(digits, scale)) => {
            string().and_then(|text| parse_decimal(&text, *digits, *scale)).map(Datum::Decimal)
        }
        (b'"', SqlType::Date | SqlType::Time | SqlType::Timestamp) => {
            let text = string().ok_or(CastFailure::NotConvertible)?;
            return super::cast::cast(Datum::Text(text), &SqlType::Varchar, to);
        }
        (b'"', to) if to.is_whole() => string().and_then(|text| parse_whole(&text, to)).map(Datum::Whole),
        (b't' | b'f', SqlType::Boolean) => parse_boolean(text).map(Datum::Boolean),
        (b't' | b'f', to) if to.is_number() => {
            return super::cast::cast(Datum::Boolean(first == b't'), &SqlType::Boolean, to);
        }
        (b'-' | b'0'..=b'9', SqlType::Double) => text.parse().ok().map(Datum::Real),
        (b'-' | b'0'..=b'9', to) if to.is_number() || *to == SqlType::Boolean => {
            return cast_json_number(text, to);
        }
        _ => None,
    };
    found.ok_or(CastFailure::NotConvertible)
}

/// Casts an element of a list; text loses its quotes there.
fn cast_json_item(text: &str, to: &SqlType) -> Result<Datum, CastFailure> {
    match (to, text.as_bytes().first()) {
        (SqlType::Varchar, Some(b'n')) => Ok(Datum::Null),
        (SqlType::Varchar, _) => match serde_json::from_str(text) {
            Ok(string) => Ok(Datum::Text(string)),
            Err(_) => minified(text).map(Datum::Text).ok_or(CastFailure::NotConvertible),
        },
        (SqlType::Json, _) => minified(text).map(Datum::Text).ok_or(CastFailure::NotConvertible),
        _ => cast_json(text, to),
    }
}

/// Casts a JSON number: a whole one as it is, any other by way of a number with a binary fraction.
fn cast_json_number(text: &str, to: &SqlType) -> Result<Datum, CastFailure> {
    let (datum, from) = match text.parse::<i64>() {
        Ok(whole) => (Datum::Whole(whole.into()), SqlType::BigInt),
        Err(_) => (Datum::Real(text.parse().map_err(|_| CastFailure::NotConvertible)?), SqlType::Double),
    };
    super::cast::cast(datum, &from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_and_the_order_of_fields_stays() {
        let text = r#" { "b" : [1, 2.50, true ], "a": {"é": "x\n"}, "c": null } "#;
        assert_eq!(minified(text).unwrap(), r#"{"b":[1,2.5,true],"a":{"é":"x\n"},"c":null}"#);
        assert_eq!(minified("{"), None);
        assert_eq!(minified("x"), None);
    }
}
