//! Aggregate functions as SQLite calls them.

use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use rusqlite::types::Value;
use rusqlite::{Connection, Error, Result};

use super::bind::{AggregateCall, AggregateKind};
use super::state::GroupState;
use crate::values::datum::Datum;
use crate::values::encoding::{decode_value, encode_value};
use crate::values::sql_type::SqlType;

/// Registers an aggregate function with a connection.
pub(crate) fn register_aggregate(connection: &Connection, call: &AggregateCall) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let count = i32::try_from(call.arguments.len()).unwrap_or(-1);
    let function = SqliteAggregate(call.clone());
    let slides = matches!(call.kind, AggregateKind::Sum | AggregateKind::Average | AggregateKind::CountIf);
    if slides {
        connection.create_window_function(call.name.as_str(), count, flags, function)
    } else {
        connection.create_aggregate_function(call.name.as_str(), count, flags, function)
    }
}

struct SqliteAggregate(AggregateCall);

impl SqliteAggregate {
    fn row(&self, context: &Context<'_>) -> Vec<Datum> {
        let kinds = self.0.arguments.iter().enumerate();
        kinds.map(|(at, kind)| decode_value(context.get_raw(at), kind)).collect()
    }

    fn argument(&self) -> &SqlType {
        self.0.arguments.first().unwrap_or(&SqlType::Null)
    }

    fn take(&self, context: &Context<'_>, state: &mut GroupState, sign: i64) -> Result<()> {
        state.add_row(&self.0.kind, self.row(context), sign).map_err(failed)
    }

    fn result(&self, state: Option<&GroupState>) -> Result<Value> {
        let Some(state) = state else { return Ok(Value::Null) };
        let datum = state.result(&self.0.kind, self.argument()).map_err(failed)?;
        Ok(encode_value(datum, &self.0.result))
    }
}

fn failed(message: String) -> Error {
    Error::UserFunctionError(message.into())
}

impl Aggregate<GroupState, Value> for SqliteAggregate {
    fn init(&self, _: &mut Context<'_>) -> Result<GroupState> {
        Ok(GroupState::new(&self.0.kind, self.argument()))
    }

    fn step(&self, context: &mut Context<'_>, state: &mut GroupState) -> Result<()> {
        self.take(context, state, 1)
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<GroupState>) -> Result<Value> {
        self.result(state.as_ref())
    }
}

impl WindowAggregate<GroupState, Value> for SqliteAggregate {
    fn value(&self, state: Option<&mut GroupState>) -> Result<Value> {
        self.result(state.as_deref())
    }

    fn inverse(&self, context: &mut Context<'_>, state: &mut GroupState) -> Result<()> {
        self.take(context, state, -1)
    }
}
