//! Every check of the conformance suites can fail: implementations that break one promise each,
//! and the deviation that tells of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod answers;
mod attachments;
mod dataset;
mod hooks;
mod model;
mod observer;
mod run_store;
mod sink;
mod tools;

use std::fmt::Debug;

/// Asserts that the suite finds nothing in what is right, and tells of what is broken.
fn assert_told(manner: &dyn Debug, found: &[String], expected: &str) {
    if expected.is_empty() {
        assert!(found.is_empty(), "{manner:?} keeps the contract: {found:#?}");
    } else {
        assert!(found.iter().any(|what| what.contains(expected)), "{manner:?}: `{expected}` in {found:#?}");
    }
}
