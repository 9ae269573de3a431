//! Expressions as functions that SQLite calls.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use crate::expression::emit::ComputedFunction;
use crate::expression::evaluate::evaluate;
use crate::failure::failed_on_value;
use crate::query::QueryText;
use crate::values::encoding::{decode, encode};
use crate::vtab::ScanProblem;

/// Registers an expression with a connection.
pub(crate) fn register(
    connection: &Connection,
    function: &ComputedFunction,
    text: &QueryText,
    problem: &ScanProblem,
) -> Result<()> {
    let mut flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    if function.is_repeatable {
        flags |= FunctionFlags::SQLITE_DETERMINISTIC;
    }
    let count = i32::try_from(function.arguments.len()).unwrap_or(-1);
    let (kinds, body) = (function.arguments.clone(), function.body.clone());
    let (text, problem) = (text.clone(), problem.clone());
    connection.create_scalar_function(function.name.as_str(), count, flags, move |context| -> Result<Value> {
        let arguments: Vec<_> =
            kinds.iter().enumerate().map(|(at, kind)| decode(context.get_raw(at), kind)).collect();
        match evaluate(&body, &arguments) {
            Ok(datum) => Ok(encode(datum.into_owned(), &body.kind)),
            Err(failure) => Err(problem.put(failed_on_value(&text, &failure))),
        }
    })
}
