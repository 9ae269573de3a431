//! Anthropic's Message Batches: all requests are sent with the job.

pub(super) mod api;
pub(super) mod result;
