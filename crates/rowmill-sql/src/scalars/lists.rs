//! Functions of lists and structs.

use super::catalog::{BoundFunction, FunctionCall};
use super::text_parts::substring;
use super::texts::{count_result, text_argument};
use crate::expression::coerce::{adapt_argument, can_adapt, cast_to, common_argument_type, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::cast::{CastMode, to_text};
use crate::values::common_type::common_type;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;
use rowmill_types::nearest_name;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction {
        names: &["list_contains", "list_has", "array_contains", "array_has"],
        bind: list_contains,
    },
    BoundFunction {
        names: &["list_position", "list_indexof", "array_position", "array_indexof"],
        bind: position,
    },
    BoundFunction {
        names: &["list_value", "list_pack"],
        bind: |call| bind_list(call.arguments.clone(), call.place),
    },
    BoundFunction { names: &["list_extract", "list_element", "array_extract"], bind: extract },
    BoundFunction { names: &["struct_extract"], bind: extract_field },
    BoundFunction { names: &["array_length"], bind: count },
    BoundFunction { names: &["list_sort", "array_sort"], bind: sort },
    BoundFunction { names: &["list_concat", "list_cat", "array_concat", "array_cat"], bind: concat },
    BoundFunction { names: &["array_to_string", "list_to_string"], bind: join },
];

fn items<'a>(arguments: EvaluatedArguments<'a, '_>, at: usize) -> &'a [Datum] {
    match arguments.get(at).map(|datum| &**datum) {
        Some(Datum::List(items)) => items,
        _ => &[],
    }
}

/// The type of the elements of the first argument.
fn item_type(call: &FunctionCall) -> BindResult<SqlType> {
    match call.arguments.first().map(|argument| &argument.kind) {
        Some(SqlType::List(item)) => Ok((**item).clone()),
        _ => Err(call.wrong_types("its first argument must be a list")),
    }
}

/// A list and a value to look for, both cast to their common type.
fn list_and_value(call: &FunctionCall) -> BindResult<Vec<TypedExpression>> {
    let [list, value] = call.exact_arguments()?;
    let item = item_type(call)?;
    let met = if can_adapt(&value, &item) { Some(item) } else { common_type(&item, &value.kind) };
    let met = met.ok_or_else(|| call.wrong_types("the value must have the type of the elements"))?;
    if !met.is_ordered() {
        return Err(call.wrong_types("values of several types cannot be compared"));
    }
    let list = cast_to(list, &SqlType::List(Box::new(met.clone())), CastMode::Fail)?;
    Ok(vec![list, cast_to(value, &met, CastMode::Fail)?])
}

fn place_of(arguments: EvaluatedArguments<'_, '_>) -> Option<usize> {
    let value = arguments.get(1)?;
    items(arguments, 0).iter().position(|item| !item.is_null() && item.order(value).is_eq())
}

pub(super) fn list_contains(call: &FunctionCall) -> BindResult<TypedExpression> {
    let found = |arguments: EvaluatedArguments<'_, '_>| Ok(Datum::Boolean(place_of(arguments).is_some()));
    Ok(TypedExpression::call(found, list_and_value(call)?, SqlType::Boolean, call.place))
}

fn position(call: &FunctionCall) -> BindResult<TypedExpression> {
    let found = |arguments: EvaluatedArguments<'_, '_>| {
        let looks_for_null = arguments.get(1).is_some_and(|value| value.is_null());
        let place = if looks_for_null {
            items(arguments, 0).iter().position(Datum::is_null)
        } else {
            place_of(arguments)
        };
        place.map_or(Ok(Datum::Null), |at| count_result(at + 1))
    };
    Ok(TypedExpression::call_with_nulls(found, list_and_value(call)?, SqlType::Integer, call.place))
}

/// `[a, b]`.
pub(crate) fn bind_list(values: Vec<TypedExpression>, place: QueryPosition) -> BindResult<TypedExpression> {
    let met = common_argument_type(&values.iter().collect::<Vec<_>>(), "a list")?;
    let values: Vec<_> =
        values.into_iter().map(|value| cast_to(value, &met, CastMode::Fail)).collect::<BindResult<_>>()?;
    let list = |arguments: EvaluatedArguments<'_, '_>| {
        Ok(Datum::List(arguments.iter().map(|datum| datum.clone().into_owned()).collect()))
    };
    let kind = SqlType::List(Box::new(met));
    fold_constant(TypedExpression::call_with_nulls(list, values, kind, place))
}

fn extract(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [list, at] = call.exact_arguments()?;
    bind_element(list, at, call.place)
}

/// The index in a list or text for a position: from 1, or from the end if it is negative.
fn index(at: i128, count: usize) -> Option<usize> {
    let count = i128::try_from(count).ok()?;
    let place = if at < 0 { at + count } else { at - 1 };
    usize::try_from(place).ok().filter(|_| place < count)
}

/// `x[at]`: an element of a list, a character of a text, a field of a struct.
pub(crate) fn bind_element(
    found: TypedExpression,
    at: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    if let SqlType::Struct(_) = found.kind {
        let name = at.literal_text().map(str::to_owned);
        let wrong =
            QueryRefusal::new("a field of an object must be named by a string in the query", at.place);
        return bind_struct_field(found, &name.ok_or(wrong)?, place);
    }
    let wrong = QueryRefusal::new(
        format!("the index of an element must be a whole number, not {}", at.kind),
        at.place,
    );
    let at = adapt_argument(at, &SqlType::BigInt).ok_or(wrong)??;
    let number = |arguments: EvaluatedArguments<'_, '_>| {
        arguments.get(1).and_then(|datum| datum.as_whole()).unwrap_or(0)
    };
    match &found.kind {
        SqlType::List(item) => {
            let kind = (**item).clone();
            let chosen = move |arguments: EvaluatedArguments<'_, '_>| {
                let items = items(arguments, 0);
                let found = index(number(arguments), items.len()).and_then(|at| items.get(at));
                Ok(found.cloned().unwrap_or(Datum::Null))
            };
            fold_constant(TypedExpression::call(chosen, vec![found, at], kind, place))
        }
        SqlType::Varchar => {
            let letter = move |arguments: EvaluatedArguments<'_, '_>| {
                let text = text_argument(arguments, 0);
                let at = index(number(arguments), text.chars().count());
                let letter = at.and_then(|at| text.chars().nth(at));
                Ok(Datum::Text(letter.map(String::from).unwrap_or_default()))
            };
            fold_constant(TypedExpression::call(letter, vec![found, at], SqlType::Varchar, place))
        }
        SqlType::Json => Err(QueryRefusal::new("JSON elements cannot be accessed with brackets", place)
            .hint("write `x -> '$[0]'` or `x ->> '$[0]'`, counted from 0")),
        kind => Err(QueryRefusal::new(format!("{kind} has no elements"), place)),
    }
}

/// `x[from:to]`: a part of a list or text, both ends included.
pub(crate) fn bind_slice(
    found: TypedExpression,
    bounds: [Option<TypedExpression>; 2],
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let kind = found.kind.clone();
    if !matches!(kind, SqlType::List(_) | SqlType::Varchar) {
        return Err(QueryRefusal::new(format!("{kind} cannot be sliced with brackets"), place));
    }
    let [from, to] = bounds;
    let bound = |bound: Option<TypedExpression>, otherwise: i128| match bound {
        Some(typed) => {
            let wrong = QueryRefusal::new("the bounds of a slice must be whole numbers", typed.place);
            adapt_argument(typed, &SqlType::BigInt).ok_or(wrong)?
        }
        None => Ok(TypedExpression::constant(Datum::Whole(otherwise), SqlType::BigInt, place)),
    };
    let arguments = vec![found, bound(from, 1)?, bound(to, -1)?];
    let cut = move |arguments: EvaluatedArguments<'_, '_>| {
        let number = |at: usize| arguments.get(at).and_then(|datum| datum.as_whole()).unwrap_or(0);
        let range = |count: usize| {
            let count = i128::try_from(count).unwrap_or(i128::MAX);
            let place = |number: i128| if number < 0 { number + count + 1 } else { number };
            (place(number(1)).max(1), place(number(2)).min(count))
        };
        match arguments.first().map(|datum| &**datum) {
            Some(Datum::List(items)) => {
                let (from, to) = range(items.len());
                let (from, to) = (usize::try_from(from - 1).unwrap_or(0), usize::try_from(to).unwrap_or(0));
                Ok(Datum::List(items.get(from..to).unwrap_or_default().to_vec()))
            }
            Some(Datum::Text(text)) => {
                let (from, to) = range(text.chars().count());
                let length = i64::try_from(to - from + 1).unwrap_or(0).max(0);
                let found = if length == 0 {
                    String::new()
                } else {
                    substring(text, i64::try_from(from).unwrap_or(1), length)
                };
                Ok(Datum::Text(found))
            }
            _ => Ok(Datum::Null),
        }
    };
    fold_constant(TypedExpression::call(cut, arguments, kind, place))
}

/// `x.name`: a field of a struct.
pub(crate) fn bind_struct_field(
    found: TypedExpression,
    name: &str,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let SqlType::Struct(fields) = &found.kind else {
        let refusal =
            QueryRefusal::new(format!("cannot access `{name}`: {} has no fields", found.kind), place);
        return Err(match found.kind {
            SqlType::Json => refusal.hint(format!("write `x ->> '$.{name}'`")),
            _ => refusal,
        });
    };
    let at = fields.iter().position(|(field, _)| field.eq_ignore_ascii_case(name));
    let Some((at, (_, kind))) = at.and_then(|at| Some((at, fields.get(at)?))) else {
        let near = nearest_name(name, fields.iter().map(|(field, _)| field.as_str()));
        let hint =
            near.map_or_else(|| format!("it is {}", found.kind), |near| format!("did you mean `{near}`?"));
        return Err(QueryRefusal::new(format!("the object has no field `{name}`"), place).hint(hint));
    };
    let kind = kind.clone();
    let taken = move |arguments: EvaluatedArguments<'_, '_>| match arguments.first().map(|datum| &**datum) {
        Some(Datum::Struct(values)) => Ok(values.get(at).cloned().unwrap_or(Datum::Null)),
        _ => Ok(Datum::Null),
    };
    fold_constant(TypedExpression::call(taken, vec![found], kind, place))
}

fn extract_field(call: &FunctionCall) -> BindResult<TypedExpression> {
    let name = call.known_text(1)?.to_owned();
    let [found, _] = call.exact_arguments()?;
    bind_struct_field(found, &name, call.place)
}

fn count(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [list] = call.exact_arguments()?;
    item_type(call)?;
    Ok(TypedExpression::call(
        |arguments| count_result(items(arguments, 0).len()),
        vec![list],
        SqlType::BigInt,
        call.place,
    ))
}

fn sort(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [list] = call.exact_arguments()?;
    if !item_type(call)?.is_ordered() {
        return Err(call.wrong_types("its elements have no order"));
    }
    let kind = list.kind.clone();
    let sorted = |arguments: EvaluatedArguments<'_, '_>| {
        let mut sorted = items(arguments, 0).to_vec();
        sorted.sort_by(Datum::order);
        Ok(Datum::List(sorted))
    };
    Ok(TypedExpression::call(sorted, vec![list], kind, call.place))
}

fn concat(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [left, right] = call.exact_arguments()?;
    joined_lists(left, right, call.place)
}

/// Concatenates two lists; null counts as an empty one.
fn joined_lists(
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let met = common_type(&left.kind, &right.kind).filter(|kind| matches!(kind, SqlType::List(_)));
    let kind = met.ok_or_else(|| {
        QueryRefusal::new(format!("{} and {} cannot be joined", left.kind, right.kind), place)
    })?;
    let left = cast_to(left, &kind, CastMode::Fail)?;
    let right = cast_to(right, &kind, CastMode::Fail)?;
    let joined = |arguments: EvaluatedArguments<'_, '_>| {
        Ok(Datum::List([items(arguments, 0), items(arguments, 1)].concat()))
    };
    Ok(TypedExpression::call_with_nulls(joined, vec![left, right], kind, place))
}

fn join(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [list, separator] = call.exact_arguments()?;
    let item = item_type(call)?;
    if item.is_nested() || matches!(item, SqlType::Json) {
        return Err(call.wrong_types("its elements must be plain values"));
    }
    let separator = adapt_argument(separator, &SqlType::Varchar)
        .ok_or_else(|| call.wrong_types("the second is text"))??;
    let joined = move |arguments: EvaluatedArguments<'_, '_>| {
        let items = items(arguments, 0);
        let texts: Vec<_> = items.iter().filter_map(|datum| to_text(datum, &item)).collect();
        // Nulls are skipped, but the result for a list of only nulls is null.
        let is_null = texts.is_empty() && !items.is_empty();
        Ok(if is_null { Datum::Null } else { Datum::Text(texts.join(text_argument(arguments, 1))) })
    };
    Ok(TypedExpression::call(joined, vec![list, separator], SqlType::Varchar, call.place))
}
