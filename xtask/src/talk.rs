//! The one place that prints.

use std::fmt;

/// Prints a line of what was asked for.
#[expect(clippy::print_stdout, reason = "this is the one place that may")]
pub(crate) fn say(text: impl fmt::Display) {
    println!("{text}");
}

/// Prints a line of talk.
#[expect(clippy::print_stderr, reason = "this is the one place that may")]
pub(crate) fn note(text: impl fmt::Display) {
    eprintln!("{text}");
}
