//! The one place that reads the environment.

use rowmill_types::Secret;

/// How the names of variables end that hold secrets.
const SECRET: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS"];

/// The value of an environment variable; one that is not valid text counts as unset.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether a variable holds a secret, going by its name.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|ending| name.ends_with(ending))
}

/// The values of all variables that hold secrets, going by their names: a tool may print what it
/// finds in the environment.
pub(crate) fn secrets() -> Vec<Secret> {
    let texts = std::env::vars_os().filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value)));
    texts
        .filter(|(name, _)| is_secret(name))
        .filter_map(|(_, value)| Some(Secret::new(value.into_string().ok()?)))
        .collect()
}
