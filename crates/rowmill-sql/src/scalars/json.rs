//! Functions of JSON.

use super::catalog::{BoundFunction, FunctionCall};
use super::texts::{count_result, text_argument};
use crate::expression::coerce::fold_constant;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
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
fn as_json(typed: TypedExpression, place: QueryPosition) -> BindResult<TypedExpression> {
    if matches!(typed.kind, SqlType::Json | SqlType::Varchar | SqlType::Null) {
        return Ok(typed);
    }
    if !typed.kind.is_nested() {
        return Err(QueryRefusal::new(format!("{} has no parts", typed.kind), place)
            .hint("`->` and `->>` extract parts of JSON, lists and objects"));
    }
    written(typed, place)
}

fn written(typed: TypedExpression, place: QueryPosition) -> BindResult<TypedExpression> {
    let kind = typed.kind.clone();
    if !is_writable(&kind) {
        return Err(not_writable(&kind, place));
    }
    let made = move |arguments: EvaluatedArguments<'_, '_>| {
        let text = arguments.first().and_then(|datum| to_json(datum, &kind));
        text.map(Datum::Text).ok_or_else(|| "the value cannot be written as JSON".to_owned())
    };
    fold_constant(TypedExpression::call(made, vec![typed], SqlType::Json, place))
}

fn made_json(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [value] = call.exact_arguments()?;
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

fn not_writable(kind: &SqlType, place: QueryPosition) -> QueryRefusal {
    QueryRefusal::new(format!("{kind} cannot be written as JSON"), place)
        .hint("extract the fields that can: `x.name`, or `x ->> '$.name'`")
}

/// `json -> path` returns JSON, `json ->> path` returns text.
pub(crate) fn bind_json_path(
    found: TypedExpression,
    path: &TypedExpression,
    wanted: SqlType,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let wrong =
        |message: &str| QueryRefusal::new(message, path.place).hint("write it as `'$.name'` or `'$[0]'`");
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
        let taken = move |arguments: EvaluatedArguments<'_, '_>| {
            let part = arguments.first().and_then(|datum| path.find_in(datum, &kind));
            Ok(part.and_then(|part| given(&part)).unwrap_or(Datum::Null))
        };
        return fold_constant(TypedExpression::call(taken, vec![found], wanted, place));
    }
    let taken = move |arguments: EvaluatedArguments<'_, '_>| {
        let json = text_argument(arguments, 0);
        let Some(part) = path.find(json) else {
            return if normalized(json).is_some() { Ok(Datum::Null) } else { Err(not_json(json)) };
        };
        given(part).ok_or_else(|| not_json(json))
    };
    fold_constant(TypedExpression::call(taken, vec![as_json(found, place)?], wanted, place))
}

fn not_json(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("'{short}' is not JSON")
}

fn extract(call: &FunctionCall, wanted: SqlType) -> BindResult<TypedExpression> {
    let [found, path] = call.exact_arguments()?;
    bind_json_path(found, &path, wanted, call.place)
}

/// The only argument of a JSON function.
fn one_json(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [found] = call.exact_arguments()?;
    as_json(found, call.place)
}

fn array_length(call: &FunctionCall) -> BindResult<TypedExpression> {
    let count = |arguments: EvaluatedArguments<'_, '_>| {
        let json = text_argument(arguments, 0).trim();
        if !json.starts_with('[') {
            return if normalized(json).is_some() { count_result(0) } else { Err(not_json(json)) };
        }
        let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| not_json(json))?;
        count_result(items.len())
    };
    Ok(TypedExpression::call(count, vec![one_json(call)?], SqlType::UBigInt, call.place))
}

fn kind_of(call: &FunctionCall) -> BindResult<TypedExpression> {
    let named = |arguments: EvaluatedArguments<'_, '_>| {
        let json =
            normalized(text_argument(arguments, 0)).ok_or_else(|| not_json(text_argument(arguments, 0)))?;
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
    Ok(TypedExpression::call(named, vec![one_json(call)?], SqlType::Varchar, call.place))
}

fn is_valid(call: &FunctionCall) -> BindResult<TypedExpression> {
    let valid = |arguments: EvaluatedArguments<'_, '_>| {
        let json = text_argument(arguments, 0);
        Ok(Datum::Boolean(normalized(json).is_some() || is_number_beyond_json(json)))
    };
    Ok(TypedExpression::call(valid, vec![one_json(call)?], SqlType::Boolean, call.place))
}

/// Numbers that are not valid JSON but that DuckDB accepts.
fn is_number_beyond_json(json: &str) -> bool {
    let word = json.trim().trim_start_matches('-');
    ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn keys(call: &FunctionCall) -> BindResult<TypedExpression> {
    let names = |arguments: EvaluatedArguments<'_, '_>| {
        let json = text_argument(arguments, 0).trim();
        let names = match serde_json::from_str::<RawFields<'_>>(json) {
            Ok(RawFields(fields)) => fields.into_iter().map(|(name, _)| Datum::Text(name)).collect(),
            Err(_) if normalized(json).is_some() => Vec::new(),
            Err(_) => return Err(not_json(json)),
        };
        Ok(Datum::List(names))
    };
    let kind = SqlType::List(Box::new(SqlType::Varchar));
    Ok(TypedExpression::call(names, vec![one_json(call)?], kind, call.place))
}
