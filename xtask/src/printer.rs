//! The only module that prints.

use std::fmt;

/// Prints a line of the requested output.
#[expect(clippy::print_stdout, reason = "this is the one place that may")]
pub(crate) fn say(text: impl fmt::Display) {
    println!("{text}");
}

/// Prints a line of messages on standard error.
#[expect(clippy::print_stderr, reason = "this is the one place that may")]
pub(crate) fn note(text: impl fmt::Display) {
    eprintln!("{text}");
}
