//! Aggregates that keep one value, or a list of them.

use std::cmp::Ordering;

use rusqlite::functions::{Aggregate, Context};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::collected::List;
use super::flags;

pub(super) fn register(connection: &Connection) -> Result<()> {
    for (names, wanted) in [
        (["arg_max", "max_by", "argmax"], Ordering::Greater),
        (["arg_min", "min_by", "argmin"], Ordering::Less),
    ] {
        for name in names {
            connection.create_aggregate_function(name, 2, flags(), Extreme(wanted))?;
        }
    }
    for (name, nulls) in [("any_value", Nulls::Passed), ("first", Nulls::Kept)] {
        connection.create_aggregate_function(name, 1, flags(), First(nulls))?;
    }
    connection.create_aggregate_function("bool_and", 1, flags(), Truth { all: true })?;
    connection.create_aggregate_function("bool_or", 1, flags(), Truth { all: false })?;
    connection.create_aggregate_function("count_if", 1, flags(), CountIf)?;
    connection.create_aggregate_function("list", 1, flags(), List)
}

/// The order of SQLite: null, numbers, text, bytes.
pub(super) fn order(left: &Value, right: &Value) -> Ordering {
    let class = |value: &Value| match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    };
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Real(left), Value::Real(right)) => left.total_cmp(right),
        (Value::Integer(left), Value::Real(right)) => (*left as f64).total_cmp(right),
        (Value::Real(left), Value::Integer(right)) => left.total_cmp(&(*right as f64)),
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Blob(left), Value::Blob(right)) => left.cmp(right),
        _ => class(left).cmp(&class(right)),
    }
}

fn owned(context: &Context<'_>, at: usize) -> Value {
    Value::try_from(context.get_raw(at)).unwrap_or(Value::Null)
}

/// The first argument where the second is greatest or least.
struct Extreme(Ordering);

impl Aggregate<Option<(Value, Value)>, Value> for Extreme {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<(Value, Value)>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, best: &mut Option<(Value, Value)>) -> Result<()> {
        if context.get_raw(0) == ValueRef::Null || context.get_raw(1) == ValueRef::Null {
            return Ok(());
        }
        let key = owned(context, 1);
        if best.as_ref().is_none_or(|(_, best)| order(&key, best) == self.0) {
            *best = Some((owned(context, 0), key));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, best: Option<Option<(Value, Value)>>) -> Result<Value> {
        Ok(best.flatten().map_or(Value::Null, |(value, _)| value))
    }
}

enum Nulls {
    Kept,
    Passed,
}

/// The first value.
struct First(Nulls);

impl Aggregate<Option<Value>, Value> for First {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<Value>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, first: &mut Option<Value>) -> Result<()> {
        if first.is_none() && (matches!(self.0, Nulls::Kept) || context.get_raw(0) != ValueRef::Null) {
            *first = Some(owned(context, 0));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, first: Option<Option<Value>>) -> Result<Value> {
        Ok(first.flatten().unwrap_or(Value::Null))
    }
}

/// Whether all or any values are true; null without values.
struct Truth {
    all: bool,
}

impl Aggregate<Option<bool>, Option<bool>> for Truth {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<bool>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut Option<bool>) -> Result<()> {
        if let Some(number) = super::number(context, 0) {
            let value = number != 0.0;
            let before = sum.unwrap_or(self.all);
            *sum = Some(if self.all { before && value } else { before || value });
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<Option<bool>>) -> Result<Option<bool>> {
        Ok(sum.flatten())
    }
}

struct CountIf;

impl Aggregate<i64, i64> for CountIf {
    fn init(&self, _: &mut Context<'_>) -> Result<i64> {
        Ok(0)
    }

    fn step(&self, context: &mut Context<'_>, count: &mut i64) -> Result<()> {
        *count += i64::from(super::number(context, 0).is_some_and(|number| number != 0.0));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, count: Option<i64>) -> Result<i64> {
        Ok(count.unwrap_or(0))
    }
}
