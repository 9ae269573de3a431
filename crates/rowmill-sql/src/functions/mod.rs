//! The functions that people know from other databases and SQLite does not have.

mod aggregates;
mod collected;
mod dates;
mod lists;
mod moments;
mod numbers;
mod patterns;
mod statistics;
mod texts;

use std::borrow::Cow;

use rusqlite::functions::{Context, FunctionFlags, SqlFnOutput};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

/// The functions that are looked through for what was perhaps meant: ours, and those of
/// SQLite that are used most.
pub(crate) const NAMES: &[&str] = &[
    "abs",
    "any_value",
    "arg_max",
    "arg_min",
    "avg",
    "bool_and",
    "bool_or",
    "ceil",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "count",
    "count_if",
    "date",
    "date_diff",
    "date_part",
    "date_trunc",
    "datediff",
    "datepart",
    "datetime",
    "day",
    "dayname",
    "dayofweek",
    "dayofyear",
    "dense_rank",
    "ends_with",
    "epoch",
    "exp",
    "first",
    "first_value",
    "floor",
    "format",
    "glob",
    "greatest",
    "group_concat",
    "hex",
    "hour",
    "if",
    "ifnull",
    "iif",
    "instr",
    "isodow",
    "json",
    "json_array",
    "json_array_length",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "least",
    "left",
    "length",
    "list",
    "list_contains",
    "ln",
    "log10",
    "log2",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "max_by",
    "median",
    "min",
    "min_by",
    "minute",
    "mod",
    "month",
    "monthname",
    "nth_value",
    "ntile",
    "nullif",
    "pi",
    "power",
    "printf",
    "quantile_cont",
    "quarter",
    "random",
    "rank",
    "regexp_extract",
    "regexp_full_match",
    "regexp_matches",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row_number",
    "rpad",
    "rtrim",
    "second",
    "sign",
    "split_part",
    "sqrt",
    "starts_with",
    "stddev",
    "stddev_pop",
    "strftime",
    "string_agg",
    "string_split",
    "strpos",
    "substr",
    "substring",
    "sum",
    "time",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unicode",
    "unixepoch",
    "upper",
    "var_pop",
    "variance",
    "week",
    "year",
];

/// Makes all functions known to a connection.
pub(crate) fn register(connection: &Connection) -> Result<()> {
    texts::register(connection)?;
    patterns::register(connection)?;
    numbers::register(connection)?;
    dates::register(connection)?;
    lists::register(connection)?;
    aggregates::register(connection)?;
    statistics::register(connection)
}

/// How our functions behave: the same for the same arguments, and harmless.
fn flags() -> FunctionFlags {
    FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS
}

/// Makes one function known, by all of its names.
fn scalar<T: SqlFnOutput + 'static>(
    connection: &Connection,
    names: &[&str],
    arguments: i32,
    function: fn(&Context<'_>) -> Result<T>,
) -> Result<()> {
    names.iter().try_for_each(|name| connection.create_scalar_function(*name, arguments, flags(), function))
}

/// An argument as text; numbers are written out.
fn text<'c>(context: &'c Context<'_>, at: usize) -> Option<Cow<'c, str>> {
    match context.get_raw(at) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(format!("{number:?}").into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
    }
}

/// An argument as a whole number.
fn whole(context: &Context<'_>, at: usize) -> Option<i64> {
    match context.get_raw(at) {
        ValueRef::Integer(number) => Some(number),
        _ => number(context, at).map(|number| number as i64),
    }
}

/// An argument as a number.
fn number(context: &Context<'_>, at: usize) -> Option<f64> {
    number_of(context.get_raw(at))
}

/// A value as a number; text must be one from its beginning to its end.
fn number_of(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}
