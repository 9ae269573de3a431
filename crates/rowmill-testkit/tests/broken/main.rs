//! Every check of the conformance suites can fail: implementations that violate one promise each, and the
//! message that reports it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod answers;
mod attachments;
mod batch_api;
mod dataset;
mod hooks;
mod model;
mod observer;
mod run_store;
mod sink;
mod tools;

use std::fmt::Debug;

/// Asserts that the suite finds nothing in a correct implementation, and reports a broken one.
fn assert_reported(manner: &dyn Debug, found: &[String], expected: &str) {
    if expected.is_empty() {
        assert!(found.is_empty(), "{manner:?} keeps the contract: {found:#?}");
    } else {
        assert!(found.iter().any(|what| what.contains(expected)), "{manner:?}: `{expected}` in {found:#?}");
    }
}
