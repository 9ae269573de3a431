//! All integration tests of this crate in one binary, which is linked only once.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod conformance;
mod mcp;
mod python;
mod shell;
mod skills;
mod stub;
