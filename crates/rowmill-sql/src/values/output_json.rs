//! Writes a result value as the JSON text of a field.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::ValueRef;

use super::cast::to_text;
use super::datum::Datum;
use super::encoding::decode_value;
use super::json_normal::write_string;
use super::sql_type::SqlType;

/// Appends a value from SQLite as JSON.
pub(crate) fn write_value(value: ValueRef<'_>, kind: &SqlType, out: &mut String) {
    match (value, kind) {
        (ValueRef::Text(bytes), SqlType::Varchar) => match std::str::from_utf8(bytes) {
            Ok(text) => write_string(text, out),
            Err(_) => write_string(&String::from_utf8_lossy(bytes), out),
        },
        (ValueRef::Integer(number), kind) if kind.is_whole() => {
            // Writing into memory cannot fail.
            let written = write!(out, "{number}");
            debug_assert!(written.is_ok(), "a number is always JSON");
        }
        (value, kind) => write_datum(&decode_value(value, kind), kind, out),
    }
}

fn write_datum(datum: &Datum, kind: &SqlType, out: &mut String) {
    match (datum, kind) {
        (Datum::Null, _) => out.push_str("null"),
        (Datum::Real(number), _) if number.is_finite() => out.push_str(&format!("{number:?}")),
        // JSON has no such numbers.
        (Datum::Real(number), _) if number.is_nan() => out.push_str("\"NaN\""),
        (Datum::Real(number), _) => {
            out.push_str(if *number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
        }
        (Datum::Text(text), SqlType::Json) => out.push_str(text),
        (Datum::Boolean(_) | Datum::Whole(_) | Datum::Decimal(_), _) => {
            out.push_str(&to_text(datum, kind).unwrap_or_default());
        }
        (Datum::Bytes(bytes), _) => match std::str::from_utf8(bytes) {
            Ok(text) => write_string(text, out),
            Err(_) => write_string(&STANDARD.encode(bytes), out),
        },
        (Datum::List(items), SqlType::List(item)) => {
            out.push('[');
            for (at, datum) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_datum(datum, item, out);
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
                write_datum(datum, field, out);
            }
            out.push('}');
        }
        _ => write_string(&to_text(datum, kind).unwrap_or_default(), out),
    }
}
