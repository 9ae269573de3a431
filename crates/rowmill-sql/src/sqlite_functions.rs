//! Expressions as functions that SQLite calls.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use crate::expression::emit::ComputedFunction;
use crate::expression::evaluate::evaluate_expression;
use crate::query::QueryText;
use crate::query_problems::value_problem;
use crate::scan_table::ScanProblemSlot;
use crate::values::encoding::{decode_value, encode_value};

/// Registers an expression with a connection.
pub(crate) fn register(
    connection: &Connection,
    function: &ComputedFunction,
    text: &QueryText,
    problem: &ScanProblemSlot,
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
            kinds.iter().enumerate().map(|(at, kind)| decode_value(context.get_raw(at), kind)).collect();
        match evaluate_expression(&body, &arguments) {
            Ok(datum) => Ok(encode_value(datum.into_owned(), &body.kind)),
            Err(failure) => Err(problem.put(value_problem(&text, &failure))),
        }
    })
}
