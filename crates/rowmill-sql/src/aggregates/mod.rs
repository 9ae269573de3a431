//! Aggregate and window functions, with DuckDB's semantics.

mod bind;
mod run;
mod state;

pub(crate) use bind::{
    AggregateCall, AggregateKind, BoundAggregate, WindowUse, bind_aggregate, is_aggregate, names,
};
pub(crate) use run::register;
