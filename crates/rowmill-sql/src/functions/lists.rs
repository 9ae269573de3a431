//! Functions on lists, which are JSON text here.

use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use serde_json::Value as Json;

use super::{scalar, text};

/// What SQLite marks the text of JSON with, so that its own functions do not quote it again.
pub(super) const JSON_SUBTYPE: u32 = b'J' as u32;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, &["list_contains", "array_contains", "list_has"], 2, |context| {
        if context.get_raw(0) == ValueRef::Null || context.get_raw(1) == ValueRef::Null {
            return Ok(None);
        }
        let Some(Ok(Json::Array(list))) = text(context, 0).map(|text| serde_json::from_str(&text)) else {
            return Ok(None);
        };
        Ok(Some(list.iter().any(|element| same(element, context))))
    })?;
    scalar(connection, &["string_split", "str_split", "split"], 2, |context| {
        let parts = text(context, 0).zip(text(context, 1)).map(|(text, separator)| {
            let parts: Vec<Json> = if separator.is_empty() {
                text.chars().map(|character| Json::from(character.to_string())).collect()
            } else {
                text.split(&*separator).map(Json::from).collect()
            };
            Json::from(parts).to_string()
        });
        Ok((parts, Some(JSON_SUBTYPE)))
    })
}

fn same(element: &Json, context: &Context<'_>) -> bool {
    match (element, context.get_raw(1)) {
        (Json::String(left), ValueRef::Text(right)) => left.as_bytes() == right,
        (Json::Number(left), ValueRef::Integer(right)) => left.as_f64() == Some(right as f64),
        (Json::Number(left), ValueRef::Real(right)) => left.as_f64() == Some(right),
        (Json::Bool(left), ValueRef::Integer(right)) => i64::from(*left) == right,
        _ => false,
    }
}

/// A value as JSON.
pub(super) fn json_of(value: ValueRef<'_>, is_json: bool) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => Json::from(number),
        ValueRef::Real(number) => Json::from(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let parsed = if is_json { serde_json::from_str(&text).ok() } else { None };
            parsed.unwrap_or_else(|| Json::from(text))
        }
    }
}
