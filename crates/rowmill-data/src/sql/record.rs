//! From the result of a query to rows.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_core::json_text::write_string;
use rowmill_sql::{Kind, Output, Query, Record};
use rowmill_types::Row;
use serde::de::IgnoredAny;

use super::decode::is_number;
use super::field_name::FieldName;

/// Writes the rows of one result.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    columns: Vec<(FieldName, Option<Kind>)>,
    uses_json: bool,
}

impl RecordWriter {
    pub(crate) fn new(query: &Query) -> Self {
        let columns =
            query.columns().iter().map(|column| (FieldName::new(&column.name), column.kind)).collect();
        Self { columns, uses_json: query.uses_json() }
    }

    /// The row that a record becomes.
    pub(crate) fn row(&self, number: u64, record: &Record<'_>) -> Row {
        let mut text = String::new();
        let mut fields = Vec::with_capacity(self.columns.len());
        for (at, (name, kind)) in self.columns.iter().enumerate() {
            name.write(&mut text);
            let start = text.len();
            self.write_value(record.value(at), *kind, &mut text);
            fields.push(name.field(start..text.len()));
        }
        text.push('}');
        Row::from_parts(number, text, fields)
    }

    fn write_value(&self, value: Output<'_>, kind: Option<Kind>, text: &mut String) {
        match (value, kind) {
            (Output::Null, _) => text.push_str("null"),
            (Output::Integer(0), Some(Kind::Boolean)) => text.push_str("false"),
            (Output::Integer(1), Some(Kind::Boolean)) => text.push_str("true"),
            (Output::Integer(number), _) => put(text, format_args!("{number}")),
            (Output::Real(number), Some(Kind::Decimal(_, scale))) => {
                let digits = usize::try_from(scale).unwrap_or(0);
                put(text, format_args!("\"{number:.digits$}\""));
            }
            (Output::Real(number), _) if number.is_finite() => put(text, format_args!("{number:?}")),
            // JSON has no numbers without end.
            (Output::Real(number), _) => {
                text.push_str(if number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
            }
            (Output::Text(found), Some(Kind::Wide | Kind::Integer | Kind::Real)) if is_number(found) => {
                text.push_str(found);
            }
            (Output::Text(found), kind) if self.may_be_json(kind) && is_json(found) => text.push_str(found),
            (Output::Text(found), _) => write_string(found, text),
            (Output::Bytes(bytes), _) => match std::str::from_utf8(bytes) {
                Ok(found) => write_string(found, text),
                Err(_) => put(text, format_args!("\"{}\"", STANDARD.encode(bytes))),
            },
        }
    }

    fn may_be_json(&self, kind: Option<Kind>) -> bool {
        match kind {
            Some(Kind::Nested | Kind::Mixed) => true,
            Some(_) => false,
            None => self.uses_json,
        }
    }
}

/// Writing into a string cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(what);
    debug_assert!(written.is_ok(), "strings take everything");
}

/// Whether text is a list or an object.
fn is_json(text: &str) -> bool {
    if !text.starts_with(['[', '{']) {
        return false;
    }
    // Half of a surrogate pair is found only by reading the strings.
    if text.contains("\\u") {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    } else {
        serde_json::from_str::<IgnoredAny>(text).is_ok()
    }
}
