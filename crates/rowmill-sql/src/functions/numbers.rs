//! Functions on numbers.

use std::cmp::Ordering;

use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::aggregates::order;
use super::{flags, number, scalar, whole};

/// The names of a function, and the function.
type Named = (&'static [&'static str], fn(f64) -> f64);

pub(super) fn register(connection: &Connection) -> Result<()> {
    let plain: [Named; 6] = [
        (&["sqrt"], f64::sqrt),
        (&["exp"], f64::exp),
        (&["ln"], f64::ln),
        (&["log10", "log"], f64::log10),
        (&["log2"], f64::log2),
        (&["cbrt"], f64::cbrt),
    ];
    for (names, function) in plain {
        for name in names {
            connection.create_scalar_function(*name, 1, flags(), move |context: &Context<'_>| {
                // What has no result among the numbers is null, as in SQLite.
                Ok(number(context, 0).map(function).filter(|result| result.is_finite()))
            })?;
        }
    }
    let rounding: [Named; 3] =
        [(&["floor"], f64::floor), (&["ceil", "ceiling"], f64::ceil), (&["trunc"], f64::trunc)];
    for (names, function) in rounding {
        for name in names {
            connection.create_scalar_function(*name, 1, flags(), move |context: &Context<'_>| {
                Ok(match context.get_raw(0) {
                    ValueRef::Integer(number) => Value::Integer(number),
                    _ => number(context, 0).map_or(Value::Null, |number| Value::Real(function(number))),
                })
            })?;
        }
    }
    scalar(connection, &["pow", "power"], 2, |context| {
        Ok(number(context, 0).zip(number(context, 1)).map(|(base, exponent)| base.powf(exponent)))
    })?;
    scalar(connection, &["mod"], 2, remainder)?;
    scalar(connection, &["pi"], 0, |_| Ok(std::f64::consts::PI))?;
    scalar(connection, &["greatest"], -1, |context| Ok(extreme(context, Ordering::Greater)))?;
    scalar(connection, &["least"], -1, |context| Ok(extreme(context, Ordering::Less)))
}

fn remainder(context: &Context<'_>) -> Result<Value> {
    if let (ValueRef::Integer(_), ValueRef::Integer(_)) = (context.get_raw(0), context.get_raw(1)) {
        let result =
            whole(context, 0).zip(whole(context, 1)).and_then(|(left, right)| left.checked_rem(right));
        return Ok(result.map_or(Value::Null, Value::Integer));
    }
    let result = number(context, 0).zip(number(context, 1)).filter(|(_, right)| *right != 0.0);
    Ok(result.map_or(Value::Null, |(left, right)| Value::Real(left % right)))
}

/// The greatest or least argument that is not null.
fn extreme(context: &Context<'_>, wanted: Ordering) -> Value {
    let mut best: Option<Value> = None;
    for at in 0..context.len() {
        let value = Value::try_from(context.get_raw(at)).unwrap_or(Value::Null);
        if value != Value::Null && best.as_ref().is_none_or(|best| order(&value, best) == wanted) {
            best = Some(value);
        }
    }
    best.unwrap_or(Value::Null)
}
