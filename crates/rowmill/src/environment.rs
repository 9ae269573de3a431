//! The one place that reads the environment.

/// The value of an environment variable; one that is not valid text counts as unset.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
