//! Aggregate and window functions, with DuckDB's semantics.

mod bind;
mod sqlite;
mod state;

pub(crate) use bind::{
    AggregateCall, AggregateKind, BoundAggregate, WindowUse, aggregate_names, bind_aggregate, is_aggregate,
};
pub(crate) use sqlite::register_aggregate;
