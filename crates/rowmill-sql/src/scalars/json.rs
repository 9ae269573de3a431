//! Functions of JSON.

use super::catalog::{BoundFunction, FunctionCall};
use super::texts::{whole, word};
use crate::expression::coerce::folded;
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::{Arguments, Typed};
use crate::values::datum::Datum;
use crate::values::json::{RawFields, to_json};
use crate::values::json_normal::normalized;
use crate::values::json_path::JsonPath;
use crate::values::sql_type::SqlType;
use serde_json::value::RawValue;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction {
        names: &["json_extract", "json_extract_path"],
        bind: |call| extract(call, SqlType::Json),
    },
    BoundFunction {
        names: &["json_extract_string", "json_extract_path_text"],
        bind: |call| extract(call, SqlType::Varchar),
    },
    BoundFunction { names: &["json_array_length"], bind: array_length },
    BoundFunction { names: &["json_type"], bind: kind_of },
    BoundFunction { names: &["json_valid"], bind: is_valid },
    BoundFunction { names: &["json_keys"], bind: keys },
    BoundFunction { names: &["to_json"], bind: made_json },
];

/// A value as JSON text.
fn as_json(typed: Typed, place: TextPlace) -> Bound<Typed> {
    if matches!(typed.kind, SqlType::Json | SqlType::Varchar | SqlType::Null) {
        return Ok(typed);
    }
    if !typed.kind.is_nested() {
        return Err(Refusal::new(format!("{} has no parts", typed.kind), place)
            .hint("`->` and `->>` extract parts of JSON, lists and objects"));
    }
    written(typed, place)
}

fn written(typed: Typed, place: TextPlace) -> Bound<Typed> {
    let kind = typed.kind.clone();
    if !is_writable(&kind) {
        return Err(not_writable(&kind, place));
    }
    let made = move |arguments: Arguments<'_, '_>| {
        let text = arguments.first().and_then(|datum| to_json(datum, &kind));
        text.map(Datum::Text).ok_or_else(|| "the value cannot be written as JSON".to_owned())
    };
    folded(Typed::call(made, vec![typed], SqlType::Json, place))
}

fn made_json(call: &FunctionCall) -> Bound<Typed> {
    let [value] = call.exactly()?;
    written(value, call.place)
}

/// Whether DuckDB's output for a type does not depend on its settings and is implemented here.
fn is_writable(kind: &SqlType) -> bool {
    match kind {
        SqlType::Blob | SqlType::TimestampTz => false,
        SqlType::Other(name) => *name == "UUID",
        SqlType::List(item) => is_writable(item),
        SqlType::Struct(fields) => fields.iter().all(|(_, field)| is_writable(field)),
        _ => true,
    }
}

fn not_writable(kind: &SqlType, place: TextPlace) -> Refusal {
    Refusal::new(format!("{kind} cannot be written as JSON"), place)
        .hint("extract the fields that can: `x.name`, or `x ->> '$.name'`")
}

/// `json -> path` returns JSON, `json ->> path` returns text.
pub(crate) fn json_part(found: Typed, path: &Typed, wanted: SqlType, place: TextPlace) -> Bound<Typed> {
    let wrong = |message: &str| Refusal::new(message, path.place).hint("write it as `'$.name'` or `'$[0]'`");
    let path = match path.known_value() {
        Some(Datum::Text(text)) => JsonPath::parse(text).ok_or_else(|| wrong("that is not a JSON path"))?,
        Some(Datum::Whole(at)) => JsonPath::element(i64::try_from(*at).unwrap_or(i64::MAX)),
        _ => return Err(wrong("a JSON path must be written in the query")),
    };
    let is_text = wanted == SqlType::Varchar;
    let given = move |part: &str| {
        if is_text && part == "null" {
            return Some(Datum::Null);
        }
        let text = match serde_json::from_str::<String>(part) {
            Ok(text) if is_text => Some(text),
            _ => normalized(part),
        };
        text.map(Datum::Text)
    };
    if found.kind.is_nested() {
        if let Some(kind) = path.kind_in(&found.kind).filter(|kind| !is_writable(kind)) {
            return Err(not_writable(kind, place));
        }
        let kind = found.kind.clone();
        let taken = move |arguments: Arguments<'_, '_>| {
            let part = arguments.first().and_then(|datum| path.find_in(datum, &kind));
            Ok(part.and_then(|part| given(&part)).unwrap_or(Datum::Null))
        };
        return folded(Typed::call(taken, vec![found], wanted, place));
    }
    let taken = move |arguments: Arguments<'_, '_>| {
        let json = word(arguments, 0);
        let Some(part) = path.find(json) else {
            return if normalized(json).is_some() { Ok(Datum::Null) } else { Err(not_json(json)) };
        };
        given(part).ok_or_else(|| not_json(json))
    };
    folded(Typed::call(taken, vec![as_json(found, place)?], wanted, place))
}

fn not_json(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("'{short}' is not JSON")
}

fn extract(call: &FunctionCall, wanted: SqlType) -> Bound<Typed> {
    let [found, path] = call.exactly()?;
    json_part(found, &path, wanted, call.place)
}

/// The only argument of a JSON function.
fn one_json(call: &FunctionCall) -> Bound<Typed> {
    let [found] = call.exactly()?;
    as_json(found, call.place)
}

fn array_length(call: &FunctionCall) -> Bound<Typed> {
    let count = |arguments: Arguments<'_, '_>| {
        let json = word(arguments, 0).trim();
        if !json.starts_with('[') {
            return if normalized(json).is_some() { whole(0) } else { Err(not_json(json)) };
        }
        let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| not_json(json))?;
        whole(items.len())
    };
    Ok(Typed::call(count, vec![one_json(call)?], SqlType::UBigInt, call.place))
}

fn kind_of(call: &FunctionCall) -> Bound<Typed> {
    let named = |arguments: Arguments<'_, '_>| {
        let json = normalized(word(arguments, 0)).ok_or_else(|| not_json(word(arguments, 0)))?;
        let is_whole = json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok();
        let name = match json.as_bytes().first() {
            Some(b'{') => "OBJECT",
            Some(b'[') => "ARRAY",
            Some(b'"') => "VARCHAR",
            Some(b't' | b'f') => "BOOLEAN",
            Some(b'n') => "NULL",
            Some(b'-') if is_whole => "BIGINT",
            _ if is_whole => "UBIGINT",
            _ => "DOUBLE",
        };
        Ok(Datum::Text(name.to_owned()))
    };
    Ok(Typed::call(named, vec![one_json(call)?], SqlType::Varchar, call.place))
}

fn is_valid(call: &FunctionCall) -> Bound<Typed> {
    let valid = |arguments: Arguments<'_, '_>| {
        let json = word(arguments, 0);
        Ok(Datum::Boolean(normalized(json).is_some() || is_number_beyond_json(json)))
    };
    Ok(Typed::call(valid, vec![one_json(call)?], SqlType::Boolean, call.place))
}

/// Numbers that are not valid JSON but that DuckDB accepts.
fn is_number_beyond_json(json: &str) -> bool {
    let word = json.trim().trim_start_matches('-');
    ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn keys(call: &FunctionCall) -> Bound<Typed> {
    let names = |arguments: Arguments<'_, '_>| {
        let json = word(arguments, 0).trim();
        let names = match serde_json::from_str::<RawFields<'_>>(json) {
            Ok(RawFields(fields)) => fields.into_iter().map(|(name, _)| Datum::Text(name)).collect(),
            Err(_) if normalized(json).is_some() => Vec::new(),
            Err(_) => return Err(not_json(json)),
        };
        Ok(Datum::List(names))
    };
    let kind = SqlType::List(Box::new(SqlType::Varchar));
    Ok(Typed::call(names, vec![one_json(call)?], kind, call.place))
}
