//! Gemini's batches: a file is uploaded, and a job is a long-running operation.

pub(super) mod api;
pub(super) mod job;
pub(super) mod result;
pub(super) mod upload;
