//! What an implementor of an own model, source, tool host or observer needs, in one place.
//!
//! Each trait has its contract in its documentation, and `rowmill-testkit` has a suite for each in
//! its module `conformance`, which tells every way in which an implementation breaks it.
//!
//! | to bring | implement | use it with |
//! |---|---|---|
//! | a provider | [`Model`] | [`Worker::own`](crate::Worker::own), [`Worker::made`](crate::Worker::made) |
//! | a source of rows | [`RowSource`], and [`Dataset`] where it can be opened again | [`Batch::over_rows`](crate::Batch::over_rows) |
//! | tools | [`ToolHost`] | [`Tools::of_host`](crate::Tools::of_host), [`Tools::per_item`](crate::Tools::per_item) |
//! | eyes | [`Observer`] | [`Control`](crate::Control); a function for [`Batch::on_event`](crate::Batch::on_event) |
//!
//! The crate's folder `examples` has a provider, a source and a tool host that are whole.

pub use futures_util::future::BoxFuture;
pub use rowmill_core::ports::{
    Column, ColumnKind, Condition, Dataset, Event, InputIdentity, Model, Observer, Part, Position, Room,
    RowSource, ToolFailure, ToolHost, ToolRequest,
};
pub use rowmill_types::{
    Answered, Attachment, BadRow, CallError, CallFailure, CallTiming, Comparison, Completion, Echo,
    ErrorKind, Fault, Finish, Message, Problem, ProblemCode, RateLimits, RateWindow, Request, Role, Row,
    RowError, Scalar, SourceRow, ToolCall, ToolOutput, ToolSpec, Usage,
};
