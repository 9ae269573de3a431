//! Queries over tables in memory.

#![expect(clippy::unwrap_used, reason = "tests stop at the first thing that is not as it should be")]

mod functions;
mod queries;
mod refusals;
mod support;
