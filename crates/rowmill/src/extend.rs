//! Everything needed to implement your own model, source, tool host or observer.
//!
//! Each trait documents its contract, and `rowmill-testkit` has a conformance suite for each in its
//! module `conformance`, which reports every way in which an implementation violates it.
//!
//! | to bring | implement | use it with |
//! |---|---|---|
//! | a provider | [`Model`] | [`Worker::from_model`](crate::Worker::from_model), [`Worker::from_model_maker`](crate::Worker::from_model_maker) |
//! | a source of rows | [`RowSource`], and [`Dataset`] where it can be opened again | [`Batch::over_rows`](crate::Batch::over_rows) |
//! | tools | [`ToolHost`] | [`WorkerTools::from_host`](crate::WorkerTools::from_host), [`WorkerTools::per_item`](crate::WorkerTools::per_item) |
//! | an observer | [`Observer`] | [`RunControl`](crate::RunControl); a function for [`Batch::on_event`](crate::Batch::on_event) |
//!
//! The crate's folder `examples` has a complete provider, source and tool host.

pub use futures_util::future::BoxFuture;
pub use rowmill_core::ports::{
    ColumnCondition, ColumnKind, Dataset, DatasetColumn, InputIdentity, InputReadProgress, Model, Observer,
    ReadLimit, RequestedDatasetPart, RowSource, RunEvent, ToolFailure, ToolHost, ToolRequest,
};
pub use rowmill_types::{
    AnsweredToolCall, Attachment, BadRow, CallError, CallFailure, CallRetryClass, CallTiming,
    ComparisonOperator, ComparisonValue, Completion, FinishReason, Message, MessageRole, NativeMessage,
    Problem, ProblemCode, RateLimitState, ReportedRateLimits, Request, Row, RowError, RowErrorKind,
    RowReadResult, TokenUsage, ToolCall, ToolOutput, ToolSpec,
};
