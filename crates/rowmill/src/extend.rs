//! Everything needed to implement your own model, source, tool host or observer.
//!
//! Each trait documents its contract, and `rowmill-testkit` has a conformance suite for each in its
//! module `conformance`, which reports every way in which an implementation violates it.
//!
//! | to bring | implement | use it with |
//! |---|---|---|
//! | a provider | [`Model`] | [`Worker::own`](crate::Worker::own), [`Worker::made`](crate::Worker::made) |
//! | a source of rows | [`RowSource`], and [`Dataset`] where it can be opened again | [`Batch::over_rows`](crate::Batch::over_rows) |
//! | tools | [`ToolHost`] | [`Tools::of_host`](crate::Tools::of_host), [`Tools::per_item`](crate::Tools::per_item) |
//! | eyes | [`Observer`] | [`Control`](crate::Control); a function for [`Batch::on_event`](crate::Batch::on_event) |
//!
//! The crate's folder `examples` has a complete provider, source and tool host.

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
